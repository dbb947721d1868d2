"""The comparison: arms x tasks x seeds -> rows -> report. `compare.py` is the main job."""
