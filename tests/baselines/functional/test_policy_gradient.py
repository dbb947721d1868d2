"""Exact policy gradients on a game that is small enough to enumerate, computed by the learner's own functions.

Two agents write two tokens of two letters each; agent b reads the whole message of agent a. Logits in a table replace
the language model. Every episode is weighted with its probability, so an expectation is a weighted sum and nothing is
sampled.
"""

import itertools

import pytest
import torch

from baselines.functional.advantages import Discounts, token_gae
from baselines.functional.losses import clipped_policy_loss
from baselines.functional.ratios import compound

NO_CLIP = 1e9
MESSAGES = list(itertools.product((0, 1), repeat=2))
PAIRS = list(itertools.product(range(4), range(4)))
FIRST, SECOND = (torch.tensor(x) for x in zip(*PAIRS, strict=True))  # [16] messages of a and of b


def random_game(seed=0):
    """Return logits of a [3 prefixes, 2] and of b [4 messages of a, 3 prefixes, 2], and the score of each pair [16]."""
    g = torch.Generator().manual_seed(seed)
    a, b = torch.randn(3, 2, generator=g).double(), torch.randn(4, 3, 2, generator=g).double()
    return a.requires_grad_(), b.requires_grad_(), torch.rand(16, generator=g).double()


def token_logprobs(logits, messages):
    """Return [16, 2], the log-probabilities of the letters of messages. logits: [16, prefixes (none, 0, 1), 2]."""
    letters = torch.tensor(MESSAGES)[messages]
    logp = logits.log_softmax(-1)
    prefix = torch.stack([torch.zeros_like(messages), 1 + letters[:, 0]], -1)
    return logp.gather(1, prefix.unsqueeze(-1).expand(-1, -1, 2)).gather(-1, letters.unsqueeze(-1)).squeeze(-1)


def policies(a, b):
    return token_logprobs(a.expand(16, 3, 2), FIRST), token_logprobs(b[FIRST], SECOND)


def exact_values(probability, score):
    """Return E[score | the letters so far] before each of the four tokens, [16, 4]."""
    letters = torch.cat([torch.tensor(MESSAGES)[FIRST], torch.tensor(MESSAGES)[SECOND]], -1)
    columns = []
    for known in range(4):
        same = (letters[:, None, :known] == letters[None, :, :known]).all(-1).double()  # [16, 16]
        columns.append((same @ (probability * score)) / (same @ probability))
    return torch.stack(columns, -1)


def surrogate_gradient(parameter, new, old, advantage, probability, factor=None):
    """Return the gradient of the expected surrogate. new, old, advantage: [16, U]."""
    factor = torch.ones_like(probability) if factor is None else factor
    weights = probability.detach().unsqueeze(-1).expand_as(new)
    spread = factor.unsqueeze(-1).expand_as(new)
    found = clipped_policy_loss((new - old.detach()).exp(), advantage.detach(), NO_CLIP, spread, weights)
    return torch.autograd.grad(-found.loss, parameter, retain_graph=True)[0]


def advantages(score, values, by_token, discounts):
    """Return the advantages [16, 2, U] of both turns. values: [16, 4], before each of the four tokens."""
    values = values if by_token else values[:, ::2]
    units = values.shape[1]
    turn_end = (torch.arange(units) % (units // 2) == units // 2 - 1).expand(16, units)
    last = (torch.arange(units) == units - 1).expand(16, units)
    rewards, zeros = score.unsqueeze(-1) * last, torch.zeros_like(values)
    return token_gae(rewards, values, turn_end, last, last, last, zeros, discounts)[0].reshape(16, 2, -1)


@pytest.mark.parametrize("by_token", [False, True])
@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("values", ["exact", "wrong"])
def test_the_surrogate_has_the_exact_policy_gradient(by_token, lam, values):
    """For both agents, at action level and at token level. With exact values it holds for every lambda, with wrong
    values for lambda = 1 only, where they are a baseline."""
    a, b, score = random_game()
    log_a, log_b = policies(a, b)
    probability = (log_a.sum(-1) + log_b.sum(-1)).exp()
    exact = torch.autograd.grad((probability * score).sum(), (a, b), retain_graph=True)
    v = exact_values(probability.detach(), score)
    if values == "wrong":
        v = (
            exact_values(probability.detach(), score.flip(0)) ** 2
        )  # values of another game, so a function of the history
    advantage = advantages(score, v, by_token, Discounts(1.0, lam, 1.0, lam, 1.0, lam))
    for turn, (parameter, tokens) in enumerate([(a, log_a), (b, log_b)]):
        unit = tokens if by_token else tokens.sum(-1, keepdim=True)
        found = surrogate_gradient(parameter, unit, unit, advantage[:, turn], probability)
        last_action = not by_token and turn == 1  # no successor: no bootstrap, so no bias
        if values == "exact" or lam == 1.0 or last_action:
            torch.testing.assert_close(found, exact[turn], rtol=0, atol=1e-12)
        else:
            assert (found - exact[turn]).abs().max() > 1e-3


def test_the_factor_makes_the_second_agents_gradient_exact_after_the_first_has_moved():
    """The batch is from (a, b), and a is updated to a'. With M (of plain sums, not clamped) the gradient of b is the
    one at (a', b), without M the one at (a, b)."""
    a, b, score = random_game()
    log_a, log_b = policies(a, b)
    probability = (log_a.sum(-1) + log_b.sum(-1)).exp()
    moved = (-2 * a).detach()
    new_a, _ = policies(moved, b)
    exact_new = torch.autograd.grad((torch.exp(new_a.sum(-1) + log_b.sum(-1)) * score).sum(), b, retain_graph=True)[0]
    exact_old = torch.autograd.grad((probability * score).sum(), b, retain_graph=True)[0]
    advantage = advantages(score, exact_values(probability.detach(), score), False, Discounts(1.0, 1.0, 1.0, 1.0))[:, 1]
    factor = compound(torch.ones(16).double(), new_a.sum(-1), log_a.sum(-1), (1e-9, 1e9))
    unit = log_b.sum(-1, keepdim=True)
    with_factor = surrogate_gradient(b, unit, unit, advantage, probability, factor)
    torch.testing.assert_close(with_factor, exact_new, rtol=0, atol=1e-12)
    without = surrogate_gradient(b, unit, unit, advantage, probability)
    torch.testing.assert_close(without, exact_old, rtol=0, atol=1e-12)
    assert (with_factor - without).abs().max() > 0.005
