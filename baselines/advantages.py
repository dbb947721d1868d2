"""Generalised advantage estimation along the chain of turns: pure functions of tensors.

Axes: B sequences, K turns in a flat list (1,1), ..., (1,n_1), (2,1), ... of rounds t and positions m.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Discounts(NamedTuple):
    """gamma, lam: across rounds. gamma_in, lam_in: from an agent to its successor inside a round, where no environment
    time passes (algorithms.md 2.2)."""

    gamma: float
    lam: float
    gamma_in: float
    lam_in: float


def chained_gae(
    rewards: Tensor,
    values: Tensor,
    round_end: Tensor,
    terminated: Tensor,
    ended: Tensor,
    final_values: Tensor,
    discounts: Discounts,
) -> tuple[Tensor, Tensor]:
    """Advantages and returns over flat lists of turns, with the successor's value as bootstrap (MARFT).

        inside a round:  delta_k = r_k + gamma_in V_{k+1} - V_k;   A_k = delta_k + gamma_in lam_in A_{k+1}
        last of a round: delta_k = r_k + gamma (1 - terminated_k) V_next - V_k;
                         A_k = delta_k + gamma lam (1 - ended_k) A_{k+1}
        return:          G_k = A_k + V_k

    V_next is V_{k+1} while the episode goes on, and final_values_k where it ended: at a truncation the value of that
    episode's *own* final history, never the next episode's first. MARFT, arXiv 2504.16129, with the two flags that its
    published code merges (algorithms.md 2.2, golden G1-G4). One turn a round gives ordinary GAE (Schulman et al. 2016,
    arXiv 1506.02438, eq. 16): the *own* bootstrap is this function on one agent's turns.

    rewards, values, final_values: [B, K] floats. round_end: [B, K] bool, True on a round's last turn. terminated,
    ended: [B, K] bool, read on a round's last turn only; terminated implies ended. Episodes may follow each other in
    a row; padding behind the last turn is harmless (and its output meaningless). Returns ([B, K], [B, K]).
    Raises ValueError for shapes that differ and for a last turn that neither ended nor has a successor.
    """
    shapes = {tuple(x.shape) for x in (rewards, values, round_end, terminated, ended, final_values)}
    if len(shapes) != 1 or rewards.dim() != 2:
        raise ValueError(f"chained_gae: shapes {sorted(shapes)}: expected one shape [B, K] for all arguments")
    if bool((terminated & ~ended).any()):
        raise ValueError("chained_gae: a turn is terminated but not ended; expected terminated to imply ended")
    d = discounts
    advantages = torch.zeros_like(values)
    following_advantage = torch.zeros_like(values[:, 0])
    following_value = torch.zeros_like(values[:, 0])
    for k in reversed(range(values.shape[1])):
        v_next = torch.where(ended[:, k], final_values[:, k], following_value)
        v_next = torch.where(terminated[:, k], torch.zeros_like(v_next), v_next)
        across_delta = rewards[:, k] + d.gamma * v_next - values[:, k]
        across = across_delta + d.gamma * d.lam * torch.where(
            ended[:, k], torch.zeros_like(following_advantage), following_advantage
        )
        inside_delta = rewards[:, k] + d.gamma_in * following_value - values[:, k]
        inside = inside_delta + d.gamma_in * d.lam_in * following_advantage
        following_advantage = torch.where(round_end[:, k], across, inside)
        following_value = values[:, k]
        advantages[:, k] = following_advantage
    return advantages, advantages + values


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
