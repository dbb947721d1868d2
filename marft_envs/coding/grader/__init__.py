"""From a program and its tests to a verdict. Programs run in ``marft_envs.sandbox`` only."""
