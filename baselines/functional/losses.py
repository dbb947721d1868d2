"""The losses of the PPO family and statistics of a critic, as pure functions of tensors.

Axes: N turns, T tokens, U decisions of a turn (its tokens, or the one action). Masks: True means "counts".
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from baselines.functional.options import AGGREGATIONS, KL_ESTIMATORS, Aggregation, KLEstimator


def loss_weights(mask: Tensor, agent: Tensor, aggregation: Aggregation) -> Tensor:
    """Return the weight of each decision in a loss: 0 where the mask is False, and 1 in total.

        token_mean:      1 / (all decisions)
        turn_mean:       1 / (decisions of its turn x turns)
        agent_balanced:  1 / (decisions of its agent x agents)

    Source: docs/reference/algorithms.md, section 3.

    Args:
        mask: [N, U] bool: N turns of U decisions. Every turn has at least one.
        agent: [N] integers, the index of the agent that acted. More than one value occurs only where agents share an
            adapter.
        aggregation: "token_mean", "turn_mean" or "agent_balanced".

    Returns:
        [N, U] floats.

    Raises:
        ValueError: If the aggregation is unknown.
    """
    share = mask.float()
    per_turn = share.sum(-1, keepdim=True)
    if aggregation == "token_mean":
        return share / share.sum()
    if aggregation == "turn_mean":
        return share / per_turn.clamp(min=1) / len(mask)
    if aggregation == "agent_balanced":
        _, index = agent.unique(return_inverse=True)
        total = share.new_zeros(int(index.max()) + 1).index_add(0, index, per_turn.squeeze(-1))
        return share / total[index].unsqueeze(-1) / len(total)
    raise ValueError(f"aggregation={aggregation!r}: expected one of {', '.join(AGGREGATIONS)}")


class PolicyLoss(NamedTuple):
    """The clipped surrogate loss of some decisions.

    Attributes:
        loss: Scalar.
        clip_fraction: Scalar in [0, 1], the total weight of the decisions whose ratio is outside [1 - eps, 1 + eps].
    """

    loss: Tensor
    clip_fraction: Tensor


def clipped_policy_loss(ratio: Tensor, advantage: Tensor, clip: float, factor: Tensor, weights: Tensor) -> PolicyLoss:
    """Return PPO's clipped surrogate loss, with the compounded factor M outside the clip.

        L = sum over decisions of w max(-rho M A, -clip(rho, 1 - eps, 1 + eps) M A)

    With M = 1 and equal weights it is the negative of eq. 7, Schulman et al. 2017, https://arxiv.org/abs/1707.06347.
    M is the factor of MARFT's sequential update (https://arxiv.org/abs/2504.16129; docs/reference/algorithms.md,
    sections 2.3 and 2.4; golden number G6).

    Args:
        ratio: [N, U] floats, rho = pi_new / pi_old of each decision.
        advantage: [N, U] floats.
        clip: eps > 0.
        factor: [N, U] floats, M of each decision; no gradient reaches it.
        weights: [N, U] floats, see ``loss_weights``.

    Returns:
        The loss and the weight of the clipped decisions.

    Raises:
        ValueError: If the shapes differ.
    """
    shapes = [tuple(x.shape) for x in (ratio, advantage, factor, weights)]
    if len(set(shapes)) != 1:
        raise ValueError(f"clipped_policy_loss: shapes {shapes}: expected one shape [N, U]")
    # M multiplies the advantage. Inside the clip, clip(rho M), a factor beyond 1 +- eps would stop the gradient of an
    # agent that has not moved yet.
    weighted = factor.detach() * advantage
    loss = torch.maximum(-ratio * weighted, -ratio.clamp(1 - clip, 1 + clip) * weighted)
    return PolicyLoss((weights * loss).sum(), (weights * ((ratio - 1).abs() > clip)).sum())


def kl_to_reference(logprobs: Tensor, reference: Tensor, mask: Tensor, estimator: KLEstimator = "k3") -> Tensor:
    """Return an estimate of KL(pi_theta || pi_0) for each token, on tokens that were sampled from pi_theta.

        k1 = l - l0        k2 = (l - l0)^2 / 2        k3 = exp(l0 - l) - 1 - (l0 - l)

    k1 and k3 are unbiased; k2 and k3 are never negative.

    Source: Schulman 2020, http://joschu.net/blog/kl-approx.html; docs/reference/algorithms.md, section 2.6.

    Args:
        logprobs: [N, T] floats, l = log pi_theta.
        reference: [N, T] floats, l0 = log pi_0.
        mask: [N, T] bool, the action's tokens.
        estimator: "k1", "k2" or "k3".

    Returns:
        [N, T] floats, 0 where the mask is False.

    Raises:
        ValueError: If the estimator is unknown.
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
    """Return the KL coefficient for the next update, moved towards a target KL by at most a tenth.

        beta (1 + clip(KL / target - 1, -0.2, 0.2) / 2)

    Source: the proportional controller of section 2.2, Ziegler et al. 2019, https://arxiv.org/abs/1909.08593;
    docs/reference/algorithms.md, section 2.6.

    Args:
        beta: The coefficient of this update.
        kl: The mean KL per token in this update.
        target: The KL to reach, > 0.

    Returns:
        The new coefficient.
    """
    return beta * (1 + max(-0.2, min(0.2, kl / target - 1)) / 2)


def clipped_value_loss(value: Tensor, old_value: Tensor, target: Tensor, clip: float, delta: float = 1.0) -> Tensor:
    """Return PPO's clipped value loss, with the Huber loss in place of the square.

        mean of max(huber(V - G), huber(V_old + clamp(V - V_old, -eps, eps) - G))

    Source: the code of Schulman et al. 2017, https://arxiv.org/abs/1707.06347 (the paper does not clip values);
    docs/reference/algorithms.md, section 2.5.

    Args:
        value: [B] floats, V of the network that is trained.
        old_value: [B] floats, V before the update.
        target: [B] floats, the return G.
        clip: eps > 0.
        delta: Where the Huber loss changes from quadratic to linear.

    Returns:
        A scalar.
    """
    near = old_value + (value - old_value).clamp(-clip, clip)
    losses = [functional.huber_loss(v, target, reduction="none", delta=delta) for v in (value, near)]
    return torch.maximum(*losses).mean()


def bce_value_loss(logit: Tensor, target: Tensor) -> Tensor:
    """Return the binary cross-entropy of the value sigma(logit) against a return in [0, 1].

        mean of -G log sigma(x) - (1 - G) log(1 - sigma(x))

    Source: docs/reference/critic.md, section 6.

    Args:
        logit: [B] floats, x.
        target: [B] floats in [0, 1], the return G.

    Returns:
        A scalar.
    """
    return functional.binary_cross_entropy_with_logits(logit, target)


def explained_variance(value: Tensor, target: Tensor) -> float:
    """Return the share of the returns' variance that the values explain: 1 - Var(G - V) / Var(G).

    Source: docs/reference/critic.md, section 3.

    Args:
        value: [B] floats, V.
        target: [B] floats, the return G.

    Returns:
        At most 1, negative for values that are worse than a constant; NaN if all returns are equal.
    """
    variance = target.var(correction=0)
    if variance <= 1e-12:
        return float("nan")
    return float(1 - (target - value).var(correction=0) / variance)


def explained_variance_ceiling(label: Tensor, target: Tensor) -> float:
    """Return the explained variance of a critic that knows a label of the episode and nothing else.

        Var(E[G | label]) / Var(G)

    In an all-or-nothing chain this is (P_m - p) / (1 - p).

    Source: docs/reference/critic.md, section 3.

    Args:
        label: [B] integers, what is known of the episode before a turn.
        target: [B] floats, the return G.

    Returns:
        A number in [0, 1]; NaN if all returns are equal.
    """
    _, index = label.unique(return_inverse=True)
    total = target.new_zeros(int(index.max()) + 1).index_add(0, index, target)
    best = (total / torch.bincount(index))[index]
    return explained_variance(best, target)
