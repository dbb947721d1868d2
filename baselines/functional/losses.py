"""The losses of the PPO family: pure functions of tensors.

Axes: N turns, T tokens, U decisions of a turn (its tokens, or the one action). Masks: True = counts.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

Aggregation = Literal["token_mean", "turn_mean", "agent_balanced"]
AGGREGATIONS = ("token_mean", "turn_mean", "agent_balanced")
KLEstimator = Literal["k1", "k2", "k3"]
KL_ESTIMATORS = ("k1", "k2", "k3")


def loss_weights(mask: Tensor, agent: Tensor, aggregation: Aggregation) -> Tensor:
    """The share of each decision in a loss: 0 where the mask is False, and summing to 1 (algorithms.md 3).

        token_mean:      1 / (all decisions)
        turn_mean:       1 / (decisions of its turn x turns)
        agent_balanced:  1 / (decisions of its agent x agents)

    mask: [N, U] bool, N turns of U decisions (tokens, or one action); every turn has at least one. agent: [N] whole
    numbers; different ones only where agents share an adapter. -> [N, U]
    """
    share = mask.float()
    per_turn = share.sum(-1, keepdim=True)
    if aggregation == "token_mean":
        return share / share.sum()
    if aggregation == "turn_mean":
        return share / per_turn.clamp(min=1) / len(mask)
    if aggregation == "agent_balanced":
        _, index = agent.unique(return_inverse=True)
        total = torch.zeros(int(index.max()) + 1).index_add(0, index, per_turn.squeeze(-1))
        return share / total[index].unsqueeze(-1) / len(total)
    raise ValueError(f"aggregation={aggregation!r}: expected one of {', '.join(AGGREGATIONS)}")


class PolicyLoss(NamedTuple):
    """loss: scalar. clip_fraction: scalar in [0, 1], the weight of decisions whose ratio left [1 - eps, 1 + eps]."""

    loss: Tensor
    clip_fraction: Tensor


def clipped_policy_loss(ratio: Tensor, advantage: Tensor, clip: float, factor: Tensor, weights: Tensor) -> PolicyLoss:
    """sum over decisions of w max(-rho M A, -clip(rho, 1 - eps, 1 + eps) M A).

    Schulman et al. 2017, arXiv 1707.06347, eq. 7; the compounded factor M of MARFT's sequential update stands *outside*
    the clip (algorithms.md 2.4; M = 1 gives PPO). ratio, advantage, factor, weights: [N, U], see ``loss_weights``.
    clip: eps.
    """
    shapes = [tuple(x.shape) for x in (ratio, advantage, factor, weights)]
    if len(set(shapes)) != 1:
        raise ValueError(f"clipped_policy_loss: shapes {shapes}: expected one shape [N, U]")
    weighted = factor.detach() * advantage
    loss = torch.maximum(-ratio * weighted, -ratio.clamp(1 - clip, 1 + clip) * weighted)
    return PolicyLoss((weights * loss).sum(), (weights * ((ratio - 1).abs() > clip)).sum())


def kl_to_reference(logprobs: Tensor, reference: Tensor, mask: Tensor, estimator: KLEstimator = "k3") -> Tensor:
    """An estimate of KL(pi_theta || pi_0) for each token, on tokens sampled from pi_theta; 0 where the mask is False.

        k1 = l - l0        k2 = (l - l0)^2 / 2        k3 = exp(l0 - l) - 1 - (l0 - l)

    Schulman 2020, http://joschu.net/blog/kl-approx.html; algorithms.md 2.6. k1 and k3 are unbiased; k2 and k3 are
    never negative. logprobs, reference, mask: [N, T] -> [N, T]
    """
    log_ratio = (reference - logprobs).masked_fill(~mask, 0.0)
    if estimator == "k1":
        return -log_ratio
    if estimator == "k2":
        return log_ratio**2 / 2
    if estimator == "k3":
        return log_ratio.exp() - 1 - log_ratio
    raise ValueError(f"estimator={estimator!r}: expected one of {', '.join(KL_ESTIMATORS)}")


def adapted_coefficient(beta: float, kl: float, target: float) -> float:
    """beta (1 + clip(KL / target - 1, -.2, .2) / 2): at most a tenth up or down an update.

    The proportional controller of Ziegler et al. 2019, arXiv 1909.08593, section 2.2. target: > 0.
    """
    return beta * (1 + max(-0.2, min(0.2, kl / target - 1)) / 2)


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


def explained_variance_ceiling(label: Tensor, target: Tensor) -> float:
    """Var(E[G | label]) / Var(G): what a critic that knows exactly the label explains (critic.md, 3).

    NaN where all returns are equal. label: [B] whole numbers, what is known of the episode before a turn. target: [B].
    """
    _, index = label.unique(return_inverse=True)
    total = torch.zeros(int(index.max()) + 1).index_add(0, index, target)
    best = (total / torch.bincount(index))[index]
    return explained_variance(best, target)
