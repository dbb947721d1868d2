"""Measurements of speed: a turn of an environment; generation and training of a team, beside a yardstick."""
