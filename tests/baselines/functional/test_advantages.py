"""GAE over turns and tokens: golden numbers G1 to G5 and G7 of docs/reference/algorithms.md, section 5, and
properties."""

import pytest
import torch

from baselines.functional.advantages import (
    Discounts,
    all_equal,
    chained_gae,
    group_advantages,
    maporl_returns,
    token_gae,
    whiten,
)


def gae(rewards, values, terminated, ended, final, discounts):
    """Run GAE on [T, n] lists of rounds. The flags and the bootstrap of a round go to its last turn."""
    rewards, values = torch.tensor(rewards, dtype=torch.float64), torch.tensor(values, dtype=torch.float64)
    rounds, n = values.shape
    round_end = torch.zeros(rounds, n, dtype=torch.bool)
    round_end[:, -1] = True

    def on_last(per_round, dtype):
        flat = torch.zeros(rounds, n, dtype=dtype)
        flat[:, -1] = torch.tensor(per_round, dtype=dtype)
        return flat.reshape(1, -1)

    a, g = chained_gae(
        rewards.reshape(1, -1), values.reshape(1, -1), round_end.reshape(1, -1), on_last(terminated, torch.bool),
        on_last(ended, torch.bool), on_last(final, torch.float64), Discounts(*discounts),
    )  # fmt: skip
    return a.reshape(rounds, n), g.reshape(rounds, n)


V = [[0.5, 0.4], [0.3, 0.6], [0.2, 0.8]]
R = [[0, 0], [0, 1], [0, 1]]
CASES = {
    "G1": (
        (R, V, [0, 1, 1], [0, 1, 1], [0, 0, 0.7], (0.9, 0.8, 0.9, 0.8)),
        [[0.0401152, 0.25016], [0.528, 0.4], [0.664, 0.2]],
        [[0.5401152, 0.65016], [0.828, 1.0], [0.864, 1.0]],
    ),
    # round 2 truncated, value of its own final history .6; round 3 open with bootstrap .7
    "G1t": (
        (R, V, [0, 0, 0], [0, 1, 1], [0, 0.6, 0.7], (0.9, 0.8, 0.9, 0.8)),
        [[0.24166912, 0.530096], [0.9168, 0.94], [1.1176, 0.83]],
        None,
    ),
    "G2": (
        (R, V, [0, 1, 0], [0, 1, 1], [0, 0, 0.7], (0.9, 0.8, 0.9, 0.8)),
        [[0.0401152, 0.25016], [0.528, 0.4], [1.1176, 0.83]],
        [[0.5401152, 0.65016], [0.828, 1.0], [1.3176, 1.63]],
    ),
    "G3": (
        (R, V, [0, 1, 0], [0, 1, 1], [0, 0, 0.7], (0.9, 0.8, 1.0, 1.0)),
        [[0.274, 0.374], [0.7, 0.4], [1.43, 0.83]],
        [[0.774, 0.774], [1, 1], [1.63, 1.63]],
    ),
    "G4 discounted": (
        ([[0, 0, 1]], [[0.2, 0.5, 0.7]], [1], [1], [0], (0.99, 0.95, 0.99, 0.95)),
        [[0.741878575, 0.47515, 0.3]],
        None,
    ),
    "G4 undiscounted": (([[0, 0, 1]], [[0.2, 0.5, 0.7]], [1], [1], [0], (1, 1, 1, 1)), [[0.8, 0.5, 0.3]], None),
    # the sum .8 = R - V_1: the advantage decomposition
    "G4 lambda 0": (([[0, 0, 1]], [[0.2, 0.5, 0.7]], [1], [1], [0], (1, 0, 1, 0)), [[0.3, 0.2, 0.3]], None),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    arguments, advantages, returns = CASES[name]
    a, g = gae(*arguments)
    torch.testing.assert_close(a, torch.tensor(advantages, dtype=torch.float64), rtol=0, atol=1e-9)
    if returns is not None:
        torch.testing.assert_close(g, torch.tensor(returns, dtype=torch.float64), rtol=0, atol=1e-9)


def test_inside_a_round_the_end_of_the_previous_episode_has_no_effect():
    """The published code masks the steps inside a round with the *previous* transition's end and gets A[2][0] =
    -0.2."""
    a, _ = gae(*CASES["G1"][0])
    assert a[2, 0] == pytest.approx(0.664)


def random_rows(b=4, k=6, n=2, seed=0):
    g = torch.Generator().manual_seed(seed)
    rewards, values, final = (torch.rand(b, k, generator=g, dtype=torch.float64) for _ in range(3))
    round_end = (torch.arange(k) % n == n - 1).expand(b, k)
    ended = round_end & (torch.rand(b, k, generator=g) < 0.5)
    ended[:, -1] = True
    terminated = ended & (torch.rand(b, k, generator=g) < 0.5)
    return rewards, values, round_end, terminated, ended, final


D = Discounts(0.9, 0.8, 0.95, 0.7)


def test_permuting_the_batch_permutes_advantages():
    rows = random_rows()
    order = torch.tensor([2, 0, 3, 1])
    a, _ = chained_gae(*rows, D)
    b, _ = chained_gae(*(x[order] for x in rows), D)
    assert torch.equal(a[order], b)


def test_splitting_a_row_at_an_episode_end_equals_two_rows():
    rows = list(random_rows(b=1))
    rows[4] = rows[4].clone()
    rows[4][0, 3] = True  # an episode ends after the second round
    whole, _ = chained_gae(*rows, D)
    first, _ = chained_gae(*(x[:, :4] for x in rows), D)
    second, _ = chained_gae(*(x[:, 4:] for x in rows), D)
    assert torch.equal(whole, torch.cat([first, second], 1))


def test_padding_after_the_last_turn_changes_nothing():
    rows = random_rows()
    longer = [torch.cat([x, x[:, :2]], 1) for x in rows]
    a, _ = chained_gae(*rows, D)
    b, _ = chained_gae(*longer, D)
    assert torch.equal(a, b[:, :6])


def test_wrong_shapes_and_flags_are_reported():
    rows = list(random_rows())
    with pytest.raises(ValueError, match=r"expected one shape \[B, K\]"):
        chained_gae(rows[0][:, :3], *rows[1:], D)
    rows[3] = torch.ones_like(rows[3])
    rows[4] = torch.zeros_like(rows[4])
    with pytest.raises(ValueError, match="terminated to imply ended"):
        chained_gae(*rows, D)


def test_whitening_uses_the_mask_and_keeps_exact_zeros():
    # mean of (0, 1, 2) is 1, population std sqrt(2/3); the 9 is masked
    white = whiten(torch.tensor([0.0, 1.0, 2.0, 9.0]), torch.tensor([True, True, True, False]))
    torch.testing.assert_close(white, torch.tensor([-1.2247449, 0.0, 1.2247449, 0.0]))


@pytest.mark.parametrize("count", [7, 32, 128, 1000])
@pytest.mark.parametrize("value", [0.7, 0.35, 0.1, 1.0, -3.3])
def test_equal_numbers_have_no_advantage(count, value):
    """Their float32 mean may differ from them in the last bit, which whitening must not scale up."""
    equal = torch.full((count,), value)
    assert whiten(equal, torch.ones(count, dtype=torch.bool)).abs().max() == 0
    assert all_equal(equal) and not all_equal(torch.cat([equal, equal[:1] + 1e-6]))
    advantages, keep = group_advantages(equal, torch.zeros(count, dtype=torch.long))
    assert advantages.abs().max() == 0 and not keep.any()


def test_a_small_difference_of_scores_is_a_difference():
    """Scores of a group that differ by 1e-6, which is more than float32 rounds a score of 0.7 by."""
    _, keep = group_advantages(torch.tensor([0.7, 0.700001]), torch.zeros(2, dtype=torch.long))
    assert keep.all()


G5 = {  # lengths 3 and 2, V = .1 .. .5, R = 1
    (0.9, 0.8, 0.9, 0.8, 0.9, 0.8): [0.314536, 0.325744, 0.3552, 0.41, 0.5],
    (0.9, 0.8, 0.9, 0.8, 1.0, 0.8): [0.4488, 0.436, 0.42, 0.5, 0.5],
    (1.0, 1.0, 1.0, 1.0, 1.0, 1.0): [0.9, 0.8, 0.7, 0.6, 0.5],
    (0.9, 0.8, 0.9, 0.8, 1.0, 1.0): [0.692, 0.592, 0.492, 0.6, 0.5],
}


def one_round_of_tokens(lengths, values, reward, discounts):
    """Return the advantages of an episode of one round. lengths: tokens of each turn. values: one per token."""
    values = torch.tensor([values], dtype=torch.float64)
    turn_end = torch.zeros(1, sum(lengths), dtype=torch.bool)
    turn_end[0, torch.tensor(lengths).cumsum(0) - 1] = True
    last = torch.zeros_like(turn_end)
    last[0, -1] = True
    zeros = torch.zeros_like(values)
    return token_gae(reward * last.double(), values, turn_end, last, last, last, zeros, Discounts(*discounts))[0][0]


@pytest.mark.parametrize("discounts", G5)
def test_g5_token_level(discounts):
    a = one_round_of_tokens([3, 2], [0.1, 0.2, 0.3, 0.4, 0.5], 1.0, discounts)
    torch.testing.assert_close(a, torch.tensor(G5[discounts], dtype=torch.float64), rtol=0, atol=1e-6)


def test_with_undiscounted_tokens_the_first_of_each_turn_has_the_action_level_advantage():
    """V_{t,m,1} = V_{t,m}, and with gamma_tok = lam_tok = 1 the values inside an action have no influence."""
    first, inside = [0.2, 0.5, 0.7], [0.9, 0.1, 0.3]
    tokens = [v for pair in zip(first, inside, strict=True) for v in pair]
    a = one_round_of_tokens([2, 2, 2], tokens, 1.0, (0.9, 0.8, 0.95, 0.6, 1.0, 1.0))
    action = one_round_of_tokens([1, 1, 1], first, 1.0, (0.9, 0.8, 0.95, 0.6, 1.0, 1.0))
    torch.testing.assert_close(a[::2], action, rtol=0, atol=1e-12)
    damped = one_round_of_tokens([2, 2, 2], tokens, 1.0, (0.9, 0.8, 0.95, 0.6, 1.0, 0.5))
    assert (damped[::2] - action).abs().max() > 0.01


def test_the_end_of_a_round_must_be_the_end_of_a_turn():
    rows = random_rows()
    with pytest.raises(ValueError, match="expected round_end to imply turn_end"):
        token_gae(*rows[:2], torch.zeros_like(rows[2]), *rows[2:], D)


def test_g7_maporl_returns():
    scores = torch.tensor([[0.2, 0.8], [0.6, 1.0]], dtype=torch.float64)
    found = maporl_returns(scores, 0.3)
    torch.testing.assert_close(found[1], scores[1])
    torch.testing.assert_close(found[0], torch.tensor([0.338462, 0.8]).double(), rtol=0, atol=1e-6)


def test_maporl_returns_of_three_rounds():
    """By the formula: (0 + .5 (.5) + .25 (1)) / 1.75 for agent 0 of round 0."""
    scores = torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    assert float(maporl_returns(scores, 0.5)[0, 0]) == pytest.approx((0.25 + 0.25) / 1.75)


def test_group_advantages_are_relative_to_their_own_group():
    """Groups of different sizes, interleaved. Group 7: scores 0, 1: -+.5 / (.5 + eps). Group 3: 1, 1, .25: mean .75,
    std .35355. Group 1 has one member."""
    score, group = torch.tensor([0.0, 1.0, 1.0, 1.0, 0.25, 0.3]), torch.tensor([7, 3, 7, 3, 3, 1])
    a, keep = group_advantages(score, group, eps=0.0)
    expected = torch.tensor([-1.0, 0.70711, 1.0, 0.70711, -1.41421, 0.0])
    torch.testing.assert_close(a, expected, rtol=0, atol=1e-5)
    assert keep.tolist() == [True] * 5 + [False]
