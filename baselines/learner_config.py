"""The configuration of a learner as one frozen record. The arms in ``ladder.py`` are values of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from baselines.field_types import check_field_types
from baselines.functional.options import Aggregation, KLEstimator, Normalization
from marft_envs.arguments import did_you_mean

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
    """The configuration of a learner. The first four fields are the rungs of the ladder.

    The fields are described one by one below.

    Raises:
        ValueError: If a value has the wrong type, is out of range, or contradicts another field. The message names the
            field, the value and what was expected.
    """

    critic: Literal["own", "central", "none"] = "own"
    """``own``: one critic per agent, which reads what the agent observes. ``central``: one critic for all agents, which
    reads the joint history. ``none``: no critic, with bootstrap="group" only. See docs/reference/algorithms.md,
    section 4."""
    bootstrap: Literal["own", "successor", "group"] = "own"
    """The value that follows a turn. ``own``: of the same agent's turn in the next round. ``successor``: of the next
    agent's turn in execution order. ``group``: none; an episode is compared with the other episodes on its problem."""
    update: Literal["simultaneous", "sequential", "none"] = "simultaneous"
    """``simultaneous``: every agent is updated against the policies that sampled the batch. ``sequential``: the agents
    are updated one after another, see ``factor``. ``none``: no agent is updated."""
    factor: Literal["off", "on"] = "off"
    """``on``: in a sequential update the advantages of an agent are multiplied by the compounded ratios M of the agents
    that were updated before it (docs/reference/algorithms.md, section 2.4)."""

    credit: Literal["action", "token"] = "action"
    """One decision is a whole message ("action") or each of its tokens ("token"); docs/reference/algorithms.md,
    sections 2 and 3."""
    reward: Literal["team", "maporl"] = "team"
    """``team``: the learner is rewarded with the team's score. ``maporl``: every reply is graded, and a turn's return
    is its own score plus the discounted mean scores of later rounds (MAPoRL, https://arxiv.org/abs/2502.18439, where
    gamma is 0.3)."""
    order: Literal["fixed", "reversed", "permuted"] = "fixed"
    """The order of a sequential update: "fixed" is the team's order, "reversed" the opposite, "permuted" a new random
    order for each batch."""
    round_robin: int = 0
    """Train one adapter for this many batches, then the next one, so that each learns from fresh data. 0 trains all
    adapters on every batch."""
    factor_clamp: tuple[float, float] = (0.5, 2.0)
    """Lower and upper bound of the compounded factor M."""
    factor_normalization: Literal["surrogate", "sum"] = "surrogate"
    """The log-ratio in M: "surrogate" divides it as ``normalization`` does, "sum" does not divide it (only then is M an
    importance weight)."""
    normalization: Normalization = "token"
    """Divide an action's log-probability by nothing ("sum"), by its tokens ("token") or by its words ("word");
    docs/reference/algorithms.md, section 2.1."""
    loss_aggregation: Aggregation = "token_mean"
    """``token_mean``: mean over all tokens of a minibatch. ``turn_mean``: mean over turns of each turn's token mean.
    ``agent_balanced``: mean over the agents that share an adapter. With credit="action" the first two differ in the KL
    and entropy terms only."""
    clip: float = 0.2
    """PPO's epsilon: the surrogate uses ratios clipped to [1 - clip, 1 + clip]."""
    epochs: int = 2
    """Passes over a batch in the update of an adapter."""
    minibatches: int = 1
    """Optimiser steps in one pass."""
    learning_rate: float = 1e-4
    """Learning rate of Adam for the adapters."""
    max_grad_norm: float = 1.0
    """An adapter's gradient is scaled down to this norm if it is larger."""
    entropy_coefficient: float = 0.0
    """Weight of the entropy bonus, which is the mean entropy per token in nats."""
    kl_coefficient: float = 0.02
    """beta, the weight of KL(pi_theta || pi_0), which keeps a policy near the model that it was tuned from. With a
    ``kl_target`` this is the initial value."""
    kl_estimator: KLEstimator = "k3"
    """The estimator of the KL per token (docs/reference/algorithms.md, section 2.6). Avoid "k1" as a loss: the expected
    gradient on fresh samples is zero."""
    kl_placement: Literal["loss", "reward"] = "loss"
    """``loss``: the KL is a term of the loss. ``reward``: it is subtracted from the reward of each decision; the
    critics still predict the score without it."""
    kl_target: float = 0.0
    """Each agent's beta is adapted so that its mean KL per token (k3, in nats) approaches this value. 0 keeps beta
    fixed."""
    kl_stop: float = 0.0
    """The epochs of an adapter end early when its KL to the sampling policy (mean of rho - 1 - log rho) exceeds this
    value. 0 never ends them early."""
    gamma: float = 1.0
    """Discount from one round to the next."""
    lam: float = 0.95
    """GAE's lambda from one round to the next."""
    gamma_in: float = 1.0
    """Discount from an agent to its successor inside a round."""
    lam_in: float = 0.5
    """GAE's lambda from an agent to its successor inside a round. Until the critic explains enough, 1 is used instead
    (see ``ev_gate``)."""
    gamma_tok: float = 1.0
    """Discount from one token of a message to the next, with credit="token"."""
    lam_tok: float = 1.0
    """GAE's lambda from one token of a message to the next, with credit="token"."""
    ev_gate: float = 0.1
    """``lam_in`` is 1 while the critic's running explained variance is below this value, because the values of a critic
    that explains nothing are noise in the advantages (docs/reference/critic.md, section 2)."""
    advantage_floor: float = 0.4
    """An agent's update is skipped if the standard deviation of its advantages is below this share of the agents' mean
    (docs/reference/critic.md, section 7)."""
    group_size: int = 8
    """Episodes per problem of a batch, with bootstrap="group"."""
    critic_network: Literal["additive", "head", "transformer"] = "additive"
    """``additive``: each turn is encoded on its own, and contributions are added in the logit. ``head``: a value head
    on the reference model's hidden states of the whole history. ``transformer``: a small transformer, trained from
    scratch, on the history's tokens. See docs/reference/critic.md, sections 4 and 5."""
    critic_private: bool = True
    """Whether a central critic reads the private parts of the problem, which are in the agents' prompts
    (docs/reference/algorithms.md, section 2.5)."""
    value_loss: Literal["bce", "huber"] = "bce"
    """``bce``: binary cross-entropy on the Monte-Carlo return in [0, 1]. ``huber``: clipped Huber loss on the GAE
    return. See docs/reference/critic.md, section 6."""
    value_clip: float = 0.2
    """Range in which the Huber value loss lets a value move."""
    critic_learning_rate: float = 1e-3
    """Learning rate of AdamW for the critic."""
    critic_weight_decay: float = 0.1
    """Weight decay of AdamW for the critic."""
    critic_epochs: int = 2
    """Passes over the replayed batches after each policy update."""
    replay_batches: int = 8
    """Number of the latest batches that the critic is trained on."""
    critic_warmup: int = 0
    """Number of batches at the beginning of a run that train the critic only. They count in the run's budget of
    episodes, so use the same number for every arm of a comparison."""
    critic_warmup_epochs: int = 8
    """Passes over the replayed batches after each batch of the warm-up."""
    max_bad_updates: int = 3
    """The run stops after this many consecutive updates with a loss or a gradient that is not finite."""

    def __post_init__(self) -> None:
        check_field_types(self)
        for name in _POSITIVE:
            self._require(name, getattr(self, name) > 0, "a positive number")
        for name in _NOT_NEGATIVE:
            self._require(name, getattr(self, name) >= 0, "a number of at least 0")
        for name in _UNIT:
            self._require(name, 0 <= getattr(self, name) <= 1, "a number in [0, 1]")
        low, high = self.factor_clamp
        object.__setattr__(self, "factor_clamp", (low, high))
        self._require("factor_clamp", 0 < low <= 1 <= high, "(low, high) with 0 < low <= 1 <= high")
        self._require("factor", self.factor == "off" or self.update == "sequential", "'off' unless update='sequential'")
        self._require(
            "bootstrap", self.bootstrap != "successor" or self.critic == "central", "'own' unless critic='central'"
        )
        self._require("reward", self.reward == "team" or self.bootstrap == "own", "'team' unless bootstrap='own'")
        self._require(
            "critic_private", self.critic_private is True or self.critic == "central", "true unless critic='central'"
        )
        grouped = self.bootstrap == "group"
        self._require(
            "critic", (self.critic == "none") == grouped, "'none' if bootstrap='group', else 'own' or 'central'"
        )
        self._require("group_size", not grouped or self.group_size > 1, "at least 2 if bootstrap='group'")
        self._require(
            "kl_coefficient",
            not self.kl_target or self.kl_coefficient > 0,
            "a number above 0, because kl_target is set",
        )

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise ValueError(f"LearnerConfig {name}={getattr(self, name)!r}: expected {expected}")

    def with_settings(self, settings: dict[str, Any]) -> LearnerConfig:
        """Return a copy with some fields changed.

        Args:
            settings: Field name -> value.

        Raises:
            ValueError: If there is no such field, or a value is not valid.
        """
        names = [f.name for f in fields(self)]
        for name in settings:
            if name not in names:
                near = did_you_mean(name, names)
                raise ValueError(f"LearnerConfig has no field {name!r}{near}: expected one of {', '.join(names)}")
        return replace(self, **settings)

    def problems_per_batch(self, episodes: int) -> int:
        """Return the number of different problems in a batch.

        With bootstrap="group" each problem is played ``group_size`` times, else once.

        Args:
            episodes: The number of episodes in the batch.

        Raises:
            ValueError: If the last group would be incomplete.
        """
        if self.bootstrap != "group":
            return episodes
        if episodes % self.group_size:
            raise ValueError(f"episodes={episodes}: expected a multiple of group_size={self.group_size}")
        return episodes // self.group_size
