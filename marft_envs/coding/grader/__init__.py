"""Grading of programs: extract the program, run its tests in ``marft_envs.sandbox``, compare, return a verdict."""
