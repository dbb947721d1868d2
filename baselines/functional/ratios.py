"""From token log-probabilities to action log-probabilities, ratios, and the compounded factor of sequential updates.

Axes: B turns, T tokens. Masks: True = counts.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Normalization = Literal["sum", "token", "word"]
NORMALIZATIONS = ("sum", "token", "word")


def action_logprob(token_logprobs: Tensor, mask: Tensor, normalization: Normalization, words: Tensor) -> Tensor:
    """l = sum_j log pi(y_j | x, y_<j), whole ("sum"), by its tokens ("token") or by its words ("word").

    MARFT, arXiv 2504.16129; algorithms.md 2.1. The same normaliser must be used for old and new.
    token_logprobs: [B, T]. mask: [B, T] bool. words: [B] whitespace words of each action (0 counts as 1). -> [B]
    """
    total = (token_logprobs * mask).sum(-1)
    if normalization == "sum":
        return total
    if normalization == "token":
        return total / mask.sum(-1).clamp(min=1)
    if normalization == "word":
        return total / words.clamp(min=1)
    raise ValueError(f"normalization={normalization!r}: expected one of {', '.join(NORMALIZATIONS)}")


def compound(factor: Tensor, new: Tensor, old: Tensor, clamp: tuple[float, float]) -> Tensor:
    """M^(k+1) = M^(k) exp(l_new - l_old), detached, log M clamped (MARFT eq. of the sequential update; 2.4).

    factor, new, old: of one shape. clamp: (low, high) bounds on M. -> of that shape
    """
    low, high = torch.tensor(clamp, dtype=torch.float64).log().tolist()
    return (factor.log() + (new - old)).detach().clamp(low, high).exp()


def effective_sample_size(factor: Tensor) -> Tensor:
    """(sum M)^2 / (B sum M^2), in (0, 1]: 1 when all weights are equal (Kish 1965). factor: [B] -> scalar."""
    return factor.sum() ** 2 / (factor.numel() * (factor**2).sum())


def step_monitor(ratio: Tensor) -> Tensor:
    """rho - 1 - log rho, an estimate of KL(pi_old || pi_new) on actions of pi_old (Schulman 2020,
    http://joschu.net/blog/kl-approx.html); golden G6. ratio: [...] -> [...]"""
    return ratio - 1 - ratio.log()
