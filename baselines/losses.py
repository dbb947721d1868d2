"""The losses of the PPO family: pure functions of tensors.

Axes: B turns, T tokens. Masks: True = counts.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class PolicyLoss(NamedTuple):
    """loss: scalar. clip_fraction: scalar in [0, 1], the share of turns whose ratio left [1 - eps, 1 + eps]."""

    loss: Tensor
    clip_fraction: Tensor


def clipped_policy_loss(ratio: Tensor, advantage: Tensor, clip: float, factor: Tensor) -> PolicyLoss:
    """mean over turns of max(-rho M A, -clip(rho, 1 - eps, 1 + eps) M A).

    Schulman et al. 2017, arXiv 1707.06347, eq. 7; the compounded factor M of MARFT's sequential update stands *outside*
    the clip (algorithms.md 2.4; M = 1 gives PPO). ratio, advantage, factor: [B]. clip: eps.
    """
    if not ratio.shape == advantage.shape == factor.shape:
        raise ValueError(
            f"clipped_policy_loss: shapes {tuple(ratio.shape)}, {tuple(advantage.shape)}, {tuple(factor.shape)}: "
            "expected one shape [B]"
        )
    weighted = factor.detach() * advantage
    loss = torch.maximum(-ratio * weighted, -ratio.clamp(1 - clip, 1 + clip) * weighted).mean()
    return PolicyLoss(loss, ((ratio - 1).abs() > clip).float().mean())


def kl_to_reference(logprobs: Tensor, reference: Tensor, mask: Tensor) -> Tensor:
    """k3 = exp(l0 - l) - 1 - (l0 - l) per token, averaged over all tokens that count.

    An estimate of KL(pi_theta || pi_0) on tokens sampled from pi_theta: non-negative, low variance (Schulman 2020,
    http://joschu.net/blog/kl-approx.html; algorithms.md 2.6). logprobs, reference, mask: [B, T] -> scalar
    """
    log_ratio = (reference - logprobs).masked_fill(~mask, 0.0)
    return ((log_ratio.exp() - 1 - log_ratio) * mask).sum() / mask.sum().clamp(min=1)


def clipped_value_loss(value: Tensor, old_value: Tensor, target: Tensor, clip: float, delta: float = 1.0) -> Tensor:
    """mean of max(huber(V - G), huber(V_old + clamp(V - V_old, -eps, eps) - G)): PPO's clipped value loss with Huber.

    Schulman et al. 2017's code; algorithms.md 2.5. value, old_value, target: [B]. clip: eps > 0. -> scalar
    """
    near = old_value + (value - old_value).clamp(-clip, clip)
    losses = [functional.huber_loss(v, target, reduction="none", delta=delta) for v in (value, near)]
    return torch.maximum(*losses).mean()


def bce_value_loss(logit: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of sigma(logit) against a return scaled to [0, 1] (critic.md). logit, target: [B] -> scalar"""
    return functional.binary_cross_entropy_with_logits(logit, target)


def explained_variance(value: Tensor, target: Tensor) -> float:
    """1 - Var(G - V) / Var(G); NaN where all returns are equal. value, target: [B]"""
    variance = target.var(correction=0)
    if variance <= 1e-12:
        return float("nan")
    return float(1 - (target - value).var(correction=0) / variance)
