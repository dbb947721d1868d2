"""Credit assignment in chains of growing length: how much of the score's noise is in the first agent's advantage."""

import itertools

import pytest
import torch

from baselines.functional.advantages import whiten
from baselines.ladder import arm
from baselines.ppo.credit import team_advantages
from baselines.trajectory import Batch


def chain_batch(success, score):
    """Return a batch of one round with n turns. success: [B, n], used for its shape."""
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
    """Return E[score | successes before turn k], [B, n]. chances: [n], each agent's probability of success."""
    columns = []
    for k in range(success.shape[1]):
        known, rest = success[:, :k], chances[k:]
        columns.append(
            (known.sum(-1) + rest.sum()) / len(chances) if task == "report" else known.prod(-1) * rest.prod()
        )
    return torch.stack(columns, -1)


@pytest.mark.parametrize("task", ["report", "all or nothing"])
def test_own_bootstraps_lose_the_first_agents_credit_in_a_growing_chain(task):
    """Correlation of the first agent's advantage with its success, over all 2^n episodes at 50 % each.

    Own bootstrap: 1 / sqrt(n) for the mean of n sections, and 1 / sqrt(2^n - 1) for all or nothing, because Cov =
    2^-n / 2, Var(R) = 2^-n (1 - 2^-n), Var(s) = 1/4. Chained with exact values and lambda_in = 0: 1 for every n.
    """
    for n in (2, 4, 8):
        success = torch.tensor(list(itertools.product((0.0, 1.0), repeat=n)))
        score, chances = outcomes(success, task), torch.full((n,), 0.5)

        def correlation(advantage, success=success):
            return float(torch.corrcoef(torch.stack([advantage[:, 0], success[:, 0]]))[0, 1])

        constant = score.mean().expand_as(success)  # the best value for an agent that sees no other agent
        own = correlation(credit("ippo", success, score, constant, 1.0))
        chained = correlation(credit("marft", success, score, central_values(success, chances, task), 0.0))
        half = correlation(credit("marft", success, score, central_values(success, chances, task), 0.5))
        assert own == pytest.approx(n**-0.5 if task == "report" else (2**n - 1) ** -0.5, abs=1e-5)
        assert chained == pytest.approx(1.0, abs=1e-5)
        assert own < half < chained


def train_sections(name, n, seed, updates=40, episodes=16, rate=0.1):
    """Train n agents that each write a section, on sampled episodes with whitened advantages.

    An agent's section is correct with its own probability; return the mean of these probabilities after training.
    """
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


def test_with_more_agents_the_chained_bootstrap_learns_faster_than_own_bootstraps():
    gap = {}
    for n in (2, 8):
        found = {name: sum(train_sections(name, n, seed) for seed in range(5)) / 5 for name in ("ippo", "marft")}
        gap[n] = found["marft"] - found["ippo"]
    assert gap[8] > gap[2] and gap[8] > 0.1  # measured: .06 and .19
