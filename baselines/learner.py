"""The PPO family in numbered steps; the arms of ``ladder.py`` are settings of this one code path.

A batch is updated in these steps (algorithms.md 2):

1. read the batch with the frozen reference: log pi_0 of every action, the critic's features
2. old log-probabilities of every agent by the training path, before anything moves
3. values, explained variance, the gate on lam_in
4. advantages with the arm's bootstrap, whitened per agent
5. for each agent in the update order: ratio, clipped loss with the factor outside the clip, KL to pi_0, step
6. after a sequential update with the factor on: new log-probabilities, M <- clamp(M * ratio)
7. the critic's epochs on the replayed batches
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from baselines.advantages import Discounts, chained_gae, whiten
from baselines.critic import TeamCritic, read_reference
from baselines.ladder import LearnerConfig
from baselines.losses import clipped_policy_loss, kl_to_reference
from baselines.policy import TeamPolicy, row_blocks
from baselines.ratios import action_logprob, compound, effective_sample_size, step_monitor
from baselines.trajectory import AgentTurns, Batch, own_turns


class AgentData(NamedTuple):
    """One agent's share of a batch: token log-probs [N, T] of the old policy and of pi_0, action log-prob [N], whitened
    advantage [N] and its standard deviation before whitening."""

    turns: AgentTurns
    old_tokens: Tensor
    old: Tensor
    reference: Tensor
    advantage: Tensor
    spread: float


@dataclass
class Stopwatch:
    """Seconds by name, for the account of where an update's time goes."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


class Learner:
    """Trains a ``TeamPolicy`` with one arm. temperature: the sampling temperature, used for every log-probability.

    rows: turns per forward pass (gradients are accumulated over them). seed: of the critic's weights, the minibatches
    and the permuted order.
    """

    def __init__(
        self, policy: TeamPolicy, config: LearnerConfig, *, temperature: float, seed: int, rows: int = 128
    ) -> None:
        self.policy, self.config = policy, config
        self.temperature, self.rows = temperature, rows
        self.critic = TeamCritic(policy.hidden_size, policy.agents, config, seed)
        self.optimizers = {
            agent: torch.optim.Adam(policy.adapter_parameters(agent), lr=config.learning_rate)
            for agent in policy.agents
        }
        self.generator = torch.Generator().manual_seed(seed)
        self.skipped_batches = 0

    def update(self, batch: Batch) -> dict[str, Any]:
        """All steps on one batch. Returns the metrics (plain numbers, JSON-able); see docs/metrics.md for each."""
        if float(batch.score.std(correction=0)) < 1e-8:
            self.skipped_batches += 1
            return {"skipped_batches": self.skipped_batches, "skipped": "no reward variance", "agents": {}}
        watch = Stopwatch()
        with watch.measure("reference"):  # 1
            target = monte_carlo_returns(batch, self.config)
            features, reference = read_reference(self.policy, batch, target, self.temperature, self.rows)
        with watch.measure("old_logprobs"):  # 2
            old = {agent: self._token_logprobs(agent, turns) for agent, turns in batch.turns.items()}
        with watch.measure("values"):  # 3
            values = self.critic.values(features)
            by_position = self.critic.observe_explained_variance(values, features, batch.position)
            lam_in = self.critic.lam_in()
        advantages, returns = self.advantages(batch, values, lam_in)  # 4
        data = {agent: self._agent_data(batch, agent, old[agent], reference[agent], advantages) for agent in old}
        with watch.measure("actor"):  # 5, 6
            metrics = self._update_agents(batch, data)
        with watch.measure("critic"):  # 7
            value_loss = self.critic.train(features, values, returns)
        return {
            "skipped_batches": self.skipped_batches,
            "agents": metrics,
            "value_loss": value_loss,
            "explained_variance": self.critic.running_ev,
            "explained_variance_by_position": by_position,
            "lam_in": lam_in,
            "trained_tokens": sum(int(t.action_mask.sum()) for t in batch.turns.values()) * self.config.epochs,
            "seconds": watch.seconds,
        }

    def advantages(self, batch: Batch, values: Tensor, lam_in: float) -> tuple[Tensor, Tensor]:
        """Raw advantages and returns, [B, K] each, with the arm's bootstrap. The learner places the team's score
        itself: once on a round's last turn (successor), or on every agent's own turn (own); algorithms.md 2.2."""
        c = self.config
        discounts = Discounts(c.gamma, c.lam, c.gamma_in, lam_in)
        if c.bootstrap == "successor":
            rewards = batch.round_score * batch.round_end
            zeros = torch.zeros_like(values)
            return chained_gae(rewards, values, batch.round_end, batch.terminated, batch.ended, zeros, discounts)
        advantages, returns = torch.zeros_like(values), torch.zeros_like(values)
        for m in range(len(batch.agents)):
            mine = batch.mask & (batch.agent_index == m)
            rows, columns, keep = own_turns(mine)
            a, g = own_gae(batch, values, rows, columns, keep, discounts)
            advantages[rows[keep], columns[keep]], returns[rows[keep], columns[keep]] = a[keep], g[keep]
        return advantages, returns

    # ---- one agent

    def _agent_data(
        self, batch: Batch, agent: str, old_tokens: Tensor, reference: Tensor, advantages: Tensor
    ) -> AgentData:
        turns = batch.turns[agent]
        raw = advantages[turns.episode, turns.slot]
        return AgentData(
            turns=turns,
            old_tokens=old_tokens,
            old=action_logprob(old_tokens, turns.action_mask, self.config.normalization, turns.words),
            reference=reference,
            advantage=whiten(raw, torch.ones_like(raw, dtype=torch.bool)),
            spread=float(raw.std(correction=0)) if len(raw) else 0.0,
        )

    def _update_agents(self, batch: Batch, data: dict[str, AgentData]) -> dict[str, dict[str, float]]:
        acting = {agent: d for agent, d in data.items() if len(d.turns)}
        mean_spread = sum(d.spread for d in acting.values()) / len(acting)
        factor = torch.ones_like(batch.score).unsqueeze(-1).repeat(1, int(batch.round_index.max()) + 1)  # [B, rounds]
        metrics = {}
        for agent in self._order(list(acting)):
            d = acting[agent]
            place = d.turns.episode, batch.round_index[d.turns.episode, d.turns.slot]
            m = factor[place]
            gap = float(((d.old_tokens - d.turns.behaviour).abs() * d.turns.action_mask).max())
            skip = d.spread < self.config.advantage_floor * mean_spread
            stats = {"skipped": 1.0} if skip else {"skipped": 0.0, **self._train_agent(agent, d, m)}
            stats |= {"advantage_std": d.spread, "sampler_gap": gap, **_describe(d.turns)}
            if self.config.factor == "on":
                new = self._action_logprobs(agent, d.turns)
                factor[place] = compound(m, new, d.old, self.config.factor_clamp)
                stats |= self._factor_stats(factor[place])
            metrics[agent] = stats
        return metrics

    def _order(self, agents: list[str]) -> list[str]:
        if self.config.update == "sequential" and self.config.order == "permuted":
            return [agents[i] for i in torch.randperm(len(agents), generator=self.generator).tolist()]
        return agents

    def _train_agent(self, agent: str, d: AgentData, factor: Tensor) -> dict[str, float]:
        """Epochs of minibatches for one adapter; nothing else moves. -> means over its optimiser steps."""
        optimizer, parameters = self.optimizers[agent], self.policy.adapter_parameters(agent)
        steps: list[dict[str, float]] = []
        with self.policy.use(agent):
            for _ in range(self.config.epochs):
                order = torch.randperm(len(d.turns), generator=self.generator)
                for chosen in order.chunk(self.config.minibatches):
                    optimizer.zero_grad(set_to_none=True)
                    stats = self._accumulate(d, factor, chosen)
                    norm = torch.nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm)
                    optimizer.step()
                    steps.append({**stats, "grad_norm": float(norm)})
            optimizer.zero_grad(set_to_none=True)
        return {name: sum(s[name] for s in steps) / len(steps) for name in steps[0]}

    def _accumulate(self, d: AgentData, factor: Tensor, chosen: Tensor) -> dict[str, float]:
        """Backward passes of one minibatch, in blocks of rows; each block weighs by its share of the turns."""
        total: dict[str, float] = {}
        subset = select(d.turns, chosen)
        for block in row_blocks(len(chosen), self.rows):
            rows = chosen[block]
            share = len(rows) / len(chosen)
            scores = self.policy.scores(subset, block, self.temperature)
            mask = subset.action_mask[block]
            new = action_logprob(scores.logprobs, mask, self.config.normalization, subset.words[block])
            ratio = (new - d.old[rows]).exp()
            surrogate = clipped_policy_loss(ratio, d.advantage[rows], self.config.clip, factor[rows])
            entropy = (scores.entropy * mask).sum() / mask.sum()
            kl = kl_to_reference(scores.logprobs, d.reference[rows], mask)
            loss = surrogate.loss + self.config.kl_coefficient * kl - self.config.entropy_coefficient * entropy
            (loss * share).backward()
            stats = {
                "policy_loss": surrogate.loss,
                "clip_fraction": surrogate.clip_fraction,
                "kl_reference": kl,
                "kl_behaviour": step_monitor(ratio).mean(),
                "entropy": entropy,
            }
            for name, value in stats.items():
                total[name] = total.get(name, 0.0) + share * float(value.detach())
        return total

    # ---- log-probabilities by the training path

    @torch.no_grad()
    def _token_logprobs(self, agent: str, turns: AgentTurns) -> Tensor:
        """[N, T] under the agent's adapter as it is now."""
        with self.policy.use(agent):
            blocks = row_blocks(len(turns), self.rows)
            parts = [self.policy.scores(turns, block, self.temperature).logprobs for block in blocks]
        return torch.cat(parts) if parts else turns.behaviour

    def _action_logprobs(self, agent: str, turns: AgentTurns) -> Tensor:
        """[N], normalised as the surrogate's."""
        tokens = self._token_logprobs(agent, turns)
        return action_logprob(tokens, turns.action_mask, self.config.normalization, turns.words)

    def _factor_stats(self, factor: Tensor) -> dict[str, float]:
        low, high = self.config.factor_clamp
        at_bound = (factor <= low * 1.0001) | (factor >= high * 0.9999)
        return {
            "factor_ess": float(effective_sample_size(factor)),
            "factor_clamp_rate": float(at_bound.float().mean()),
            "factor_p05": float(factor.quantile(0.05)),
            "factor_p95": float(factor.quantile(0.95)),
        }


def select(turns: AgentTurns, chosen: Tensor) -> AgentTurns:
    """The chosen rows of an agent's turns."""
    return AgentTurns(**{name: getattr(turns, name)[chosen] for name in AgentTurns.__slots__})


def own_gae(
    batch: Batch, values: Tensor, rows: Tensor, columns: Tensor, keep: Tensor, discounts: Discounts
) -> tuple[Tensor, Tensor]:
    """GAE on one agent's own time index: delta = r_t + gamma (1 - terminated) V_m(x_{t+1}) - V_m(x_t), where r_t is the
    team's score of the round of its own turn. All [B, T_m]."""
    last = keep & (torch.cat([keep[:, 1:], torch.zeros_like(keep[:, :1])], 1).logical_not())
    terminated = batch.terminated.any(-1, keepdim=True) & last
    score = batch.round_score[rows, columns] * keep
    return chained_gae(
        score, values[rows, columns] * keep, torch.ones_like(keep), terminated, last, torch.zeros_like(score), discounts
    )


def monte_carlo_returns(batch: Batch, config: LearnerConfig) -> Tensor:
    """The discounted team score that follows each turn, [B, K]: what the critic is trained on. In [0, 1] as long as
    only one round is scored."""
    returns = torch.zeros_like(batch.round_score)
    following = torch.zeros_like(batch.score)
    for k in reversed(range(batch.mask.shape[1])):
        step = torch.where(batch.round_end[:, k], config.gamma * following, config.gamma_in * following)
        following = torch.where(batch.mask[:, k], batch.round_score[:, k] * batch.round_end[:, k] + step, following)
        returns[:, k] = following
    return returns


def _describe(turns: AgentTurns) -> dict[str, float]:
    length = turns.action_mask.sum(-1).float()
    return {
        "mean_length": float(length.mean()),
        "truncated": float(turns.truncated.float().mean()),
        "empty": float((length <= 1).float().mean()),
    }
