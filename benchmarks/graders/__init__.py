"""Inputs, rival graders and program runners for the grading benchmarks."""
