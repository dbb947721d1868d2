"""Advantage estimation as pure functions of tensors.

Axes: B sequences (episodes), K decisions (turns or tokens) of a sequence, T rounds, n agents. The K decisions form a
flat list (1, 1), ..., (1, n_1), (2, 1), ... over rounds t and positions m in the execution order. Masks and flags are
bool; True means "counts" or "holds".
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Discounts(NamedTuple):
    """Discount factors and GAE's lambdas for the three boundaries between two decisions.

    Source: docs/reference/algorithms.md, sections 2.2 and 3.

    Attributes:
        gamma: Discount from one round to the next.
        lam: Lambda from one round to the next.
        gamma_in: Discount from an agent to its successor inside a round, where no environment time passes.
        lam_in: Lambda from an agent to its successor inside a round.
        gamma_tok: Discount from one token to the next of the same message.
        lam_tok: Lambda from one token to the next of the same message.
    """

    gamma: float
    lam: float
    gamma_in: float
    lam_in: float
    gamma_tok: float = 1.0
    lam_tok: float = 1.0


def token_gae(
    rewards: Tensor,
    values: Tensor,
    turn_end: Tensor,
    round_end: Tensor,
    terminated: Tensor,
    ended: Tensor,
    final_values: Tensor,
    discounts: Discounts,
) -> tuple[Tensor, Tensor]:
    """Return advantages and returns over flat lists of tokens, with MARFT's three Bellman targets.

        inner token:     delta_k = r_k + gamma_tok V_{k+1} - V_k;   A_k = delta_k + gamma_tok lam_tok A_{k+1}
        last of a turn:  delta_k = r_k + gamma_in V_{k+1} - V_k;    A_k = delta_k + gamma_in lam_in A_{k+1}
        last of a round: delta_k = r_k + gamma (1 - terminated_k) V_next - V_k;
                         A_k = delta_k + gamma lam (1 - ended_k) A_{k+1}
        return:          G_k = A_k + V_k

    V_next is V_{k+1} while the episode continues, and final_values_k where it ended: after a truncation it is the value
    of the episode's *own* final history, never the first value of the next episode. An episode that was truncated in
    the middle of a round would have continued in that round, so its last turn uses gamma_in like the others.

    Source: MARFT, Liao et al. 2025, https://arxiv.org/abs/2504.16129; docs/reference/algorithms.md, section 3. The
    published code has one flag in place of two (terminated, ended); golden numbers G1 and G1t test the difference.

    Args:
        rewards: [B, K] floats.
        values: [B, K] floats, the critic's value before each token.
        turn_end: [B, K] bool, True on the last token of every turn.
        round_end: [B, K] bool, True on the last token of a round's last turn. Implies ``turn_end``.
        terminated: [B, K] bool, read where ``turn_end`` is True: the task is over, so nothing is bootstrapped.
            Implies ``ended``.
        ended: [B, K] bool, read where ``turn_end`` is True: the episode terminated or was truncated.
        final_values: [B, K] floats, read where an episode was truncated.
        discounts: The discount factors and lambdas of the three boundaries.

    Returns:
        Advantages and returns, [B, K] each. Several episodes may follow each other in one row. Padding after the last
        token is allowed; the results at padded positions have no meaning.

    Raises:
        ValueError: If the shapes differ or two flags contradict each other.
    """
    _check_sequences(rewards, values, turn_end, round_end, terminated, ended, final_values)
    d = discounts
    gamma = _by_boundary(values, turn_end, round_end, d.gamma_tok, d.gamma_in, d.gamma)
    trace = gamma * _by_boundary(values, turn_end, round_end, d.lam_tok, d.lam_in, d.lam)
    # The flags are masked with turn_end: callers may set them on every token of a turn.
    episode_end, no_bootstrap = turn_end & ended, turn_end & terminated
    advantages = torch.zeros_like(values)
    following_advantage = following_value = torch.zeros_like(values[:, 0])
    for k in reversed(range(values.shape[1])):
        # Two flags, two effects. `no_bootstrap` removes the next value. `episode_end` removes the trace and replaces
        # the next value in the row, which belongs to another episode or is padding, by the episode's own final value.
        v_next = torch.where(episode_end[:, k], final_values[:, k], following_value).masked_fill(no_bootstrap[:, k], 0)
        delta = rewards[:, k] + gamma[:, k] * v_next - values[:, k]
        # masked_fill, not a product with (1 - ended): a NaN in another episode would survive the product.
        following_advantage = delta + trace[:, k] * following_advantage.masked_fill(episode_end[:, k], 0.0)
        advantages[:, k], following_value = following_advantage, values[:, k]
    return advantages, advantages + values


def _check_sequences(
    rewards: Tensor,
    values: Tensor,
    turn_end: Tensor,
    round_end: Tensor,
    terminated: Tensor,
    ended: Tensor,
    final_values: Tensor,
) -> None:
    """Raise ValueError as ``token_gae`` does."""
    shapes = {tuple(x.shape) for x in (rewards, values, turn_end, round_end, terminated, ended, final_values)}
    if len(shapes) != 1 or rewards.dim() != 2:
        raise ValueError(f"gae: shapes {sorted(shapes)}: expected one shape [B, K] for all arguments")
    if bool((terminated & ~ended).any()):
        raise ValueError("gae: a turn is terminated but not ended; expected terminated to imply ended")
    if bool((round_end & ~turn_end).any()):
        raise ValueError("gae: a token ends a round but no turn; expected round_end to imply turn_end")


def chained_gae(
    rewards: Tensor,
    values: Tensor,
    round_end: Tensor,
    terminated: Tensor,
    ended: Tensor,
    final_values: Tensor,
    discounts: Discounts,
) -> tuple[Tensor, Tensor]:
    """Return advantages and returns where every decision is a whole turn, and its successor's value is the bootstrap.

    This is ``token_gae`` with one token per turn. On a single agent's turns, one per round, it is ordinary GAE and so
    the *own* bootstrap of IPPO and MAPPO:

        A_t = sum_l (gamma lam)^l delta_{t+l},    delta_t = r_t + gamma V_{t+1} - V_t

    Source: docs/reference/algorithms.md, section 2.2; eq. 16, Schulman et al. 2016, https://arxiv.org/abs/1506.02438.

    Args:
        rewards: [B, K] floats.
        values: [B, K] floats, the critic's value before each turn.
        round_end: [B, K] bool, True on a round's last turn.
        terminated: [B, K] bool, True on the last turn of an episode whose task is over. Implies ``ended``.
        ended: [B, K] bool, True on the last turn of every episode.
        final_values: [B, K] floats, read where an episode was truncated.
        discounts: ``gamma_tok`` and ``lam_tok`` are not used.

    Returns:
        Advantages and returns, [B, K] each.

    Raises:
        ValueError: If the shapes differ or two flags contradict each other.
    """
    turn_end = torch.ones_like(round_end)
    return token_gae(rewards, values, turn_end, round_end, terminated, ended, final_values, discounts)


def _by_boundary(like: Tensor, turn_end: Tensor, round_end: Tensor, inner: float, turn: float, across: float) -> Tensor:
    """Return [B, K] like ``like``: ``across`` at a round's end, ``turn`` at another turn's end, else ``inner``."""
    factors = torch.full_like(like, inner).masked_fill(turn_end, turn)
    return factors.masked_fill(round_end, across)


def whiten(advantages: Tensor, mask: Tensor, eps: float = 1e-8) -> Tensor:
    """Return (A - mean) / (std + eps) over the entries where the mask is True, and 0 elsewhere.

    The mask is explicit because an advantage of exactly zero is a valid entry. The standard deviation is the
    population's (divided by the number of entries, not by one less). Equal entries give exactly 0.

    Source: docs/reference/algorithms.md, section 2.3.

    Args:
        advantages: [...] floats.
        mask: [...] bool, of the same shape.
        eps: Added to the standard deviation.

    Returns:
        Whitened advantages, of the same shape.

    Raises:
        ValueError: If the shapes differ.
    """
    if advantages.shape != mask.shape:
        raise ValueError(f"whiten: shapes {tuple(advantages.shape)} and {tuple(mask.shape)}: expected the same")
    chosen = advantages[mask]
    if chosen.numel() == 0:
        return torch.zeros_like(advantages)
    white = (advantages - chosen.mean()) / (chosen.std(correction=0) + eps)
    # The mean of equal floats may differ from them in the last bit, which eps would scale up to almost 1.
    return torch.where(mask & (chosen.max() > chosen.min()), white, torch.zeros_like(white))


def all_equal(scores: Tensor) -> bool:
    """Return whether all scores [N] are the same number.

    Their standard deviation does not say so: that of equal float32 numbers can round to 1e-7.
    """
    return bool(scores.max() == scores.min())


def group_advantages(score: Tensor, group: Tensor, eps: float = 1e-4) -> tuple[Tensor, Tensor]:
    """Return each episode's advantage over its group, and which episodes belong to a group with variance.

        A_b = (R_b - mean of the group) / (std of the group + eps)

    Episodes of a group without variance have A = 0 and must be dropped.

    Source: MAGRPO, https://arxiv.org/abs/2508.04652; docs/reference/algorithms.md, section 4.

    Args:
        score: [B] floats.
        group: [B] integers, equal for episodes on the same problem.
        eps: Added to the standard deviation.

    Returns:
        Advantages [B], and [B] bool, False where all scores of the group are equal.
    """
    _, index = group.unique(return_inverse=True)
    ones = torch.ones_like(score)
    count = torch.zeros_like(score).index_add(0, index, ones)[index]
    centred = score - torch.zeros_like(score).index_add(0, index, score)[index] / count
    std = (torch.zeros_like(score).index_add(0, index, centred**2)[index] / count).sqrt()
    # Not the standard deviation: the mean of equal floats may differ from them in the last bit.
    keep = _by_group(score, index, "amax") > _by_group(score, index, "amin")
    return torch.where(keep, centred / (std + eps), torch.zeros_like(score)), keep


def _by_group(score: Tensor, index: Tensor, reduce: str) -> Tensor:
    """Return the largest ("amax") or smallest ("amin") score of each episode's group, [B]."""
    return torch.zeros_like(score).scatter_reduce(0, index, score, reduce, include_self=False)[index]


def maporl_returns(scores: Tensor, gamma: float) -> Tensor:
    """Return MAPoRL's return of every reply, for tasks that score each agent's reply in each round.

        R[t, i] = (s[t, i] + sum_{t' > t} gamma^(t' - t) mean_a s[t', a]) / sum_{k=0}^{T-1-t} gamma^k

    Source: MAPoRL, https://arxiv.org/abs/2502.18439; docs/reference/algorithms.md, section 4; golden number G7.

    Args:
        scores: [..., T, n] floats for T rounds and n agents. NaN where an agent did not reply, which no mean counts,
            and in all rounds after an episode's own last one.
        gamma: Discount from one round to the next.

    Returns:
        Returns, [..., T, n]; NaN where the score is NaN.
    """
    returns = torch.empty_like(scores)
    # following = sum_{t' > t} gamma^(t' - t) mean_a s[t', a];  weight = sum_{k=0}^{T-1-t} gamma^k.
    following = weight = torch.zeros_like(scores[..., 0, 0])
    for t in reversed(range(scores.shape[-2])):
        mean = scores[..., t, :].nanmean(-1)
        # The mean is NaN exactly where nobody replied. Those rounds come after the episode's end, so both sums stay at
        # 0 there and each episode has its own T.
        played = ~mean.isnan()
        weight = torch.where(played, 1 + gamma * weight, weight)
        returns[..., t, :] = (scores[..., t, :] + following.unsqueeze(-1)) / weight.unsqueeze(-1)
        following = torch.where(played, gamma * (mean + following), following)
    return returns
