"""The encoding of messages: it reads all their tokens, and has the same scale for 2 and for 500 tokens."""

import pytest
import torch

from baselines.critics.features import MESSAGE_STATES, read_reference, turn_features
from baselines.critics.token_statistics import (
    MESSAGE_STATISTICS,
    RUNNING_STATISTICS,
    message_statistics,
    running_statistics,
)
from baselines.ladder import arm
from baselines.policies.micro_batches import MicroBatches
from baselines.policies.policy import SharedBasePolicy, TokenScores
from baselines.ppo.credit import monte_carlo_returns
from tests.baselines.turns import turns_of

N, H = 16, 8


def message_of(policy, tokens):
    """Return the encodings of messages that follow a prompt of four tokens in tokens [N, L]."""
    turns = turns_of(tokens.tolist(), tokens.shape[1] - 4)
    with torch.no_grad(), policy.use(None):
        hidden = policy.hidden(turns)
        return turn_features(hidden, policy.token_scores(hidden, turns, 1.0), turns)[1]


@pytest.mark.parametrize("change", ["shuffled", "replaced"])
def test_the_encoding_of_a_long_message_depends_on_the_tokens_after_the_third(duo, change):
    """64 tokens; their mean log-probability is far below the -20 nats that all of them together may have had."""
    g = torch.Generator().manual_seed(0)
    vocabulary = duo.policy.vocabulary_sizes[0]
    tokens = torch.randint(vocabulary, (N, 4 + 64), generator=g)
    changed = tokens.clone()
    if change == "shuffled":
        changed[:, 7:] = tokens[:, 7:][:, torch.randperm(61, generator=g)]
    else:
        changed[:, 7:] = torch.randint(vocabulary, (N, 61), generator=g)
    moved = (message_of(duo.policy, tokens) - message_of(duo.policy, changed)).abs().amax(-1)
    assert bool((moved > 1e-3).all())


def sampled_scores(count, length, seed=0):
    """Return scores of ordinary sampled tokens: surprise 2 nats, gap 1 nat and entropy 2 nats on average."""
    g = torch.Generator().manual_seed(seed)
    rate = lambda mean: mean * -torch.rand(count, length, generator=g).clamp(min=1e-4).log()  # noqa: E731
    surprise = rate(2.0)
    gap = torch.where(torch.rand(count, length, generator=g) < 0.5, 0.0, surprise)
    return TokenScores(-surprise, 1 + rate(1.0), gap)


@pytest.mark.parametrize("length", [2, 64, 512])
def test_no_statistic_is_at_a_bound(length):
    """Two messages of the same length, one 10 % more surprising than the other, have different statistics."""
    scores = sampled_scores(N, length)
    more = TokenScores(*(1.1 * x for x in scores))
    turns = turns_of([[0] * (1 + length)] * N, length, truncated=True)
    hidden = torch.zeros(N, 1 + length, H)
    a, b = (turn_features(hidden, s, turns)[1][:, MESSAGE_STATES * H :] for s in (scores, more))
    in_nats = slice(0, 8)
    assert a.shape == (N, MESSAGE_STATISTICS) and float(a.abs().max()) < 8
    assert bool(((b - a).abs() > 1e-3)[:, in_nats].any(0).all())
    assert torch.equal(a[:, 8:12], b[:, 8:12])


def test_a_message_statistic_is_that_of_its_own_tokens():
    """Surprises 1, 3, 2, 0 and gaps 0, 2, 0, 0, with padding after them, computed by hand."""
    pad = [0.0] * 3
    scores = TokenScores(
        torch.tensor([[-1.0, -3.0, -2.0, -0.0, *pad]]),
        torch.tensor([[4.0, 2.0, 1.0, 1.0, *pad]]),
        torch.tensor([[0.0, 2.0, 0.0, 0.0, *pad]]),
    )
    mask = torch.tensor([[True] * 4 + [False] * 3])
    found = message_statistics(scores, mask, torch.tensor([True]))[0]
    nats = torch.tensor([1.5, 1.0, 3.0, 3.0, 0.5, 2.0, 2.0, 2.0])
    assert torch.allclose(found[:8].expm1(), nats, atol=1e-6)
    assert torch.allclose(found[8:12], torch.tensor([0.75, 0.0, torch.tensor(5.0).log() / 4, 1.0]))
    assert torch.allclose(found[12:].expm1(), torch.tensor([1.0, 3.0, 2.0, 0.0, 2.0, 0.0]), atol=1e-6)


def test_a_running_statistic_is_that_of_the_tokens_before():
    scores = sampled_scores(N, 64)
    mask = torch.ones(N, 64, dtype=torch.bool)
    before = running_statistics(scores, mask)
    assert before.shape == (N, 64, RUNNING_STATISTICS) and not before[:, 0].any()
    assert torch.allclose(before[:, 40, 0].expm1(), -scores.logprobs[:, :40].mean(-1), atol=1e-5)
    assert torch.allclose(before[:, 40, 3].expm1(), scores.gap[:, :40].amax(-1), atol=1e-5)
    other = TokenScores(*(torch.where(torch.arange(64) == 39, 1.1 * x + 0.1, x) for x in scores))
    after = running_statistics(other, mask)
    assert torch.equal(before[:, :40], after[:, :40])
    assert bool(((after - before)[:, 40].abs() > 1e-4).any(-1).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_features_are_stored_in_the_precision_of_the_base_model(make_setup, dtype):
    setup = make_setup()
    policy = SharedBasePolicy(make_setup.fresh_model().model.to(dtype), setup.policy.agents, None, 0)
    config = arm("marft_token")
    target = monte_carlo_returns(setup.batch, config)
    found = read_reference(policy, setup.batch, config, target, 1.0, MicroBatches())[0]
    assert {found.prompt.dtype, found.message.dtype, found.within.dtype} == {dtype}
