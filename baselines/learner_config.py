"""Everything that makes a learner, as one frozen record; the arms of ``ladder.py`` are values of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from baselines.field_types import check_field_types
from baselines.functional.losses import AGGREGATIONS, KL_ESTIMATORS, Aggregation, KLEstimator
from baselines.functional.ratios import NORMALIZATIONS, Normalization
from marft_envs.arguments import did_you_mean

_CHOICES: dict[str, tuple[str, ...]] = {
    "critic": ("own", "central", "none"),
    "bootstrap": ("own", "successor", "group"),
    "update": ("simultaneous", "sequential", "none"),
    "factor": ("off", "on"),
    "credit": ("action", "token"),
    "reward": ("team", "maporl"),
    "order": ("fixed", "permuted"),
    "factor_normalization": ("surrogate", "sum"),
    "normalization": NORMALIZATIONS,
    "loss_aggregation": AGGREGATIONS,
    "kl_estimator": KL_ESTIMATORS,
    "kl_placement": ("loss", "reward"),
    "critic_network": ("additive", "head", "transformer"),
    "value_loss": ("bce", "huber"),
}
_POSITIVE = (
    "clip", "epochs", "minibatches", "max_grad_norm", "group_size", "critic_learning_rate", "critic_epochs",
    "replay_batches", "value_clip", "critic_warmup_epochs", "max_bad_updates",
)  # fmt: skip
_NOT_NEGATIVE = (
    "learning_rate", "entropy_coefficient", "kl_coefficient", "kl_target", "kl_stop", "critic_weight_decay",
    "advantage_floor", "round_robin", "critic_warmup",
)  # fmt: skip
_UNIT = ("gamma", "lam", "gamma_in", "lam_in", "gamma_tok", "lam_tok")


@dataclass(frozen=True)
class LearnerConfig:
    """Everything that makes a learner. The first four fields are the rungs of the ladder.

    Raises ValueError naming the field, the value and what was expected.
    """

    critic: Literal["own", "central", "none"] = "own"
    """Own: one critic per agent on its own view. Central: one for all, on the joint history. None: see bootstrap."""
    bootstrap: Literal["own", "successor", "group"] = "own"
    """Whose value follows a turn: the agent's own in the next round, or the next agent's in the chain of turns. Group:
    nobody's; an episode is compared with the others on its problem, which needs no critic."""
    update: Literal["simultaneous", "sequential", "none"] = "simultaneous"
    """All agents from the same batch at once, one after the other, or not at all."""
    factor: Literal["off", "on"] = "off"
    """Whether a sequential update weights an agent's advantages by its predecessors' compounded ratios."""

    credit: Literal["action", "token"] = "action"
    """What is one decision: a whole message, or each of its tokens (algorithms.md 2 and 3)."""
    reward: Literal["team", "maporl"] = "team"
    """What is learned from: the team's score, or MAPoRL's return (arXiv 2502.18439): every reply is graded, and a turn
    is worth its own score and the mean scores of later rounds, discounted by gamma (.3 there)."""
    order: Literal["fixed", "permuted"] = "fixed"
    """The order of a sequential update: the listed order, or a new permutation for each batch."""
    round_robin: int = 0
    """K: train one adapter for K batches, then the next, so that each learns from fresh data; 0 trains all on each."""
    factor_clamp: tuple[float, float] = (0.5, 2.0)
    """Bounds on the compounded factor M."""
    factor_normalization: Literal["surrogate", "sum"] = "surrogate"
    """The log-ratio in M: normalised as the surrogate's, or the plain sum (the true importance weight)."""
    normalization: Normalization = "token"
    """What an action's log-probability is divided by: nothing ("sum"), its tokens, or its words."""
    loss_aggregation: Aggregation = "token_mean"
    """Mean over all tokens, over turns of each turn's token mean, or over agents that share an adapter. Where an action
    is one decision, "token_mean" and "turn_mean" differ in the KL and entropy terms only."""
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
    """beta: weight of KL(pi_theta || pi_0); this is what makes it fine-*tuning*. Where it starts, if there is a
    kl_target."""
    kl_estimator: KLEstimator = "k3"
    """The estimate per token: k1, k2 or k3. As a loss, k1 has a gradient of mean zero on fresh samples."""
    kl_placement: Literal["loss", "reward"] = "loss"
    """A term of the loss, or a penalty on the reward of each turn (token); critics predict the score without it."""
    kl_target: float = 0.0
    """Each agent's beta is raised or lowered towards this mean k3 per token; 0 keeps beta fixed."""
    kl_stop: float = 0.0
    """An agent's epochs end when its KL to the sampling policy (rho - 1 - log rho) exceeds this; 0 never stops."""
    gamma: float = 1.0
    """Discount from round to round."""
    lam: float = 0.95
    """GAE's lambda from round to round."""
    gamma_in: float = 1.0
    """Discount from an agent to its successor inside a round."""
    lam_in: float = 0.5
    """GAE's lambda inside a round, once the critic has shown that it explains something (see ev_gate)."""
    gamma_tok: float = 1.0
    """Discount from token to token of a message, with credit="token"."""
    lam_tok: float = 1.0
    """GAE's lambda from token to token of a message, with credit="token"."""
    ev_gate: float = 0.1
    """lam_in is 1 while the critic's running explained variance is below this; a useless critic would be noise."""
    advantage_floor: float = 0.4
    """An agent's update is skipped when the standard deviation of its advantages is below this share of the mean."""
    group_size: int = 8
    """Episodes on each problem of a batch, with bootstrap="group"."""
    critic_network: Literal["additive", "head", "transformer"] = "additive"
    """The additive critic on separately encoded turns, a value head on the reference's reading of the concatenated
    history, or a small transformer from scratch on its tokens."""
    critic_private: bool = True
    """Whether a central critic reads the problem's private parts, in the prompts of the turns (algorithms.md 2.5)."""
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
    critic_warmup: int = 0
    """The first batches of a run train critics only. They count in the budget, so give them to every arm."""
    critic_warmup_epochs: int = 8
    """Passes over the replayed batches after each of those."""
    max_bad_updates: int = 3
    """Updates in a row with a loss or gradient that is not finite before the run is stopped."""

    def __post_init__(self) -> None:
        check_field_types(self)
        for name, allowed in _CHOICES.items():
            near = did_you_mean(getattr(self, name), allowed)
            self._require(name, getattr(self, name) in allowed, f"one of {', '.join(allowed)}{near}")
        for name in _POSITIVE:
            self._require(name, getattr(self, name) > 0, "a positive number")
        for name in _NOT_NEGATIVE:
            self._require(name, getattr(self, name) >= 0, "a number of at least 0")
        for name in _UNIT:
            self._require(name, 0 <= getattr(self, name) <= 1, "a number in [0, 1]")
        low, high = self.factor_clamp
        object.__setattr__(self, "factor_clamp", (low, high))
        self._require("factor_clamp", 0 < low <= 1 <= high, "(low, high) with 0 < low <= 1 <= high")
        self._require("factor", self.factor == "off" or self.update == "sequential", "off unless update='sequential'")
        self._require(
            "bootstrap", self.bootstrap != "successor" or self.critic == "central", "own unless critic='central'"
        )
        self._require("reward", self.reward == "team" or self.bootstrap == "own", "'team' unless bootstrap='own'")
        self._require(
            "critic_private", self.critic_private is True or self.critic == "central", "true unless critic='central'"
        )
        alone = self.bootstrap == "group"
        self._require("critic", (self.critic == "none") == alone, "'none' with bootstrap='group', and only then")
        self._require("group_size", not alone or self.group_size > 1, "at least 2 with bootstrap='group'")
        self._require("kl_coefficient", not self.kl_target or self.kl_coefficient > 0, "above 0 with a kl_target")

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise ValueError(f"LearnerConfig {name}={getattr(self, name)!r}: expected {expected}")

    def with_settings(self, settings: dict[str, Any]) -> LearnerConfig:
        """A copy with some fields changed. ValueError for a field that does not exist."""
        names = [f.name for f in fields(self)]
        for name in settings:
            if name not in names:
                near = did_you_mean(name, names)
                raise ValueError(f"LearnerConfig has no field {name!r}: expected one of {', '.join(names)}{near}")
        return replace(self, **settings)

    def problems_per_batch(self, episodes: int) -> int:
        """How many different problems a batch of so many episodes has: each ``group_size`` times with
        bootstrap="group", else once. ValueError for a number that leaves a group incomplete."""
        if self.bootstrap != "group":
            return episodes
        if episodes % self.group_size:
            raise ValueError(f"episodes={episodes}: expected a multiple of group_size={self.group_size}")
        return episodes // self.group_size
