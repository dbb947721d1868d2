"""Generalised advantage estimation along the chain of turns and tokens: pure functions of tensors.

Axes: B sequences, K decisions (turns or tokens) in a flat list (1,1), ..., (1,n_1), (2,1), ... of rounds t and
positions m.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Discounts(NamedTuple):
    """gamma, lam: across rounds. gamma_in, lam_in: from an agent to its successor inside a round, where no environment
    time passes. gamma_tok, lam_tok: from token to token of one message (algorithms.md 2.2 and 3)."""

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
    """Advantages and returns over flat lists of tokens, with MARFT's three Bellman targets (algorithms.md 3).

        inner token:     delta_k = r_k + gamma_tok V_{k+1} - V_k;   A_k = delta_k + gamma_tok lam_tok A_{k+1}
        last of a turn:  delta_k = r_k + gamma_in V_{k+1} - V_k;    A_k = delta_k + gamma_in lam_in A_{k+1}
        last of a round: delta_k = r_k + gamma (1 - terminated_k) V_next - V_k;
                         A_k = delta_k + gamma lam (1 - ended_k) A_{k+1}
        return:          G_k = A_k + V_k

    V_next is V_{k+1} while the episode goes on, and final_values_k where it ended: at a truncation the value of that
    episode's *own* final history, never the next episode's first. (Cut in the middle of a round, an episode goes on in
    that round: gamma_in, as for every other turn in it.) MARFT, arXiv 2504.16129, with the two flags that its published
    code merges (golden G1-G5).

    rewards, values, final_values: [B, K] floats. turn_end, round_end: [B, K] bool, True on a turn's last token, and on
    that of a round's last turn (which is a turn's end, too). terminated, ended: [B, K] bool, read on a turn's end
    only; terminated implies ended. Episodes may follow each other in a row; padding behind the last token is harmless
    (and its output meaningless). Returns ([B, K], [B, K]). Raises ValueError for shapes that differ and flags that
    contradict each other.
    """
    tensors = (rewards, values, turn_end, round_end, terminated, ended, final_values)
    shapes = {tuple(x.shape) for x in tensors}
    if len(shapes) != 1 or rewards.dim() != 2:
        raise ValueError(f"gae: shapes {sorted(shapes)}: expected one shape [B, K] for all arguments")
    if bool((terminated & ~ended).any()):
        raise ValueError("gae: a turn is terminated but not ended; expected terminated to imply ended")
    if bool((round_end & ~turn_end).any()):
        raise ValueError("gae: a token ends a round but no turn; expected round_end to imply turn_end")
    d = discounts
    gamma = _by_boundary(values, turn_end, round_end, d.gamma_tok, d.gamma_in, d.gamma)
    trace = gamma * _by_boundary(values, turn_end, round_end, d.lam_tok, d.lam_in, d.lam)
    cut, stop = turn_end & ended, turn_end & terminated
    advantages = torch.zeros_like(values)
    following_advantage = following_value = torch.zeros_like(values[:, 0])
    for k in reversed(range(values.shape[1])):
        v_next = torch.where(cut[:, k], final_values[:, k], following_value).masked_fill(stop[:, k], 0.0)
        delta = rewards[:, k] + gamma[:, k] * v_next - values[:, k]
        following_advantage = delta + trace[:, k] * following_advantage.masked_fill(cut[:, k], 0.0)
        following_value = values[:, k]
        advantages[:, k] = following_advantage
    return advantages, advantages + values


def chained_gae(
    rewards: Tensor,
    values: Tensor,
    round_end: Tensor,
    terminated: Tensor,
    ended: Tensor,
    final_values: Tensor,
    discounts: Discounts,
) -> tuple[Tensor, Tensor]:
    """``token_gae`` where every decision is a whole turn: the successor's value is the bootstrap (algorithms.md 2.2).

    One turn a round gives ordinary GAE (Schulman et al. 2016, arXiv 1506.02438, eq. 16): the *own* bootstrap is this
    function on one agent's turns. All tensors [B, K].
    """
    turn_end = torch.ones_like(round_end)
    return token_gae(rewards, values, turn_end, round_end, terminated, ended, final_values, discounts)


def _by_boundary(like: Tensor, turn_end: Tensor, round_end: Tensor, inner: float, turn: float, across: float) -> Tensor:
    """[B, K] in the type of ``like``: ``across`` on a round's end, ``turn`` on another turn's end, else ``inner``."""
    table = torch.full_like(like, inner).masked_fill(turn_end, turn)
    return table.masked_fill(round_end, across)


def whiten(advantages: Tensor, mask: Tensor, eps: float = 1e-8) -> Tensor:
    """(A - mean) / (std + eps) over the entries where mask is True; the others become 0.

    advantages: [...] floats. mask: [...] bool, explicit, so an advantage of exactly zero counts.
    """
    if advantages.shape != mask.shape:
        raise ValueError(f"whiten: shapes {tuple(advantages.shape)} and {tuple(mask.shape)}: expected the same")
    chosen = advantages[mask]
    if chosen.numel() == 0:
        return torch.zeros_like(advantages)
    white = (advantages - chosen.mean()) / (chosen.std(correction=0) + eps)
    return torch.where(mask, white, torch.zeros_like(white))


def group_advantages(score: Tensor, group: Tensor, eps: float = 1e-4) -> tuple[Tensor, Tensor]:
    """A = (R - mean of the group) / (std of the group + eps), and which episodes are of a group with variance.

    MAGRPO, arXiv 2508.04652; algorithms.md 4. The others have A = 0 and must be dropped.
    score: [B]. group: [B] whole numbers, equal for episodes on one problem. -> [B], [B] bool
    """
    _, index = group.unique(return_inverse=True)
    ones = torch.ones_like(score)
    count = torch.zeros_like(score).index_add(0, index, ones)[index]
    centred = score - torch.zeros_like(score).index_add(0, index, score)[index] / count
    std = (torch.zeros_like(score).index_add(0, index, centred**2)[index] / count).sqrt()
    keep = std > 1e-6
    return torch.where(keep, centred / (std + eps), torch.zeros_like(score)), keep


def maporl_returns(scores: Tensor, gamma: float) -> Tensor:
    """R[t, i] = (s[t, i] + sum_{t'>t} gamma^(t'-t) mean_a s[t', a]) / sum_{k=0}^{T-1-t} gamma^k.

    The return of MAPoRL (arXiv 2502.18439) where a task scores every agent's reply; golden G7. scores: [..., T, n]; NaN
    where an agent did not reply, which is in no mean, and in the rounds behind an episode's own T. -> same
    """
    returns = torch.empty_like(scores)
    following = weight = torch.zeros_like(scores[..., 0, 0])
    for t in reversed(range(scores.shape[-2])):
        mean = scores[..., t, :].nanmean(-1)
        played = ~mean.isnan()
        weight = torch.where(played, 1 + gamma * weight, weight)
        returns[..., t, :] = (scores[..., t, :] + following.unsqueeze(-1)) / weight.unsqueeze(-1)
        following = torch.where(played, gamma * (mean + following), following)
    return returns
