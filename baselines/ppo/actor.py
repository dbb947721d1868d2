"""The policies' part of an update: log-probabilities by the training path, and the training epochs of one adapter.

Axes: N turns of one agent, n turns of a minibatch or of a pass, U decisions of a turn, T tokens of an action.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from baselines.functional.losses import adapted_coefficient, clipped_policy_loss, kl_to_reference, loss_weights
from baselines.functional.options import Normalization
from baselines.functional.ratios import action_logprob, step_monitor
from baselines.learner_config import LearnerConfig
from baselines.policies.checkpointing import checkpointed
from baselines.policies.micro_batches import MicroBatches, in_order
from baselines.policies.policy import Policies, SharedBasePolicy, TokenScores
from baselines.trajectory import AgentTurns, concatenate, select, stack_padded


@dataclass(frozen=True, slots=True)
class AgentData:
    """The training data of one agent: N turns of U decisions.

    Attributes:
        turns: The agent's turns.
        old_tokens: [N, T] log-probabilities of the tokens under the policy before the update, by the training path. NaN
            until they are known (``Actor.records_old``).
        reference: [N, T] log-probabilities of the tokens under pi_0.
        decisions: [N, U] bool.
        old: [N, U] log-probability of each decision before the update, normalised.
        advantage: [N, U] advantages as the loss uses them.
        factor: [N] the compounded factor M of each turn's round.
        agent: [N] index of the agent.
    """

    turns: AgentTurns
    old_tokens: Tensor
    reference: Tensor
    decisions: Tensor
    old: Tensor
    advantage: Tensor
    factor: Tensor
    agent: Tensor

    def with_old(self, old_tokens: Tensor, old: Tensor) -> AgentData:
        """Return the data with these log-probabilities before the update."""
        values = {name: getattr(self, name) for name in AgentData.__slots__}
        return AgentData(**{**values, "old_tokens": old_tokens, "old": old})

    @staticmethod
    def join(parts: Sequence[AgentData]) -> AgentData:
        """Return the data of several agents that share an adapter as one record."""
        names = [name for name in AgentData.__slots__ if name != "turns"]
        joined = {name: stack_padded([getattr(part, name) for part in parts]) for name in names}
        return AgentData(turns=concatenate([part.turns for part in parts]), **joined)


class LossWeights(NamedTuple):
    """The weights of a minibatch's loss, see ``losses.loss_weights``.

    Attributes:
        decisions: [n, U] weight of each decision.
        tokens: [n, T] weight of each token.
    """

    decisions: Tensor
    tokens: Tensor


class Actor:
    """The optimisers of all trained adapters, and the training of one adapter at a time.

    Args:
        policy: The team's policies.
        config: The arm's configuration.
        temperature: The sampling temperature, used for every log-probability.
        passes: Divides turns into forward passes; gradients are accumulated over the passes of a minibatch.
        generator: Source of the order of the minibatches, on the CPU, so that the order is the same on every device.
    """

    def __init__(
        self,
        policy: Policies,
        config: LearnerConfig,
        *,
        temperature: float,
        passes: MicroBatches,
        generator: torch.Generator,
    ) -> None:
        self.policy, self.config, self.temperature, self.passes = policy, config, temperature, passes
        self.generator = generator
        self.optimizers = {
            adapter: torch.optim.Adam(policy.of(sharers[0]).adapter_parameters(sharers[0]), lr=config.learning_rate)
            for adapter, sharers in policy.blocks.items()
        }
        self.scalers = {adapter: loss_scaler(policy.of(sharers[0])) for adapter, sharers in policy.blocks.items()}
        self.beta = dict.fromkeys(policy.agents, config.kl_coefficient)
        self.counts = {
            "optimiser_steps": 0, "early_stops": 0, "bad_steps": 0, "overflow_steps": 0, "trained_tokens": 0
        }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Return the state of optimisers and loss scalers, KL coefficients, counters and the adapters' versions."""
        optimizers = {adapter: optimizer.state_dict() for adapter, optimizer in self.optimizers.items()}
        scalers = {adapter: scaler.state_dict() for adapter, scaler in self.scalers.items()}
        versions = {adapter: self._policy_of(adapter).versions[adapter] for adapter in self.optimizers}
        return {
            "optimizers": optimizers, "scalers": scalers, "beta": dict(self.beta), "counts": dict(self.counts),
            "versions": versions,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        for adapter, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][adapter])
            if state["scalers"][adapter]:  # empty if the run was saved on a device where the base is not fp16
                self.scalers[adapter].load_state_dict(state["scalers"][adapter])
            self._policy_of(adapter).versions[adapter] = state["versions"][adapter]
        self.beta, self.counts = dict(state["beta"]), dict(state["counts"])

    def _policy_of(self, adapter: str) -> SharedBasePolicy:
        return self.policy.of(self.policy.blocks[adapter][0])

    # ---- log-probabilities

    @torch.no_grad()
    def token_logprobs(self, agent: str, turns: AgentTurns) -> Tensor:
        """Return the log-probabilities [N, T] of an agent's action tokens under its current adapter, without gradient.

        Old and new log-probabilities both come from this path, never from the sampler: the sampler's differ slightly
        (KV cache, left padding), and the ratio before the first step must be 1.
        """
        return self.passes.repeat(lambda: self._token_logprobs(agent, turns)) if len(turns) else turns.behaviour

    def _token_logprobs(self, agent: str, turns: AgentTurns) -> Tensor:
        policy = self.policy.of(agent)
        rows, parts = [], []
        with policy.use(agent):
            for micro_batch in self.passes.split(policy, turns):
                rows.append(micro_batch.rows)
                parts.append(policy.scores(select(turns, micro_batch.rows), self.temperature).logprobs)
        return in_order(rows, parts)

    def decision_logprobs(self, tokens: Tensor, turns: AgentTurns) -> Tensor:
        """Return the log-probability of each decision, [N, U], from those of the tokens, [N, T].

        A decision is a token, or the action; an action's log-probability is normalised by ``config.normalization``.
        """
        if self.config.credit == "token":
            return tokens
        return action_logprob(tokens, turns.action_mask, self.config.normalization, turns.words).unsqueeze(-1)

    def factor_logprobs(self, tokens: Tensor, turns: AgentTurns) -> Tensor:
        """Return the log-probability of each action, [N], as the compounded factor uses it.

        It is that of the whole action at token level, too (docs/reference/algorithms.md, section 2.4).
        """
        plain_sum = self.config.factor_normalization == "sum"
        normalization: Normalization = "sum" if plain_sum else self.config.normalization
        return action_logprob(tokens, turns.action_mask, normalization, turns.words)

    # ---- KL to the reference

    def kl_penalty(self, agent: str, tokens: Tensor, reference: Tensor, turns: AgentTurns) -> Tensor:
        """Return beta KL(pi_old || pi_0) of each decision, [N, U], not normalised; 0 with kl_placement="loss"."""
        if self.config.kl_placement == "loss":
            return torch.zeros_like(tokens if self.config.credit == "token" else tokens[:, :1])
        kl = kl_to_reference(tokens, reference, turns.action_mask, self.config.kl_estimator)
        return self.beta[agent] * (kl if self.config.credit == "token" else kl.sum(-1, keepdim=True))

    def adapt_beta(self, agent: str, kl: float) -> None:
        """Adapt an agent's beta towards ``kl_target``, if there is one.

        Args:
            agent: The agent.
            kl: Its mean k3 per token on the fresh batch.
        """
        if self.config.kl_target and math.isfinite(kl):
            self.beta[agent] = adapted_coefficient(self.beta[agent], kl, self.config.kl_target)

    # ---- training

    @property
    def records_old(self) -> bool:
        """Whether the first epoch can record the old log-probabilities, so that they need no pass of their own.

        It reads every turn before the first optimiser step if it is one minibatch. A KL penalty in the reward needs the
        log-probabilities before that.
        """
        return self.config.minibatches == 1 and self.config.kl_placement == "loss"

    def train(self, adapter: str, data: AgentData, record: Tensor | None = None) -> dict[str, float]:
        """Train one adapter for all epochs; nothing else changes.

        Args:
            adapter: Name of the adapter.
            data: The data of the agents that use it.
            record: [N, T], which the first epoch fills with the old log-probabilities of the tokens; those of ``data``
                are not read then. None: ``data`` has them. See ``records_old``.

        Returns:
            Means over the optimiser steps of the loss and its parts, the number of steps, and ``early_stop``.
        """
        agent = self.policy.blocks[adapter][0]
        steps: list[dict[str, float]] = []
        with self.policy.of(agent).use(agent):
            for epoch in range(self.config.epochs):
                if epoch == 1 and record is not None:
                    data = data.with_old(record, self.decision_logprobs(record, data.turns))
                order = torch.randperm(len(data.turns), generator=self.generator, device="cpu").to(data.old.device)
                for chosen in order.chunk(self.config.minibatches):
                    # The KL of this minibatch is measured in its own forward pass, before the step it would stop.
                    stats = self._accumulate(adapter, data, chosen, None if epoch else record)
                    if self.config.kl_stop and stats["kl_behaviour"] > self.config.kl_stop:
                        return self._finish(adapter, steps, early=True)
                    norm = self._step(adapter, stats["loss"])
                    if norm is not None:
                        steps.append({**stats, "grad_norm": norm})
        return self._finish(adapter, steps, early=False)

    def _finish(self, adapter: str, steps: list[dict[str, float]], *, early: bool) -> dict[str, float]:
        self.optimizers[adapter].zero_grad(set_to_none=True)
        self.counts["early_stops"] += early
        means = {name: sum(s[name] for s in steps) / len(steps) for name in steps[0]} if steps else {}
        return {**means, "steps": float(len(steps)), "early_stop": float(early)}

    def _step(self, adapter: str, loss: float) -> float | None:
        """Make an optimiser step and return the gradient's norm, or None without a step if something is not finite.

        With loss scaling, a finite loss whose gradient overflows is an overflow step: the scale is halved. It is a bad
        step only if the scale cannot be the reason.
        """
        optimizer, scaler = self.optimizers[adapter], self.scalers[adapter]
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        scaler.unscale_(optimizer)
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm))
        finite = math.isfinite(loss) and math.isfinite(norm)
        if finite:
            scaler.step(optimizer)
            self._policy_of(adapter).versions[adapter] += 1
            self.counts["optimiser_steps"] += 1
        else:
            overflow = math.isfinite(loss) and scaler.is_enabled() and scaler.get_scale() > 1
            self.counts["overflow_steps" if overflow else "bad_steps"] += 1
        if scaler.is_enabled():
            scaler.update()
        return norm if finite else None

    def _accumulate(
        self, adapter: str, data: AgentData, chosen: Tensor, record: Tensor | None = None
    ) -> dict[str, float]:
        """Set the gradient of one minibatch, accumulated over its passes, and return the loss and its parts.

        The weights are those of the whole minibatch, so the gradient does not depend on the passes. ``record``: see
        ``train``.
        """
        subset = select(data.turns, chosen)
        aggregation = self.config.loss_aggregation
        weights = LossWeights(
            loss_weights(data.decisions[chosen], data.agent[chosen], aggregation),
            loss_weights(subset.action_mask, data.agent[chosen], aggregation),
        )
        total = self.passes.repeat(lambda: self._accumulate_passes(adapter, subset, data, chosen, weights, record))
        self.counts["trained_tokens"] += int(subset.action_mask.sum())
        return total

    def _accumulate_passes(
        self,
        adapter: str,
        subset: AgentTurns,
        data: AgentData,
        chosen: Tensor,
        weights: LossWeights,
        record: Tensor | None,
    ) -> dict[str, float]:
        """Do what ``_accumulate`` does, once. The gradient is zeroed first, so a failed call can be repeated."""
        self.optimizers[adapter].zero_grad(set_to_none=True)
        policy = self._policy_of(adapter)
        total: dict[str, float] = {}
        for rows, checkpointing in self.passes.split(policy, subset):
            share = LossWeights(weights.decisions[rows], weights.tokens[rows])
            turns = select(subset, rows)
            with checkpointed(policy.causal_lm, on=checkpointing):
                scores = policy.scores(turns, self.temperature, share_prefix=not checkpointing)
                if record is not None:
                    record[chosen[rows]] = scores.logprobs.detach()
                loss, stats = self._loss(scores, turns, data, chosen[rows], share, record)
                self.scalers[adapter].scale(loss).backward()
            for name, value in {**stats, "loss": loss}.items():
                total[name] = total.get(name, 0.0) + float(value.detach())
        return total

    def _loss(
        self,
        scores: TokenScores,
        turns: AgentTurns,
        data: AgentData,
        rows: Tensor,
        weights: LossWeights,
        record: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the weighted loss of some turns, and its parts. ``rows`` are the turns' rows in ``data``."""
        old = data.old[rows] if record is None else self.decision_logprobs(record[rows], turns)
        # Of normalised log-probabilities: only with normalization="sum" is this ratio an importance weight.
        ratio = (self.decision_logprobs(scores.logprobs, turns) - old).exp()
        factor = data.factor[rows].unsqueeze(-1).expand_as(ratio)
        surrogate = clipped_policy_loss(ratio, data.advantage[rows], self.config.clip, factor, weights.decisions)
        entropy = (weights.tokens * scores.entropy).sum()
        kl = kl_to_reference(scores.logprobs, data.reference[rows], turns.action_mask, self.config.kl_estimator)
        loss = surrogate.loss - self.config.entropy_coefficient * entropy
        if self.config.kl_placement == "loss":
            betas = torch.tensor([self.beta[agent] for agent in self.policy.agents], device=data.agent.device)
            loss = loss + (weights.tokens * betas[data.agent[rows]].unsqueeze(-1) * kl).sum()
        stats = {
            "policy_loss": surrogate.loss,
            "clip_fraction": surrogate.clip_fraction,
            "kl_behaviour": (weights.decisions * step_monitor(ratio)).sum(),
            "entropy": entropy,
        }
        return loss, stats


def loss_scaler(policy: SharedBasePolicy) -> torch.amp.GradScaler:
    """Return the loss scaler of an adapter: on if the base model is fp16, whose small gradients are 0 otherwise.

    Source: Micikevicius et al. 2018, Mixed Precision Training, https://arxiv.org/abs/1710.03740.
    """
    return torch.amp.GradScaler(policy.device.type, enabled=policy.head.weight.dtype == torch.float16)
