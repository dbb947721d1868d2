"""Inputs, graders to compare with, and program runners of the grading benchmarks."""
