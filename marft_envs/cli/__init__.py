"""Commands of ``python -m marft_envs``: list, new-task, play, docs."""
