"""The PPO update that all arms share, in numbered steps (see ``learner.py``)."""
