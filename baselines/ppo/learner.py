"""The PPO family in numbered steps; the arms of ``ladder.py`` are settings of this one code path.

A batch is updated in these steps (algorithms.md 2 and 3):

1. read the batch with the frozen reference: log pi_0 of every action, the critic's features
2. old log-probabilities of every agent by the training path, before anything moves
3. values, those of a truncated episode's final views too, explained variance, the gate on lam_in
4. advantages with the arm's bootstrap, whitened per agent
5. for each adapter in the update order: ratio, clipped loss with the factor outside the clip, KL to pi_0, step
6. after a sequential update with the factor on: new log-probabilities, M <- clamp(M * ratio)
7. the critic's epochs on the replayed batches
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from baselines.critics.critic import TeamCritic, each_position
from baselines.critics.features import TurnFeatures, decision_mask, read_reference, read_views
from baselines.functional.advantages import whiten
from baselines.functional.losses import explained_variance_ceiling
from baselines.functional.ratios import compound
from baselines.learner_config import LearnerConfig
from baselines.policies.policy import Policies
from baselines.ppo.actor import Actor, AgentData
from baselines.ppo.credit import final_values, group_credit, monte_carlo_returns, team_advantages
from baselines.ppo.diagnostics import Timer, describe, factor_statistics, finite
from baselines.ppo.nonfinite import NonFiniteMonitor
from baselines.trajectory import AgentTurns, Batch, select

Metrics = dict[str, Any]
_LEAST_CEILING = 0.02  # below it, the share of what can be explained is a quotient of two noises


class Credit(NamedTuple):
    """What a batch is worth: advantages, returns and values [B, K, U], and which episodes count [B]."""

    advantages: Tensor
    returns: Tensor
    values: Tensor
    keep: Tensor


class Learner:
    """Trains a team's policies with one arm. temperature: the sampling temperature, used for every log-probability.

    rows: turns per forward pass (gradients are accumulated over them). seed: of the critic's weights, the minibatches
    and the permuted order. failures: a folder for the batch that stopped a run (see ``guards``).
    """

    def __init__(
        self,
        policy: Policies,
        config: LearnerConfig,
        *,
        temperature: float,
        seed: int,
        rows: int = 128,
        failures: Path | None = None,
    ) -> None:
        self.policy, self.config = policy, config
        self.temperature, self.rows = temperature, rows
        self.generator = torch.Generator().manual_seed(seed)
        self.actor = Actor(policy, config, temperature=temperature, rows=rows, generator=self.generator)
        has_critic = config.critic != "none"
        bases = [policy.base_of(agent) for agent in policy.agents]
        sizes = policy.vocabulary_sizes if config.critic_network == "transformer" else policy.hidden_sizes
        self.critic = TeamCritic(sizes, bases, config, seed) if has_critic else None
        self.guard = NonFiniteMonitor(config.max_bad_updates, failures)
        self.batches = 0
        self.skipped_batches = 0

    def update(self, batch: Batch) -> Metrics:
        """All steps on one batch. Returns the metrics (plain numbers, JSON-able); see docs/metrics.md for each.

        The first ``critic_warmup`` batches train critics only: they are batches like the others, so whoever counts
        episodes and tokens counts them, for every arm. Raises ``guards.NonFiniteLoss``.
        """
        if self.config.update == "none":
            return {"skipped": "an arm without updates", "agents": {}}
        self.batches += 1
        if self.critic and self.batches <= self.config.critic_warmup:
            return self._warm_up(batch)
        if _without_variance(batch, self.config):
            self.skipped_batches += 1
            return {"skipped_batches": self.skipped_batches, "skipped": "no reward variance", "agents": {}}
        watch, bad, trained = Timer(), self._bad_steps(), self.actor.counts["trained_tokens"]
        with watch.measure("reference"):  # 1
            features, reference = self._read(batch)
        with watch.measure("old_logprobs"):  # 2
            acting = {agent: turns for agent, turns in batch.turns.items() if agent in self.policy.adapter_of}
            old = {agent: self.actor.token_logprobs(agent, turns) for agent, turns in acting.items()}
        with watch.measure("values"):  # 3, 4
            credit, features, judged = self._judge(batch, features, self._penalty(batch, old, reference))
        data = {agent: self._agent_data(batch, agent, old[agent], reference[agent], credit) for agent in old}
        with watch.measure("actor"):  # 5, 6
            agents = self._update_agents(batch, {agent: d for agent, d in data.items() if len(d[0].turns)})
        if self.critic:
            with watch.measure("critic"):  # 7
                loss = self.critic.train(features, credit.values, credit.returns, self.config.critic_epochs)
            judged["value_loss"] = loss if math.isfinite(loss) else None
        self.guard.observe(self._bad_steps() > bad, batch)
        counts = {name: n for name, n in self.actor.counts.items() if name != "trained_tokens"}
        return {
            "skipped_batches": self.skipped_batches,
            "bad_updates": self.guard.total,
            **counts,
            "agents": agents,
            **judged,
            "trained_tokens": self.actor.counts["trained_tokens"] - trained,
            "seconds": watch.seconds,
        }

    def _warm_up(self, batch: Batch) -> Metrics:
        """``critic_warmup_epochs`` of the critic alone; policies stay. Returns metrics as ``update`` does."""
        assert self.critic is not None
        watch = Timer()
        with watch.measure("critic"):
            features, _ = self._read(batch)
            credit, features, judged = self._judge(batch, features, torch.zeros(features.decisions.shape))
            loss = self.critic.train(features, credit.values, credit.returns, self.config.critic_warmup_epochs)
        judged["value_loss"] = loss if math.isfinite(loss) else None
        return {"skipped": "critic warm-up", "agents": {}, **judged, "seconds": watch.seconds}

    def state_dict(self) -> dict[str, Any]:
        """Optimisers, critic, generator and counters, as tensors and plain values; the policy's weights are kept by
        whoever owns the policy. ``torch.load(..., weights_only=True)`` reads it back."""
        return {
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict() if self.critic else None,
            "generator": self.generator.get_state(),
            "batches": self.batches,
            "skipped_batches": self.skipped_batches,
            "bad_updates": [self.guard.in_a_row, self.guard.total],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what ``state_dict`` gave: bit for bit, once the policy's weights are restored, too."""
        self.actor.load_state_dict(state["actor"])
        if self.critic:
            self.critic.load_state_dict(state["critic"])
        self.generator.set_state(state["generator"])
        self.batches, self.skipped_batches = state["batches"], state["skipped_batches"]
        self.guard.in_a_row, self.guard.total = state["bad_updates"]

    def _bad_steps(self) -> int:
        return self.actor.counts["bad_steps"] + (self.critic.bad_steps if self.critic else 0)

    # ---- the whole batch

    def _read(self, batch: Batch) -> tuple[TurnFeatures, dict[str, Tensor]]:
        target = monte_carlo_returns(batch, self.config)
        return read_reference(self.policy, batch, self.config, target, self.temperature, self.rows)

    def _penalty(self, batch: Batch, old: dict[str, Tensor], reference: dict[str, Tensor]) -> Tensor:
        """What KL to pi_0 takes from the reward of each decision: [B, K, U]."""
        penalty = torch.zeros(decision_mask(batch, self.config).shape)
        for agent in old:
            turns = batch.turns[agent]
            mine = self.actor.kl_penalty(agent, old[agent], reference[agent], turns)
            penalty[turns.episode, turns.slot, : mine.shape[1]] = mine
        return penalty

    def _judge(self, batch: Batch, features: TurnFeatures, penalty: Tensor) -> tuple[Credit, TurnFeatures, Metrics]:
        """What the batch is worth, and the features with the targets that the critic learns from: a truncated episode
        has the value of its own final view in the place of a score."""
        if self.critic is None:
            advantages, keep = group_credit(batch, features.decisions, penalty)
            return (
                Credit(advantages, advantages, advantages, keep), features, {"groups_kept": float(keep.float().mean())}
            )  # fmt: skip
        scored = batch.mask & batch.scored.unsqueeze(-1)
        self.critic.start(features, scored)
        values, final = self.critic.values(features), self._final_values(batch, features)
        features = replace(features, target=monte_carlo_returns(batch, self.config, final))
        metrics = self._explained(batch, features, values, scored)
        advantages, returns = self.advantages(batch, features.decisions, values, penalty, self.critic.lam_in(), final)
        return Credit(advantages, returns, values, torch.ones_like(batch.score, dtype=torch.bool)), features, metrics

    def _final_values(self, batch: Batch, features: TurnFeatures) -> Tensor:
        """``credit.final_values`` by this critic, [B, K]."""
        if batch.views is None or self.critic is None:
            return torch.zeros_like(batch.round_score)
        views = read_views(self.policy, batch, self.config, self.rows)
        return final_values(batch, self.critic.view_values(features, batch.views.episode, views), self.config)

    def _explained(self, batch: Batch, features: TurnFeatures, values: Tensor, scored: Tensor) -> Metrics:
        """Explained variance of fresh turns, over the episodes that have a score: scored [B, K]."""
        assert self.critic is not None
        counted = replace(features, mask=scored)
        by_position = self.critic.observe_explained_variance(values, counted, batch.position)
        metrics = {
            "explained_variance": self.critic.running_ev,
            "explained_variance_by_position": finite(by_position),
            "lam_in": self.critic.lam_in(),
        }
        if batch.reply_score is not None:
            metrics["reply_score"] = float(batch.reply_score[batch.mask].mean())
        if batch.label is not None:
            label, target = batch.label, features.target
            ceiling = each_position(scored, batch.position, label, target, explained_variance_ceiling)
            metrics["explained_variance_ceiling"] = finite(ceiling)
            share = {p: by_position[p] / top if top >= _LEAST_CEILING else math.nan for p, top in ceiling.items()}
            metrics["explained_variance_of_ceiling"] = finite(share)
        return metrics

    def advantages(
        self, batch: Batch, decisions: Tensor, values: Tensor, penalty: Tensor, lam_in: float, final: Tensor
    ) -> tuple[Tensor, Tensor]:
        """``credit.team_advantages`` with this learner's settings: raw advantages and returns, [B, K, U] each."""
        return team_advantages(batch, decisions, values, penalty, self.config, lam_in, final)

    # ---- one agent

    def _agent_data(
        self, batch: Batch, agent: str, old_tokens: Tensor, reference: Tensor, credit: Credit
    ) -> tuple[AgentData, float]:
        """The agent's share of the batch, and the standard deviation of its advantages before whitening."""
        kept = credit.keep[batch.turns[agent].episode]
        turns, old_tokens, reference = select(batch.turns[agent], kept), old_tokens[kept], reference[kept]
        decisions = turns.action_mask if self.config.credit == "token" else turns.action_mask[:, :1]
        raw = credit.advantages[turns.episode, turns.slot][:, : decisions.shape[1]]
        chosen = raw[decisions]
        data = AgentData(
            turns=turns,
            old_tokens=old_tokens,
            reference=reference,
            decisions=decisions,
            old=self.actor.decision_logprobs(old_tokens, turns),
            advantage=raw if self.config.bootstrap == "group" else whiten(raw, decisions),
            factor=torch.ones(len(turns)),
            agent=torch.full((len(turns),), self.policy.agents.index(agent)),
        )
        return data, float(chosen.std(correction=0)) if len(chosen) else 0.0

    def _update_agents(self, batch: Batch, acting: dict[str, tuple[AgentData, float]]) -> dict[str, dict[str, float]]:
        metrics = {
            agent: describe(d, spread) | {"kl_coefficient": self.actor.beta[agent]}
            for agent, (d, spread) in acting.items()
        }
        floor = self.config.advantage_floor * sum(spread for _, spread in acting.values()) / max(1, len(acting))
        factor = torch.ones_like(batch.score).unsqueeze(-1).repeat(1, int(batch.round_index.max()) + 1)  # [B, rounds]
        for adapter, sharers in self._blocks():
            acted = [agent for agent in sharers if agent in acting]
            trained = [agent for agent in acted if acting[agent][1] >= floor]
            place = {agent: _rounds(batch, acting[agent][0].turns) for agent in acted}
            stats: dict[str, float] = {}
            if trained:
                parts = [_with_factor(acting[agent][0], factor[place[agent]]) for agent in trained]
                stats = self.actor.train(adapter, AgentData.join(parts))
            if self.config.factor == "on":
                for agent in acted:
                    self._compound(agent, acting[agent][0], factor, place[agent])
            for agent in acted:
                metrics[agent] |= {"skipped": 0.0, **stats} if agent in trained else {"skipped": 1.0}
                if self.config.factor == "on":
                    metrics[agent] |= factor_statistics(factor[place[agent]], self.config.factor_clamp)
        for agent in metrics:
            self.actor.adapt_beta(agent, metrics[agent]["kl_reference"])
        return metrics

    def _blocks(self) -> list[tuple[str, tuple[str, ...]]]:
        """The adapters to train on this batch, in the update order, each with the agents that share it."""
        blocks = list(self.policy.blocks.items())
        if self.config.round_robin and blocks:
            turn = (self.batches - 1) // self.config.round_robin
            return [blocks[turn % len(blocks)]]
        if self.config.update == "sequential" and self.config.order == "permuted":
            return [blocks[i] for i in torch.randperm(len(blocks), generator=self.generator).tolist()]
        return blocks

    def _compound(self, agent: str, data: AgentData, factor: Tensor, place: tuple[Tensor, Tensor]) -> None:
        """M <- clamp(M * ratio) in the rounds where the agent acted; ``factor`` [B, rounds] is changed in place."""
        new = self.actor.factor_logprobs(self.actor.token_logprobs(agent, data.turns), data.turns)
        old = self.actor.factor_logprobs(data.old_tokens, data.turns)
        change = torch.zeros_like(factor).index_put(place, new - old, accumulate=True)  # of all its turns in a round
        factor[place] = compound(factor, change, torch.zeros_like(factor), self.config.factor_clamp)[place]


def _without_variance(batch: Batch, config: LearnerConfig) -> bool:
    """Whether there is nothing to learn: all scores are the same (in every group, if groups are compared), and no
    truncated episode has a value of the critic's in its score's place."""
    if config.bootstrap == "group":
        nothing = torch.zeros_like(batch.mask).unsqueeze(-1)
        return not bool(group_credit(batch, nothing, nothing.float())[1].any())
    if config.reward == "maporl" and batch.reply_score is not None:
        return float(batch.reply_score[batch.mask].std(correction=0)) < 1e-8
    return batch.views is None and float(batch.score.std(correction=0)) < 1e-8


def _rounds(batch: Batch, turns: AgentTurns) -> tuple[Tensor, Tensor]:
    """Where an agent's turns stand in a [B, rounds] table."""
    return turns.episode, batch.round_index[turns.episode, turns.slot]


def _with_factor(data: AgentData, factor: Tensor) -> AgentData:
    return AgentData(**{name: getattr(data, name) for name in AgentData.__slots__} | {"factor": factor})
