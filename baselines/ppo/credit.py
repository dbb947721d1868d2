"""From a batch and its values to advantages: who is paid, whose value follows, and over which sequence GAE runs.

Axes: B episodes, K turns, U decisions of a turn (its tokens, or the one action).
"""

from __future__ import annotations

import torch
from torch import Tensor

from baselines.functional.advantages import Discounts, group_advantages, maporl_returns, token_gae
from baselines.learner_config import LearnerConfig
from baselines.trajectory import Batch, own_turns


def team_advantages(
    batch: Batch,
    decisions: Tensor,
    values: Tensor,
    penalty: Tensor,
    config: LearnerConfig,
    lam_in: float,
    final_values: Tensor,
) -> tuple[Tensor, Tensor]:
    """Raw advantages and returns with the arm's bootstrap (algorithms.md 2.2 and 3). The learner places the team's
    score itself: once on a round's last turn (successor), or on every agent's own turn (own).

    decisions: bool. values, penalty (taken from the reward of each decision): floats; all [B, K, U]. lam_in: behind the
    gate. final_values: [B, K] after an episode's end, where it was truncated, see ``final_values``. -> two [B, K, U]
    """
    d = Discounts(config.gamma, config.lam, config.gamma_in, lam_in, config.gamma_tok, config.lam_tok)
    turn_end = decisions & ~torch.cat([decisions[..., 1:], torch.zeros_like(decisions[..., :1])], -1)
    advantages, returns = torch.zeros_like(values), torch.zeros_like(values)
    for turns in _sequences(batch, config):
        ends, score, terminated, ended = _pay(batch, turns, config)
        rows, columns, keep = own_turns((decisions & turns.unsqueeze(-1)).flatten(1))
        rewards = turn_end * score.unsqueeze(-1) - penalty
        final = turn_end * final_values.unsqueeze(-1)
        flags = [turn_end & x.unsqueeze(-1) for x in (ends, terminated, ended)]
        r, v, turn, end, stop, cut, last = (
            x.flatten(1)[rows, columns] for x in (rewards, values, turn_end, *flags, final)
        )
        for table, found in zip((advantages, returns), token_gae(r, v, turn, end, stop, cut, last, d), strict=True):
            table.view(len(rows), -1)[rows[keep], columns[keep]] = found[keep]
    return advantages, returns


def _sequences(batch: Batch, config: LearnerConfig) -> list[Tensor]:
    """Which turns follow each other, [B, K] bool: all of an episode, or each agent's own."""
    if config.bootstrap == "successor":
        return [batch.mask]
    return [batch.mask & (batch.agent_index == m) for m in range(len(batch.agents))]


def _pay(batch: Batch, turns: Tensor, config: LearnerConfig) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """For a sequence of turns: where a step of time ends, its score, and the two flags of the episode's end. [B, K].

    On an agent's own time index each round is a step: what it does twice in a round (a tool call, then a reply) is paid
    once, on the last of the two. One that is silent in the last round is paid the score on its last turn, discounted by
    the rounds between.
    """
    if config.reward == "maporl":  # every turn is an end: what follows is in its return
        return turns, maporl(batch, config) * turns, turns, turns
    if config.bootstrap == "successor":
        return batch.round_end, batch.round_score * batch.round_end, batch.terminated, batch.ended
    last = turns & (turns.flip(-1).cumsum(-1).flip(-1) == 1)
    ends = _last_in_round(turns, batch.round_index)
    final_round = batch.round_index.max(-1, keepdim=True).values
    later = last & (batch.round_index < final_round)
    owed = config.gamma ** (final_round - batch.round_index) * batch.score.unsqueeze(-1)
    score = torch.where(later, batch.round_score + owed, batch.round_score * ends)
    return ends, score, last & batch.terminated.any(-1, keepdim=True), last


def _last_in_round(turns: Tensor, round_index: Tensor) -> Tensor:
    """Those of the ``turns`` [B, K] bool that no other of them follows in the same round. -> [B, K] bool"""
    same = round_index.unsqueeze(-1) == round_index.unsqueeze(-2)
    followed = (same & turns.unsqueeze(-2)).triu(1).any(-1)
    return turns & ~followed


def maporl(batch: Batch, config: LearnerConfig) -> Tensor:
    """MAPoRL's return of each turn, [B, K], from the scores of all replies; 0 where no turn is."""
    assert batch.reply_score is not None
    rows, columns = batch.mask.nonzero(as_tuple=True)
    place = rows, batch.round_index[rows, columns], batch.agent_index[rows, columns]
    scores = torch.full((len(batch.mask), int(batch.round_index.max()) + 1, len(batch.agents)), torch.nan)
    scores[place] = batch.reply_score[rows, columns]
    returns = torch.zeros_like(batch.round_score)
    returns[rows, columns] = maporl_returns(scores, config.gamma)[place]
    return returns


def group_credit(batch: Batch, decisions: Tensor, penalty: Tensor) -> tuple[Tensor, Tensor]:
    """MAGRPO: every decision of an episode has the episode's advantage over its group. -> A [B, K, U], keep [B]

    decisions, penalty: [B, K, U]. keep: False where all episodes on the problem came out the same.
    """
    total = batch.score - (penalty * decisions).sum((1, 2))
    advantage, keep = group_advantages(total, batch.group)
    _, keep_score = group_advantages(batch.score, batch.group)
    return advantage[:, None, None] * decisions, keep & keep_score


def final_values(batch: Batch, values: Tensor, config: LearnerConfig) -> Tensor:
    """What follows the end of each turn's sequence, [B, K]: 0 where the episode terminated; where it was truncated, the
    value of the next agent's view (successor) or of the turn's own agent's (own).

    values: [F, M] of every agent's view after the last turn of the truncated episodes, ``batch.views``.
    """
    final = torch.zeros_like(batch.round_score)
    if batch.views is None:
        return final
    cut, after = batch.views.episode, batch.views.next_agent.unsqueeze(-1)
    agent = after.expand(-1, batch.mask.shape[1]) if config.bootstrap == "successor" else batch.agent_index[cut]
    final[cut] = values.gather(1, agent) * batch.mask[cut]
    return final


def monte_carlo_returns(batch: Batch, config: LearnerConfig, final: Tensor | None = None) -> Tensor:
    """The discounted team score that follows each turn, [B, K]: what the critic is trained on. In [0, 1] as long as
    only one round is scored. final: [B, K] ``final_values``, in place of the score that a truncated episode lacks."""
    if config.reward == "maporl":
        return maporl(batch, config)
    returns = torch.zeros_like(batch.round_score)
    following, weight = torch.zeros_like(batch.score), torch.ones_like(batch.score)
    for k in reversed(range(batch.mask.shape[1])):
        discount = torch.where(batch.round_end[:, k], config.gamma, config.gamma_in)
        step = batch.round_score[:, k] * batch.round_end[:, k] + discount * following
        following = torch.where(batch.mask[:, k], step, following)
        weight = torch.where(batch.mask[:, k], discount * weight, weight)
        returns[:, k] = following if final is None else following + weight * final[:, k]
    return returns
