"""The Flexible Markov Game as a PettingZoo AEC environment."""

from marft_envs.game.flex_mg import FlexMG
from marft_envs.game.order_enforcing import OrderEnforcing, ResetNeeded

__all__ = ["FlexMG", "OrderEnforcing", "ResetNeeded"]
