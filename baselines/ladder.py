"""The arms: one configuration of the one learner each. From ippo to marft neighbours differ in exactly one field.

| arm | critic | bootstrap | update | factor |
|---|---|---|---|---|
| ippo | own | own | simultaneous | off |
| mappo | **central** | own | simultaneous | off |
| mappo_chained | central | **successor** | simultaneous | off |
| marft_nofactor | central | successor | **sequential** | off |
| marft | central | successor | sequential | **on** |

With one adapter per agent on a frozen base the parameters are disjoint, and then marft_nofactor is mappo_chained,
number for number (algorithms.md section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from baselines.ratios import NORMALIZATIONS, Normalization

_CHOICES: dict[str, tuple[str, ...]] = {
    "critic": ("own", "central"),
    "bootstrap": ("own", "successor"),
    "update": ("simultaneous", "sequential"),
    "factor": ("off", "on"),
    "order": ("fixed", "permuted"),
    "normalization": NORMALIZATIONS,
    "value_loss": ("bce", "huber"),
}
_POSITIVE = (
    "clip", "epochs", "minibatches", "max_grad_norm", "critic_learning_rate", "critic_epochs",
    "replay_batches", "value_clip",
)  # fmt: skip
_NOT_NEGATIVE = ("learning_rate", "entropy_coefficient", "kl_coefficient", "critic_weight_decay", "advantage_floor")
_UNIT = ("gamma", "lam", "gamma_in", "lam_in")


@dataclass(frozen=True)
class LearnerConfig:
    """Everything that makes a learner. The first four fields are the rungs of the ladder.

    Raises ValueError naming the field, the value and what was expected.
    """

    critic: Literal["own", "central"] = "own"
    """Own: one critic per agent on its own view. Central: one for all, on the joint history."""
    bootstrap: Literal["own", "successor"] = "own"
    """Whose value follows a turn: the agent's own in the next round, or the next agent's in the chain of turns."""
    update: Literal["simultaneous", "sequential"] = "simultaneous"
    """All agents from the same batch at once, or one after the other."""
    factor: Literal["off", "on"] = "off"
    """Whether a sequential update weights an agent's advantages by its predecessors' compounded ratios."""

    order: Literal["fixed", "permuted"] = "fixed"
    """The order of a sequential update: the listed order, or a new permutation for each batch."""
    factor_clamp: tuple[float, float] = (0.5, 2.0)
    """Bounds on the compounded factor M."""
    normalization: Normalization = "token"
    """What an action's log-probability is divided by: nothing ("sum"), its tokens, or its words."""
    clip: float = 0.2
    """PPO's epsilon."""
    epochs: int = 2
    """Passes over a batch for each agent's policy."""
    minibatches: int = 1
    """Optimiser steps per pass."""
    learning_rate: float = 1e-4
    """Adam's step size for the adapters."""
    max_grad_norm: float = 1.0
    """Gradients of an adapter are scaled down to this norm."""
    entropy_coefficient: float = 0.0
    """Weight of the mean token entropy, as a bonus."""
    kl_coefficient: float = 0.02
    """beta: weight of KL(pi_theta || pi_0) (k3, per token) in the loss; this is what makes it fine-*tuning*."""
    gamma: float = 1.0
    """Discount from round to round."""
    lam: float = 0.95
    """GAE's lambda from round to round."""
    gamma_in: float = 1.0
    """Discount from an agent to its successor inside a round."""
    lam_in: float = 0.5
    """GAE's lambda inside a round, once the critic has shown that it explains something (see ev_gate)."""
    ev_gate: float = 0.1
    """lam_in is 1 while the critic's running explained variance is below this; a useless critic would be noise."""
    advantage_floor: float = 0.4
    """An agent's update is skipped when the standard deviation of its advantages is below this share of the mean."""
    value_loss: Literal["bce", "huber"] = "bce"
    """Cross-entropy on the Monte-Carlo return in [0, 1], or clipped Huber on the GAE return."""
    value_clip: float = 0.2
    """The clip of the Huber value loss."""
    critic_learning_rate: float = 1e-3
    """AdamW's step size for the critic."""
    critic_weight_decay: float = 0.1
    """AdamW's weight decay for the critic."""
    critic_epochs: int = 2
    """Passes over the replayed batches after each policy update."""
    replay_batches: int = 8
    """How many of the last batches the critic is trained on."""

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            self._require(name, getattr(self, name) in allowed, f"one of {', '.join(allowed)}")
        for name in _POSITIVE:
            self._require(name, getattr(self, name) > 0, "a positive number")
        for name in _NOT_NEGATIVE:
            self._require(name, getattr(self, name) >= 0, "a number of at least 0")
        for name in _UNIT:
            self._require(name, 0 <= getattr(self, name) <= 1, "a number in [0, 1]")
        low, high = self.factor_clamp
        self._require("factor_clamp", 0 < low <= 1 <= high, "(low, high) with 0 < low <= 1 <= high")
        self._require("factor", self.factor == "off" or self.update == "sequential", "off unless update='sequential'")
        self._require("bootstrap", self.bootstrap == "own" or self.critic == "central", "own unless critic='central'")

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise ValueError(f"LearnerConfig {name}={getattr(self, name)!r}: expected {expected}")

    def with_settings(self, settings: dict[str, Any]) -> LearnerConfig:
        """A copy with some fields changed. ValueError for a field that does not exist."""
        names = [f.name for f in fields(self)]
        for name in settings:
            if name not in names:
                raise ValueError(f"LearnerConfig has no field {name!r}: expected one of {', '.join(names)}")
        settings = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
        return replace(self, **settings)


ippo = LearnerConfig()
mappo = replace(ippo, critic="central")
mappo_chained = replace(mappo, bootstrap="successor")
marft_nofactor = replace(mappo_chained, update="sequential")
marft = replace(marft_nofactor, factor="on")

ARMS: dict[str, LearnerConfig] = {
    "ippo": ippo,
    "mappo": mappo,
    "mappo_chained": mappo_chained,
    "marft_nofactor": marft_nofactor,
    "marft": marft,
}


def arm(name: str) -> LearnerConfig:
    """The arm of that name. ValueError lists the names."""
    if name not in ARMS:
        raise ValueError(f"arm={name!r}: expected one of {', '.join(ARMS)}")
    return ARMS[name]
