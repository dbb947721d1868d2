"""Oracles beyond golden numbers: tabular games small enough to enumerate, played through the learner's own losses,
advantages and factor. Logits in a table stand in for the language model; every episode counts with its probability, so
an expectation is a weighted sum and nothing is sampled, but for the last test."""

import itertools

import pytest
import torch

from baselines.functional.advantages import Discounts, token_gae, whiten
from baselines.functional.losses import clipped_policy_loss
from baselines.functional.ratios import compound
from baselines.ladder import arm
from baselines.ppo.credit import team_advantages
from baselines.trajectory import Batch

NO_CLIP = 1e9

# ---- exact policy gradients: two agents, two tokens of two letters each; agent b reads a's whole message

MESSAGES = list(itertools.product((0, 1), repeat=2))
PAIRS = list(itertools.product(range(4), range(4)))
FIRST, SECOND = (torch.tensor(x) for x in zip(*PAIRS, strict=True))  # [16] messages of a and of b


def tables(seed=0):
    """Logits of a [3 prefixes, 2] and of b [4 messages of a, 3 prefixes, 2], and the score of each pair [16]."""
    g = torch.Generator().manual_seed(seed)
    a, b = torch.randn(3, 2, generator=g).double(), torch.randn(4, 3, 2, generator=g).double()
    return a.requires_grad_(), b.requires_grad_(), torch.rand(16, generator=g).double()


def token_logprobs(logits, messages):
    """[16, 2]: of a message's letters under logits [16, 3, 2], whose prefixes are: nothing, 0, 1."""
    letters = torch.tensor(MESSAGES)[messages]
    logp = logits.log_softmax(-1)
    prefix = torch.stack([torch.zeros_like(messages), 1 + letters[:, 0]], -1)
    return logp.gather(1, prefix.unsqueeze(-1).expand(-1, -1, 2)).gather(-1, letters.unsqueeze(-1)).squeeze(-1)


def policies(a, b):
    return token_logprobs(a.expand(16, 3, 2), FIRST), token_logprobs(b[FIRST], SECOND)


def exact_values(probability, score):
    """E[score | the letters so far], before each of the four tokens: [16, 4]."""
    letters = torch.cat([torch.tensor(MESSAGES)[FIRST], torch.tensor(MESSAGES)[SECOND]], -1)
    columns = []
    for known in range(4):
        same = (letters[:, None, :known] == letters[None, :, :known]).all(-1).double()  # [16, 16]
        columns.append((same @ (probability * score)) / (same @ probability))
    return torch.stack(columns, -1)


def surrogate_gradient(parameter, new, old, advantage, probability, factor=None):
    """d/d parameter of the expected clipped surrogate. new, old, advantage: [16, U]."""
    factor = torch.ones_like(probability) if factor is None else factor
    weights = probability.detach().unsqueeze(-1).expand_as(new)
    spread = factor.unsqueeze(-1).expand_as(new)
    found = clipped_policy_loss((new - old.detach()).exp(), advantage.detach(), NO_CLIP, spread, weights)
    return torch.autograd.grad(-found.loss, parameter, retain_graph=True)[0]


def advantages(score, values, by_token, discounts):
    """[16, 2, U] for the two turns. values: before each of the four tokens."""
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
    """Of both agents and at both levels. With exact values for every lambda; with wrong ones for lambda = 1 only, where
    they are a mere baseline."""
    a, b, score = tables()
    log_a, log_b = policies(a, b)
    probability = (log_a.sum(-1) + log_b.sum(-1)).exp()
    exact = torch.autograd.grad((probability * score).sum(), (a, b), retain_graph=True)
    v = exact_values(probability.detach(), score)
    if values == "wrong":
        v = exact_values(probability.detach(), score.flip(0)) ** 2  # of the history, but of another game
    advantage = advantages(score, v, by_token, Discounts(1.0, lam, 1.0, lam, 1.0, lam))
    for turn, (parameter, tokens) in enumerate([(a, log_a), (b, log_b)]):
        unit = tokens if by_token else tokens.sum(-1, keepdim=True)
        found = surrogate_gradient(parameter, unit, unit, advantage[:, turn], probability)
        last_action = not by_token and turn == 1  # nobody follows: no bootstrap, so no bias
        if values == "exact" or lam == 1.0 or last_action:
            torch.testing.assert_close(found, exact[turn], rtol=0, atol=1e-12)
        else:
            assert (found - exact[turn]).abs().max() > 1e-3


def test_the_factor_makes_the_second_agents_gradient_exact_after_the_first_has_moved():
    """Old batch, new first policy: with M (of plain sums, unclamped) the gradient is the one at (a', b); without it,
    the one at (a, b)."""
    a, b, score = tables()
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


# ---- a cooperative matrix game: both should play 0 (score 1) or both 1 (score ``low``); anything else scores 0


def play(starts, *, low, factor, updates=15, epochs=5, rate=3.0):
    """The expected score after sequential updates, a first, by near-best responses: many epochs, no clip, wide clamp.
    Without the factor they are simultaneous ones, number for number (disjoint parameters). starts: each agent's
    probability of 0."""
    logits = [torch.tensor([p, 1 - p]).double().log().requires_grad_() for p in starts]
    payoff = torch.tensor([[1.0, 0.0], [0.0, low]]).double()
    first, second = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
    score = payoff[first, second]
    for _ in range(updates):
        old = [x.detach().log_softmax(-1)[y] for x, y in zip(logits, (first, second), strict=True)]
        probability = (old[0] + old[1]).exp()
        advantage = score - (probability * score).sum()
        weight = torch.ones(4).double()
        for m, actions in enumerate((first, second)):
            used = weight if factor else torch.ones(4).double()
            for _ in range(epochs):
                ratio = (logits[m].log_softmax(-1)[actions] - old[m]).exp()
                loss = clipped_policy_loss(ratio, advantage, NO_CLIP, used, probability).loss
                logits[m].data -= rate * torch.autograd.grad(loss, logits[m])[0]
            weight = compound(weight, logits[m].detach().log_softmax(-1)[actions], old[m], (1e-6, 1e6))
    p, q = (x.detach().softmax(-1) for x in logits)
    return float(p @ payoff @ q)


def test_simultaneous_updates_settle_in_the_worse_equilibrium_where_the_factor_reaches_the_better():
    """a leans to 1 (15 %), b to 0 (65 %), and both answer the other's *old* policy: they change sides, and end at .9.
    With the factor b answers a's new policy."""
    assert play((0.15, 0.65), low=0.9, factor=False) == pytest.approx(0.9, abs=0.01)
    assert play((0.15, 0.65), low=0.9, factor=True) > 0.98


def test_the_factor_follows_the_first_agent_and_so_not_always_to_the_better_equilibrium():
    """The mirrored start: a's best answer to b's old policy is 1, and b follows. Simultaneous updates happen to reach
    the better one. The factor makes each step exact; it does not choose the equilibrium."""
    assert play((0.65, 0.35), low=0.9, factor=True) == pytest.approx(0.9, abs=0.01)
    assert play((0.65, 0.35), low=0.9, factor=False) > 0.98


@pytest.mark.parametrize("lean", [0.05, 0.25, 0.45, 0.55, 0.75, 0.95])
def test_crossed_coordination_needs_the_factor(lean):
    """Two equally good ways to agree, and mirrored leanings: simultaneous answers stay mirrored for ever, at .5 or
    less. With the factor they agree from every start."""
    assert play((lean, 1 - lean), low=1.0, factor=False) <= 0.5 + 1e-9
    assert play((lean, 1 - lean), low=1.0, factor=True) > 0.97


# ---- chains of growing length: what of the score's noise stands in the first agent's advantage


def chain_batch(success, score):
    """One round of n turns; ``success`` [B, n] only gives the shape."""
    b, n = success.shape
    mask = torch.ones(b, n, dtype=torch.bool)
    last = (torch.arange(n) == n - 1).expand(b, n)
    zeros = torch.zeros(b, n, dtype=torch.long)
    return Batch(
        agents=tuple(f"a_{i}" for i in range(n)), turns={}, mask=mask, agent_index=torch.arange(n).expand(b, n),
        round_index=zeros, position=torch.arange(n).expand(b, n), round_end=last, terminated=last, ended=last,
        round_score=score.unsqueeze(-1).expand(b, n), score=score, group=zeros[:, 0],
    )  # fmt: skip


def credit(name, success, score, values, lam_in):
    batch = chain_batch(success, score)
    config = arm(name).with_settings({"lam": 1.0})
    mask, values, nothing = batch.mask.unsqueeze(-1), values.unsqueeze(-1), torch.zeros_like(values)
    a, _ = team_advantages(batch, mask, values, nothing.unsqueeze(-1), config, lam_in, nothing)
    return a.squeeze(-1)


def outcomes(success, task):
    return success.mean(-1) if task == "report" else success.prod(-1)


def central_values(success, chances, task):
    """E[score | who did well before turn k], [B, n]. chances: [n] of each agent's success."""
    columns = []
    for k in range(success.shape[1]):
        known, rest = success[:, :k], chances[k:]
        columns.append(
            (known.sum(-1) + rest.sum()) / len(chances) if task == "report" else known.prod(-1) * rest.prod()
        )
    return torch.stack(columns, -1)


@pytest.mark.parametrize("task", ["report", "all or nothing"])
def test_own_bootstraps_lose_the_first_agents_credit_in_a_growing_chain(task):
    """Correlation of the first agent's advantage with whether it did well, over all 2^n episodes at 50 % each. Own: 1 /
    sqrt(n) for the mean of n sections, 1 / sqrt(2^n - 1) for all or nothing (Cov = 2^-n / 2, Var(R) = 2^-n (1 - 2^-n),
    Var(s) = 1/4). Chained with exact values and lambda_in = 0: 1 at every length."""
    for n in (2, 4, 8):
        success = torch.tensor(list(itertools.product((0.0, 1.0), repeat=n)))
        score, chances = outcomes(success, task), torch.full((n,), 0.5)

        def correlation(advantage, success=success):
            return float(torch.corrcoef(torch.stack([advantage[:, 0], success[:, 0]]))[0, 1])

        constant = score.mean().expand_as(success)  # all that an agent without a view of the others can know
        own = correlation(credit("ippo", success, score, constant, 1.0))
        chained = correlation(credit("marft", success, score, central_values(success, chances, task), 0.0))
        half = correlation(credit("marft", success, score, central_values(success, chances, task), 0.5))
        assert own == pytest.approx(n**-0.5 if task == "report" else (2**n - 1) ** -0.5, abs=1e-5)
        assert chained == pytest.approx(1.0, abs=1e-5)
        assert own < half < chained


def train_sections(name, n, seed, updates=40, episodes=16, rate=0.1):
    """n agents that write a section each, right with a chance of their own; sampled episodes and whitened advantages.
    -> the mean chance afterwards."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.zeros(n)
    for _ in range(updates):
        chances = logits.sigmoid()
        success = (torch.rand(episodes, n, generator=generator) < chances).float()
        score = success.mean(-1)
        values = central_values(success, chances, "report")
        values = values if name == "marft" else chances.mean().expand_as(success)
        raw = credit(name, success, score, values, 0.0 if name == "marft" else 1.0)
        for m in range(n):
            white = whiten(raw[:, m], torch.ones(episodes, dtype=torch.bool))
            logits[m] += rate * (white * (success[:, m] - chances[m])).mean()
    return float(logits.sigmoid().mean())


def test_with_more_agents_the_chain_learns_ahead_of_own_bootstraps():
    gap = {}
    for n in (2, 8):
        found = {name: sum(train_sections(name, n, seed) for seed in range(5)) / 5 for name in ("ippo", "marft")}
        gap[n] = found["marft"] - found["ippo"]
    assert gap[8] > gap[2] and gap[8] > 0.1  # measured: .06 and .19
