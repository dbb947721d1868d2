"""Running a comparison: the grid of runs, worker processes, the results folder and progress."""
