"""Action log-probabilities, ratios and the compounded factor of sequential updates, as pure functions of tensors.

Axes: B turns, T tokens. Masks: True means "counts".
"""

from __future__ import annotations

import math

from torch import Tensor

from baselines.functional.options import NORMALIZATIONS, Normalization


def action_logprob(token_logprobs: Tensor, mask: Tensor, normalization: Normalization, words: Tensor) -> Tensor:
    """Return the log-probability of each whole action, normalised by its length.

        l = sum_j log pi(y_j | x, y_<j),    divided by nothing ("sum"), its tokens ("token") or its words ("word")

    The ratio of two policies is exp(l_new - l_old), so both must use the same normalization.

    Source: MARFT, https://arxiv.org/abs/2504.16129; docs/reference/algorithms.md, section 2.1; golden number G6.

    Args:
        token_logprobs: [B, T] floats.
        mask: [B, T] bool, the action's tokens.
        normalization: "sum", "token" or "word".
        words: [B] integers, the whitespace-separated words of each action; 0 counts as 1.

    Returns:
        [B] floats.

    Raises:
        ValueError: If the normalization is unknown.
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
    """Return the factor M for the next agent of a sequential update, after an agent was updated.

        M^(1) = 1,    M^(k+1) = clamp(M^(k) exp(l_new - l_old), low, high)

    The result is detached: the next agent's gradient must not reach the agents before it.

    Source: MARFT, https://arxiv.org/abs/2504.16129; docs/reference/algorithms.md, section 2.4.

    Args:
        factor: [...] floats, M before the update; positive.
        new: Log-probabilities of the agent's actions after its update, of the same shape.
        old: Log-probabilities of the same actions before its update, of the same shape.
        clamp: Lower and upper bound of M.

    Returns:
        M after the update, of the same shape.
    """
    # The product is a sum of logarithms: M times a very large ratio would overflow before it is clamped. The bounds'
    # logarithms are taken in float64, so that exp(log(bound)) is the bound up to one rounding.
    low, high = (math.log(bound) for bound in clamp)
    return (factor.log() + (new - old)).detach().clamp(low, high).exp()


def effective_sample_size(factor: Tensor) -> Tensor:
    """Return the effective sample size of importance weights as a share of their number, in (0, 1].

        (sum M)^2 / (B sum M^2)

    It is 1 when all weights are equal.

    Source: Kish 1965, "Survey Sampling"; docs/reference/algorithms.md, section 2.4.

    Args:
        factor: [B] floats.

    Returns:
        A scalar.
    """
    return factor.sum() ** 2 / (factor.numel() * (factor**2).sum())


def step_monitor(ratio: Tensor) -> Tensor:
    """Return rho - 1 - log rho: an estimate of KL(pi_old || pi_new) on actions that were sampled from pi_old.

    Source: Schulman 2020, http://joschu.net/blog/kl-approx.html; golden number G6 in docs/reference/algorithms.md.

    Args:
        ratio: [...] floats, rho = pi_new / pi_old.

    Returns:
        Estimates of the same shape, never negative.
    """
    return ratio - 1 - ratio.log()
