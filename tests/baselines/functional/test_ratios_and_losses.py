"""Ratios and losses: golden number G6 of docs/reference/algorithms.md, section 5, and hand-computed cases."""

import math

import pytest
import torch

from baselines.functional.losses import (
    adapted_coefficient,
    bce_value_loss,
    clipped_policy_loss,
    clipped_value_loss,
    explained_variance,
    explained_variance_ceiling,
    kl_to_reference,
    loss_weights,
)
from baselines.functional.ratios import action_logprob, compound, effective_sample_size, step_monitor

OLD, NEW = torch.tensor([-10.0, -12, -8], dtype=torch.float64), torch.tensor([-9.5, -12.6, -8], dtype=torch.float64)
LENGTH, ADVANTAGE = torch.tensor([5, 6, 4]), torch.tensor([1.0, -1, 0.5], dtype=torch.float64)


def per_token(total, padding):
    """Return token log-probabilities that sum to ``total`` for each action, in equal shares, padded to 6, and the
    mask."""
    mask = torch.arange(6) < LENGTH.unsqueeze(-1)
    return (total / LENGTH).unsqueeze(-1).expand(3, 6) * mask + padding * ~mask, mask


@pytest.mark.parametrize(
    ("normalization", "ratio", "loss", "monitor", "clipped"),
    [
        ("sum", [1.648721, 0.548812, 1], -0.3, 0.09917764, 2 / 3),
        ("token", [1.105171, 0.904837, 1], -0.233445, 0.00333611, 0.0),
    ],
)
def test_g6(normalization, ratio, loss, monitor, clipped):
    words = torch.tensor([1, 1, 1])
    # the values in the padding differ and must not count
    old, new = (action_logprob(*per_token(x, p), normalization, words) for x, p in ((OLD, 3.0), (NEW, 7.0)))
    rho = (new - old).exp()
    found = clipped_policy_loss(rho, ADVANTAGE, 0.2, torch.ones(3, dtype=torch.float64), torch.ones(3).double() / 3)
    torch.testing.assert_close(rho, torch.tensor(ratio, dtype=torch.float64), rtol=0, atol=1e-6)
    assert float(found.loss) == pytest.approx(loss, abs=1e-6)
    assert float(step_monitor(rho).mean()) == pytest.approx(monitor, abs=1e-8)
    assert float(found.clip_fraction) == pytest.approx(clipped)


def test_g6_reverse_is_k3_of_the_reference():
    """k3 with the new policy as theta and the old as reference, each action one token: mean 0.10954982."""
    mask = torch.ones(3, 1, dtype=torch.bool)
    found = kl_to_reference(NEW.unsqueeze(-1), OLD.unsqueeze(-1), mask)
    assert float(found.mean()) == pytest.approx(0.10954982, abs=1e-8)


def test_kl_ignores_padding_and_is_zero_at_the_reference():
    logprobs = torch.tensor([[-1.0, -2.0, 5.0]])
    mask = torch.tensor([[True, True, False]])
    for estimator in ("k1", "k2", "k3"):
        found = kl_to_reference(logprobs, torch.tensor([[-1.0, -2.0, -9.0]]), mask, estimator)
        assert found.tolist() == [[0.0, 0.0, 0.0]]


def test_word_normalisation_never_divides_by_zero():
    logprobs, mask = torch.tensor([[-3.0, -3.0]]), torch.ones(1, 2, dtype=torch.bool)
    assert float(action_logprob(logprobs, mask, "word", torch.tensor([0]))) == -6.0
    assert float(action_logprob(logprobs, mask, "word", torch.tensor([3]))) == -2.0
    with pytest.raises(ValueError, match="normalization='letters': expected one of sum, token, word"):
        action_logprob(logprobs, mask, "letters", torch.tensor([1]))


def test_the_factor_is_outside_the_clip():
    # rho = 1.5 clips to 1.2; M = 2, A = 1: loss = max(-1.5 * 2, -1.2 * 2) = -2.4. Inside the clip it would be -1.2.
    found = clipped_policy_loss(torch.tensor([1.5]), torch.tensor([1.0]), 0.2, torch.tensor([2.0]), torch.ones(1))
    assert float(found.loss) == pytest.approx(-2.4)


def test_compound_multiplies_and_clamps():
    m = compound(torch.tensor([1.0, 1.5, 1.5]), torch.tensor([0.2, 0.2, 3.0]), torch.zeros(3), (0.5, 2.0))
    torch.testing.assert_close(m, torch.tensor([math.exp(0.2), 1.5 * math.exp(0.2), 2.0]))
    assert not compound(torch.ones(1), torch.zeros(1, requires_grad=True), torch.zeros(1), (0.5, 2.0)).requires_grad


def test_effective_sample_size():
    assert float(effective_sample_size(torch.ones(5))) == 1.0
    # weights 1 and 3: 16 / (2 * 10) = .8
    assert float(effective_sample_size(torch.tensor([1.0, 3.0]))) == pytest.approx(0.8)


def test_value_losses():
    # V = 1 moved from 0 with clip .2 towards G = 1: Huber(0) = 0 and Huber(.2 - 1) = .32; the larger counts
    loss = clipped_value_loss(torch.tensor([1.0]), torch.tensor([0.0]), torch.tensor([1.0]), 0.2)
    assert float(loss) == pytest.approx(0.32)
    assert float(bce_value_loss(torch.tensor([0.0]), torch.tensor([1.0]))) == pytest.approx(math.log(2))


def test_explained_variance():
    target = torch.tensor([0.0, 1.0, 0.0, 1.0])
    assert explained_variance(target, target) == 1.0
    assert explained_variance(torch.full((4,), 0.5), target) == pytest.approx(0.0)
    assert math.isnan(explained_variance(target, torch.ones(4)))


def test_loss_gradient_agrees_with_finite_differences():
    log_ratio = torch.tensor([0.05, -0.1, 0.3], dtype=torch.float64, requires_grad=True)
    advantage, factor = torch.tensor([1.0, -0.5, 2.0], dtype=torch.float64), torch.tensor([1.0, 1.3, 0.7]).double()
    weights = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    loss = lambda x: clipped_policy_loss(x.exp(), advantage, 0.2, factor, weights).loss  # noqa: E731
    assert torch.autograd.gradcheck(loss, log_ratio)


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("token_mean", [[1 / 6, 1 / 6, 1 / 6], [1 / 6, 0, 0], [1 / 6, 1 / 6, 0]]),
        ("turn_mean", [[1 / 9, 1 / 9, 1 / 9], [1 / 3, 0, 0], [1 / 6, 1 / 6, 0]]),
        # agent 5 has one turn of three tokens, agent 2 turns of one and two
        ("agent_balanced", [[1 / 6, 1 / 6, 1 / 6], [1 / 6, 0, 0], [1 / 6, 1 / 6, 0]]),
    ],
)
def test_loss_weights(aggregation, expected):
    mask = torch.tensor([[True, True, True], [True, False, False], [True, True, False]])
    found = loss_weights(mask, torch.tensor([5, 2, 2]), aggregation)
    torch.testing.assert_close(found, torch.tensor(expected))


def test_agent_balanced_weights_are_equal_for_rare_and_frequent_agents():
    found = loss_weights(torch.ones(4, 1, dtype=torch.bool), torch.tensor([0, 0, 0, 1]), "agent_balanced")
    torch.testing.assert_close(found.squeeze(-1), torch.tensor([1 / 6, 1 / 6, 1 / 6, 1 / 2]))
    with pytest.raises(ValueError, match="aggregation='mean': expected one of token_mean, turn_mean, agent_balanced"):
        loss_weights(torch.ones(1, 1, dtype=torch.bool), torch.zeros(1), "mean")


def test_kl_estimators_by_hand_and_in_expectation():
    """l = log .5, l0 = log .25: log ratio d = log 2. k1 = d, k2 = d^2 / 2, k3 = exp(-d) - 1 + d."""
    d = math.log(2)
    logprobs, reference = torch.tensor([[0.5]]).log(), torch.tensor([[0.25]]).log()
    mask = torch.ones(1, 1, dtype=torch.bool)
    found = {name: float(kl_to_reference(logprobs, reference, mask, name)) for name in ("k1", "k2", "k3")}
    assert found == pytest.approx({"k1": d, "k2": d * d / 2, "k3": -0.5 + d})
    policy, base = torch.tensor([[0.5, 0.3, 0.2]]).double(), torch.tensor([[0.3, 0.3, 0.4]]).double()
    exact = float((policy * (policy / base).log()).sum())
    mask = torch.ones(1, 3, dtype=torch.bool)
    for name in ("k1", "k3"):  # unbiased on samples of the policy
        assert float((policy * kl_to_reference(policy.log(), base.log(), mask, name)).sum()) == pytest.approx(exact)
    with pytest.raises(ValueError, match="estimator='k4': expected one of k1, k2, k3"):
        kl_to_reference(policy, base, mask, "k4")


def test_beta_moves_towards_the_target_by_a_tenth_at_most():
    assert adapted_coefficient(1.0, kl=0.3, target=0.1) == pytest.approx(1.1)
    assert adapted_coefficient(1.0, kl=0.0, target=0.1) == pytest.approx(0.9)
    assert adapted_coefficient(1.0, kl=0.11, target=0.1) == pytest.approx(1.05)
    assert adapted_coefficient(2.0, kl=0.1, target=0.1) == 2.0


def test_explained_variance_ceiling_of_an_all_or_nothing_chain():
    """(P_m - p) / (1 - p), P_m the success rate given that the chain is correct so far (docs/reference/critic.md,
    section 3). Of ten episodes six are correct so far, and four of these succeed: P_m = 4/6, p = .4."""
    label = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0, 1, 1])
    target = torch.tensor([1.0, 1, 1, 0, 0, 0, 0, 0, 1, 0])
    chain, success = 4 / 6, 0.4
    assert explained_variance_ceiling(label, target) == pytest.approx((chain - success) / (1 - success))
    assert explained_variance_ceiling(torch.zeros(10), target) == pytest.approx(0.0, abs=1e-6)
