"""Learners for teams of language models: MARFT, matched Independent PPO, and the rungs between them."""

from baselines.ladder import ARMS, LearnerConfig, ippo, marft

__all__ = ["ARMS", "LearnerConfig", "ippo", "marft"]
