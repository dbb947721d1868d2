"""Benchmarks: the comparison of learners (`compare.py`), and the speed and correctness of environments and graders."""
