"""The learner: one PPO update in numbered steps. The arms in ``ladder.py`` are settings of this one code path.

The steps of an update (docs/reference/algorithms.md, sections 2 and 3):

1. Read the batch with the frozen reference model: log pi_0 of every action token, and the critic's inputs.
2. Compute the old log-probabilities of every agent by the training path, before its parameters change: in the first
   epoch of step 5 where that is possible (``Actor.records_old``), else here for all agents.
3. Compute the values (also of the final views of truncated episodes), the explained variance and the gate on lam_in.
4. Compute the advantages with the arm's bootstrap, and whiten them per agent.
5. For each adapter in the update order: ratio, clipped loss with the factor M outside the clip, KL to pi_0, step.
6. After each adapter but the last, in a sequential update with the factor on: new log-probabilities, and
   M <- clamp(M * ratio).
7. Train the critic on the replayed batches.

Axes: B episodes, K turns of an episode, U decisions of a turn, N turns of one agent, T tokens of an action.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from baselines.policies.micro_batches import MicroBatches, PassLimits
from baselines.policies.policy import Policies, prompts_kept
from baselines.policies.prompt_store import STORE_SHARE
from baselines.ppo.actor import Actor, AgentData
from baselines.ppo.credit import final_values, group_credit, monte_carlo_returns, team_advantages, without_variance
from baselines.ppo.diagnostics import Timer, describe, factor_statistics, finite, gradient_shares, variance_by_position
from baselines.ppo.nonfinite import NonFiniteMonitor
from baselines.trajectory import AgentTurns, Batch, select

Metrics = dict[str, Any]
_LEAST_CEILING = 0.02  # with a smaller ceiling, explained variance / ceiling is a quotient of two noises


class Credit(NamedTuple):
    """The result of credit assignment for a batch.

    Attributes:
        advantages: [B, K, U] raw advantages.
        returns: [B, K, U] GAE returns.
        values: [B, K, U] the critic's values.
        keep: [B] bool, False for episodes that no policy is trained on (groups without variance).
    """

    advantages: Tensor
    returns: Tensor
    values: Tensor
    keep: Tensor


class Learner:
    """Trains the policies of a team with one arm.

    Args:
        policy: The policies.
        config: The arm's configuration.
        temperature: The sampling temperature, used for every log-probability.
        seed: Seed of the critic's initial weights, of the order of the minibatches, and of the permuted update order.
        limits: Memory and number of turns of a forward pass; gradients are accumulated over a minibatch's passes.
        failures: Folder for the batch that stopped the run because its loss was not finite; None to save nothing.
    """

    def __init__(
        self,
        policy: Policies,
        config: LearnerConfig,
        *,
        temperature: float,
        seed: int,
        limits: PassLimits | None = None,
        failures: Path | None = None,
    ) -> None:
        self.policy, self.config = policy, config
        self.temperature, self.passes = temperature, MicroBatches(limits or PassLimits())
        # A generator on the CPU draws the same numbers whatever the device, and its state moves between devices.
        self.generator = torch.Generator().manual_seed(seed)
        self.actor = Actor(policy, config, temperature=temperature, passes=self.passes, generator=self.generator)
        has_critic = config.critic != "none"
        bases = [policy.base_of(agent) for agent in policy.agents]
        sizes = policy.vocabulary_sizes if config.critic_network == "transformer" else policy.hidden_sizes
        self.critic = TeamCritic(sizes, bases, config, seed, policy.device) if has_critic else None
        self.monitor = NonFiniteMonitor(config.max_bad_updates, failures)
        self.batches = 0
        self.skipped_batches = 0

    def update(self, batch: Batch) -> Metrics:
        """Run all steps of an update on one batch.

        The first ``critic_warmup`` batches train the critic only. They count in a budget of episodes and tokens like
        all others.

        Args:
            batch: A batch that was sampled from the current policies.

        Returns:
            Metrics as plain numbers that JSON can hold; docs/metrics.md explains each of them.

        Raises:
            NonFiniteLoss: If too many updates in a row had a loss or a gradient that is not finite.
        """
        if self.config.update == "none":
            return {"skipped": "an arm without updates", "agents": {}}
        self.batches += 1
        if self.critic and self.batches <= self.config.critic_warmup:
            return self._warm_up(batch)
        if without_variance(batch, self.config):
            self.skipped_batches += 1
            return {"skipped_batches": self.skipped_batches, "skipped": "no reward variance", "agents": {}}
        with prompts_kept(self.policy, int(self.passes.budget * STORE_SHARE)):
            return self._train(batch)

    def _train(self, batch: Batch) -> Metrics:
        """Do what ``update`` does with a batch that policies are trained on."""
        timer, bad, trained = Timer(), self._bad_steps(), self.actor.counts["trained_tokens"]
        with timer.measure("reference"):  # 1
            features, reference = self._read(batch)
        with timer.measure("old_logprobs"):  # 2
            # All agents, before any update: in a sequential update the factor compares with the policies that sampled.
            acting = {agent: turns for agent, turns in batch.turns.items() if agent in self.policy.adapter_of}
            # Where the first epoch records them, that of the agent's own update does.
            old = {
                agent: torch.full_like(turns.behaviour, math.nan)
                if self.actor.records_old
                else self.actor.token_logprobs(agent, turns)
                for agent, turns in acting.items()
            }
        with timer.measure("values"):  # 3, 4
            # The critic has not been trained on this batch yet, so its explained variance is that of fresh data.
            credit, features, statistics = self._assign_credit(batch, features, self._penalty(batch, old, reference))
            counted = features.decisions & credit.keep[:, None, None]
            spread = variance_by_position(credit.advantages, counted, batch.position)
        data = {agent: self._agent_data(batch, agent, old[agent], reference[agent], credit) for agent in old}
        with timer.measure("actor"):  # 5, 6
            agents = self._update_agents(batch, {agent: d for agent, d in data.items() if len(d[0].turns)})
        if self.critic:
            with timer.measure("critic"):  # 7
                loss = self.critic.train(features, credit.values, credit.returns, self.config.critic_epochs)
            statistics["value_loss"] = loss if math.isfinite(loss) else None
        self.monitor.observe(self._bad_steps() > bad, batch)
        counts = {name: n for name, n in self.actor.counts.items() if name != "trained_tokens"}
        return {
            "skipped_batches": self.skipped_batches,
            "bad_updates": self.monitor.total,
            **counts,
            "out_of_memory": self.passes.out_of_memory,
            "agents": agents,
            **statistics,
            "advantage_variance_by_position": spread,
            "trained_tokens": self.actor.counts["trained_tokens"] - trained,
            "seconds": timer.seconds,
        }

    def _warm_up(self, batch: Batch) -> Metrics:
        """Train the critic for ``critic_warmup_epochs`` and no policy. Return metrics as ``update`` does."""
        assert self.critic is not None
        timer = Timer()
        with timer.measure("critic"):
            features, _ = self._read(batch)
            no_penalty = batch.score.new_zeros(features.decisions.shape)
            credit, features, statistics = self._assign_credit(batch, features, no_penalty)
            loss = self.critic.train(features, credit.values, credit.returns, self.config.critic_warmup_epochs)
        statistics["value_loss"] = loss if math.isfinite(loss) else None
        return {"skipped": "critic warm-up", "agents": {}, **statistics, "seconds": timer.seconds}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of optimisers, critic, generator and counters as tensors and plain values.

        The weights of the policies are not part of it. ``torch.load(..., weights_only=True)`` accepts what
        ``torch.save`` writes of it.
        """
        return {
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict() if self.critic else None,
            "generator": self.generator.get_state(),
            "batches": self.batches,
            "skipped_batches": self.skipped_batches,
            "bad_updates": [self.monitor.in_a_row, self.monitor.total],
            "passes": self.passes.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned.

        Together with the weights of the policies this resumes training bit for bit.
        """
        self.actor.load_state_dict(state["actor"])
        if self.critic:
            self.critic.load_state_dict(state["critic"])
        self.generator.set_state(state["generator"])
        self.batches, self.skipped_batches = state["batches"], state["skipped_batches"]
        self.monitor.in_a_row, self.monitor.total = state["bad_updates"]
        self.passes.load_state_dict(state["passes"])

    def _bad_steps(self) -> int:
        return self.actor.counts["bad_steps"] + (self.critic.bad_steps if self.critic else 0)

    # ---- the whole batch

    def _read(self, batch: Batch) -> tuple[TurnFeatures, dict[str, Tensor]]:
        target = monte_carlo_returns(batch, self.config)
        return self.passes.repeat(
            lambda: read_reference(self.policy, batch, self.config, target, self.temperature, self.passes)
        )

    def _penalty(self, batch: Batch, old: dict[str, Tensor], reference: dict[str, Tensor]) -> Tensor:
        """Return [B, K, U], what KL to pi_0 subtracts from the reward of each decision."""
        penalty = batch.score.new_zeros(decision_mask(batch, self.config).shape)
        for agent in old:
            turns = batch.turns[agent]
            mine = self.actor.kl_penalty(agent, old[agent], reference[agent], turns)
            penalty[turns.episode, turns.slot, : mine.shape[1]] = mine
        return penalty

    def _assign_credit(
        self, batch: Batch, features: TurnFeatures, penalty: Tensor
    ) -> tuple[Credit, TurnFeatures, Metrics]:
        """Return the advantages, the features with the critic's targets, and statistics of the critic.

        In the targets, a truncated episode has the value of its own final view in place of the score that it lacks.
        """
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
        """Return ``credit.final_values`` with the values of this learner's critic, [B, K]."""
        if batch.views is None or self.critic is None:
            return torch.zeros_like(batch.round_score)
        views = self.passes.repeat(lambda: read_views(self.policy, batch, self.config, self.passes))
        return final_values(batch, self.critic.view_values(features, batch.views.episode, views), self.config)

    def _explained(self, batch: Batch, features: TurnFeatures, values: Tensor, scored: Tensor) -> Metrics:
        """Return explained variances over the turns of episodes that have a score; ``scored`` is [B, K] bool.

        The target of a truncated episode contains a value of the critic itself, so it would explain itself.
        """
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
        """Return ``credit.team_advantages`` with this learner's configuration, [B, K, U] each."""
        return team_advantages(batch, decisions, values, penalty, self.config, lam_in, final)

    # ---- one agent

    def _agent_data(
        self, batch: Batch, agent: str, old_tokens: Tensor, reference: Tensor, credit: Credit
    ) -> tuple[AgentData, float]:
        """Return an agent's training data, and the standard deviation of its advantages before whitening."""
        keep = credit.keep[batch.turns[agent].episode]
        turns, old_tokens, reference = select(batch.turns[agent], keep), old_tokens[keep], reference[keep]
        decisions = turns.action_mask if self.config.credit == "token" else turns.action_mask[:, :1]
        raw = credit.advantages[turns.episode, turns.slot][:, : decisions.shape[1]]
        chosen = raw[decisions]
        data = AgentData(
            turns=turns,
            old_tokens=old_tokens,
            reference=reference,
            decisions=decisions,
            old=self.actor.decision_logprobs(old_tokens, turns),
            # Whitened per agent: in a chain the advantages of different positions differ in scale.
            advantage=raw if self.config.bootstrap == "group" else whiten(raw, decisions),
            factor=raw.new_ones(len(turns)),
            agent=torch.full_like(turns.episode, self.policy.agents.index(agent)),
        )
        return data, float(chosen.std(correction=0)) if len(chosen) else 0.0

    def _update_agents(self, batch: Batch, acting: dict[str, tuple[AgentData, float]]) -> dict[str, dict[str, float]]:
        """Steps 5 and 6. acting: agent -> its data and the standard deviation of its advantages. Return its metrics."""
        metrics = {agent: {"kl_coefficient": self.actor.beta[agent]} for agent in acting}
        # Whitening would scale the near-zero advantages of an agent that the reward does not depend on up to noise of
        # size 1. Such an agent is not trained on this batch (docs/reference/critic.md, section 7).
        floor = self.config.advantage_floor * sum(spread for _, spread in acting.values()) / max(1, len(acting))
        factor = torch.ones_like(batch.score).unsqueeze(-1).repeat(1, int(batch.round_index.max()) + 1)  # [B, rounds]
        blocks = [block for block in self._blocks() if any(agent in acting for agent in block[1])]
        for number, (adapter, sharers) in enumerate(blocks):
            acted = [agent for agent in sharers if agent in acting]
            trained = [agent for agent in acted if acting[agent][1] >= floor]
            self._read_old(acting, [agent for agent in acted if agent not in trained])
            rounds = {agent: _rounds(batch, acting[agent][0].turns) for agent in acted}
            stats: dict[str, float] = {}
            if trained:
                parts = [_with_factor(acting[agent][0], factor[rounds[agent]]) for agent in trained]
                joined = AgentData.join(parts)
                record = torch.zeros_like(joined.old_tokens) if self.actor.records_old else None
                stats = self.actor.train(adapter, joined, record)
                if record is not None:
                    self._set_old(acting, trained, record.split([len(part.turns) for part in parts]))
            for agent in acted:
                metrics[agent] |= {"skipped": 0.0, **stats} if agent in trained else {"skipped": 1.0}
                if self.config.factor == "on":
                    metrics[agent] |= factor_statistics(factor[rounds[agent]], self.config.factor_clamp)
            if self.config.factor == "on" and number + 1 < len(blocks):  # nothing is multiplied by the last agent's M
                # Also for an agent that was skipped: it may share its adapter with one that was trained.
                for agent in acted:
                    self._compound(agent, acting[agent][0], factor, rounds[agent])
        self._read_old(acting, [agent for agent in acting if not any(agent in sharers for _, sharers in blocks)])
        shares = gradient_shares(metrics, self.policy.adapter_of)
        for agent, (data, spread) in acting.items():
            metrics[agent] |= describe(data, spread) | ({"grad_share": shares[agent]} if shares else {})
            self.actor.adapt_beta(agent, metrics[agent]["kl_reference"])
        return metrics

    def _read_old(self, acting: dict[str, tuple[AgentData, float]], agents: Sequence[str]) -> None:
        """Complete the data of agents that are not trained on this batch with their old log-probabilities."""
        if self.actor.records_old:
            self._set_old(acting, agents, [self.actor.token_logprobs(a, acting[a][0].turns) for a in agents])

    def _set_old(
        self, acting: dict[str, tuple[AgentData, float]], agents: Sequence[str], found: Sequence[Tensor]
    ) -> None:
        """Set the old log-probabilities of some agents, [N, T or more] each."""
        for agent, old in zip(agents, found, strict=True):
            data, spread = acting[agent]
            own = old[:, : data.old_tokens.shape[1]]
            acting[agent] = data.with_old(own, self.actor.decision_logprobs(own, data.turns)), spread

    def _blocks(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the adapters to train on this batch, in the update order, each with the agents that share it."""
        blocks = list(self.policy.blocks.items())
        if self.config.round_robin and blocks:
            turn = (self.batches - 1) // self.config.round_robin
            return [blocks[turn % len(blocks)]]
        sequential = self.config.update == "sequential"
        if sequential and self.config.order == "permuted":
            order = torch.randperm(len(blocks), generator=self.generator, device="cpu").tolist()
            return [blocks[i] for i in order]
        return blocks[::-1] if sequential and self.config.order == "reversed" else blocks

    def _compound(self, agent: str, data: AgentData, factor: Tensor, rounds: tuple[Tensor, Tensor]) -> None:
        """Step 6: M <- clamp(M * ratio), in place, in the rounds of ``factor`` [B, rounds] in which the agent acted.

        Source: docs/reference/algorithms.md, section 2.4.
        """
        new = self.actor.factor_logprobs(self.actor.token_logprobs(agent, data.turns), data.turns)
        old = self.actor.factor_logprobs(data.old_tokens, data.turns)
        # An agent may act twice in a round (a tool call, then a reply). Its log-ratios are added first, so that
        # the clamp is applied once per agent and round.
        change = torch.zeros_like(factor).index_put(rounds, new - old, accumulate=True)
        factor[rounds] = compound(factor, change, torch.zeros_like(factor), self.config.factor_clamp)[rounds]


def _rounds(batch: Batch, turns: AgentTurns) -> tuple[Tensor, Tensor]:
    """Return the indices of an agent's turns in a tensor [B, rounds]."""
    return turns.episode, batch.round_index[turns.episode, turns.slot]


def _with_factor(data: AgentData, factor: Tensor) -> AgentData:
    return AgentData(**{name: getattr(data, name) for name in AgentData.__slots__} | {"factor": factor})
