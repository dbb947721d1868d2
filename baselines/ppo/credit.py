"""Credit assignment: where rewards are placed, which value follows a turn, and the sequences that GAE runs over.

Axes: B episodes, K turns of an episode, U decisions of a turn (its tokens, or the one action), M agents, F truncated
episodes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from baselines.functional.advantages import Discounts, all_equal, group_advantages, maporl_returns, token_gae
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
    """Return raw advantages and returns with the arm's bootstrap.

    The learner places the team's score itself: with bootstrap="successor" once, on a round's last turn; with
    bootstrap="own" on every agent's own turn. The environment's ``reward=`` setting has no influence.

    Source: docs/reference/algorithms.md, sections 2.2 and 3.

    Args:
        batch: The batch.
        decisions: [B, K, U] bool, the decisions of each turn.
        values: [B, K, U] floats, the critic's value before each decision.
        penalty: [B, K, U] floats, subtracted from the reward of each decision (KL in the reward).
        config: The arm's configuration.
        lam_in: Lambda inside a round, after the gate (see ``TeamCritic.lam_in``).
        final_values: [B, K] floats, the value after a truncated episode's end, see ``final_values``.

    Returns:
        Advantages and returns, [B, K, U] each, 0 where ``decisions`` is False.
    """
    d = Discounts(config.gamma, config.lam, config.gamma_in, lam_in, config.gamma_tok, config.lam_tok)
    # The last decision of a turn: the one that no other decision of the turn follows.
    turn_end = decisions & ~torch.cat([decisions[..., 1:], torch.zeros_like(decisions[..., :1])], -1)
    advantages, returns = torch.zeros_like(values), torch.zeros_like(values)
    for turns in _sequences(batch, config):
        # Every sequence of turns is flattened into rows of decisions without gaps, which is what token_gae expects, and
        # the results are scattered back.
        ends, score, terminated, ended = _place_score(batch, turns, config)
        rows, columns, keep = own_turns((decisions & turns.unsqueeze(-1)).flatten(1))
        rewards = turn_end * score.unsqueeze(-1) - penalty
        final = turn_end * final_values.unsqueeze(-1)
        flags = [turn_end & x.unsqueeze(-1) for x in (ends, terminated, ended)]
        r, v, turn, end, stop, last, after = (
            x.flatten(1)[rows, columns] for x in (rewards, values, turn_end, *flags, final)
        )
        found = token_gae(r, v, turn, end, terminated=stop, ended=last, final_values=after, discounts=d)
        for result, mine in zip((advantages, returns), found, strict=True):
            result.view(len(rows), -1)[rows[keep], columns[keep]] = mine[keep]
    return advantages, returns


def _sequences(batch: Batch, config: LearnerConfig) -> list[Tensor]:
    """Return the sequences of turns that GAE runs over, [B, K] bool each: all turns, or each agent's own."""
    if config.bootstrap == "successor":
        return [batch.mask]
    return [batch.mask & (batch.agent_index == m) for m in range(len(batch.agents))]


def _place_score(batch: Batch, turns: Tensor, config: LearnerConfig) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return for a sequence of turns: the ends of time steps, their scores, and the flags terminated and ended, [B, K].

    On an agent's own time index a round is one step. An agent that acts twice in a round (a tool call, then a reply) is
    rewarded once, on the second turn. An agent that does not act in the last round is rewarded on its last turn, with
    the score discounted by the rounds in between.
    """
    if config.reward == "maporl":  # each turn ends its own episode, because its return already contains what follows
        return turns, maporl(batch, config) * turns, turns, turns
    if config.bootstrap == "successor":
        return batch.round_end, batch.round_score * batch.round_end, batch.terminated, batch.ended
    last = turns & (turns.flip(-1).cumsum(-1).flip(-1) == 1)
    ends = _last_in_round(turns, batch.round_index)
    final_round = batch.round_index.max(-1, keepdim=True).values
    early = last & (batch.round_index < final_round)
    discounted = config.gamma ** (final_round - batch.round_index) * batch.score.unsqueeze(-1)
    score = torch.where(early, batch.round_score + discounted, batch.round_score * ends)
    return ends, score, last & batch.terminated.any(-1, keepdim=True), last


def _last_in_round(turns: Tensor, round_index: Tensor) -> Tensor:
    """Return [B, K] bool: those of the ``turns`` [B, K] that no other of them follows in the same round."""
    same = round_index.unsqueeze(-1) == round_index.unsqueeze(-2)
    followed = (same & turns.unsqueeze(-2)).triu(1).any(-1)
    return turns & ~followed


def maporl(batch: Batch, config: LearnerConfig) -> Tensor:
    """Return MAPoRL's return of each turn, [B, K], from the scores of all replies; 0 at padded turns.

    Source: docs/reference/algorithms.md, section 4. See ``advantages.maporl_returns``.
    """
    assert batch.reply_score is not None
    rows, columns = batch.mask.nonzero(as_tuple=True)
    reply = rows, batch.round_index[rows, columns], batch.agent_index[rows, columns]
    scores = batch.reply_score.new_full(
        (len(batch.mask), int(batch.round_index.max()) + 1, len(batch.agents)), torch.nan
    )
    scores[reply] = batch.reply_score[rows, columns]
    returns = torch.zeros_like(batch.round_score)
    returns[rows, columns] = maporl_returns(scores, config.gamma)[reply]
    return returns


def group_credit(batch: Batch, decisions: Tensor, penalty: Tensor) -> tuple[Tensor, Tensor]:
    """Return the advantages of MAGRPO: every decision of an episode has the episode's advantage over its group.

    Source: docs/reference/algorithms.md, section 4.

    Args:
        batch: The batch.
        decisions: [B, K, U] bool.
        penalty: [B, K, U] floats, subtracted from an episode's score.

    Returns:
        Advantages [B, K, U], and [B] bool, False where all episodes on the problem have the same score.
    """
    total = batch.score - (penalty * decisions).sum((1, 2))
    advantage, keep = group_advantages(total, batch.group)
    # The penalty alone may give a group variance: without a difference in score it is still dropped.
    _, keep_score = group_advantages(batch.score, batch.group)
    return advantage[:, None, None] * decisions, keep & keep_score


def final_values(batch: Batch, values: Tensor, config: LearnerConfig) -> Tensor:
    """Return the value that follows the end of each turn's sequence, [B, K].

    It is 0 where the episode terminated. Where it was truncated, it is the value of the next agent's view
    (bootstrap="successor") or of the view of the turn's own agent (bootstrap="own").

    Source: docs/reference/algorithms.md, section 2.2.

    Args:
        batch: The batch.
        values: [F, M] floats, the value of every agent's view after the last turn of each truncated episode.
        config: The arm's configuration.
    """
    final = torch.zeros_like(batch.round_score)
    if batch.views is None:
        return final
    truncated, following = batch.views.episode, batch.views.next_agent.unsqueeze(-1)
    successor = config.bootstrap == "successor"
    agent = following.expand(-1, batch.mask.shape[1]) if successor else batch.agent_index[truncated]
    final[truncated] = values.gather(1, agent) * batch.mask[truncated]
    return final


def monte_carlo_returns(batch: Batch, config: LearnerConfig, final: Tensor | None = None) -> Tensor:
    """Return the discounted team score that follows each turn, [B, K]: the target of the critic.

    It is in [0, 1] as long as only one round is scored.

    Args:
        batch: The batch.
        config: The arm's configuration.
        final: [B, K] ``final_values``, used in place of the score that a truncated episode does not have.
    """
    if config.reward == "maporl":
        return maporl(batch, config)
    returns = torch.zeros_like(batch.round_score)
    # following: the discounted score after turn k. weight: the discount from turn k to the end of the episode.
    following, weight = torch.zeros_like(batch.score), torch.ones_like(batch.score)
    for k in reversed(range(batch.mask.shape[1])):
        discount = torch.where(batch.round_end[:, k], config.gamma, config.gamma_in)
        step = batch.round_score[:, k] * batch.round_end[:, k] + discount * following
        following = torch.where(batch.mask[:, k], step, following)
        weight = torch.where(batch.mask[:, k], discount * weight, weight)
        returns[:, k] = following if final is None else following + weight * final[:, k]
    return returns


def without_variance(batch: Batch, config: LearnerConfig) -> bool:
    """Return whether a batch has nothing to learn from: all scores are equal (in every group, if groups are compared).

    A batch with a truncated episode has something, because the critic's value replaces that episode's score.
    """
    if config.bootstrap == "group":
        no_decision = torch.zeros_like(batch.mask).unsqueeze(-1)
        return not bool(group_credit(batch, no_decision, no_decision.float())[1].any())
    if config.reward == "maporl" and batch.reply_score is not None:
        return all_equal(batch.reply_score[batch.mask])
    return batch.views is None and all_equal(batch.score)
