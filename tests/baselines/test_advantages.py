"""Chained GAE against golden numbers G1, G1t-G4 of algorithms.md (computed independently), and its properties."""

import pytest
import torch

from baselines.advantages import Discounts, chained_gae, whiten


def gae(rewards, values, terminated, ended, final, discounts):
    """Golden numbers are [T, n] tables of rounds; the flat list of turns has the round's flags on its last turn."""
    rewards, values = torch.tensor(rewards, dtype=torch.float64), torch.tensor(values, dtype=torch.float64)
    rounds, n = values.shape
    round_end = torch.zeros(rounds, n, dtype=torch.bool)
    round_end[:, -1] = True

    def on_last(per_round, dtype):
        table = torch.zeros(rounds, n, dtype=dtype)
        table[:, -1] = torch.tensor(per_round, dtype=dtype)
        return table.reshape(1, -1)

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


def test_inside_a_round_the_previous_episodes_end_does_not_cut():
    """The published code masks a round's inner step with the *previous* transition's end and gets A[2][0] = -0.2."""
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


def test_padding_behind_the_last_turn_is_harmless():
    rows = random_rows()
    longer = [torch.cat([x, x[:, :2]], 1) for x in rows]
    a, _ = chained_gae(*rows, D)
    b, _ = chained_gae(*longer, D)
    assert torch.equal(a, b[:, :6])


def test_wrong_shapes_and_flags_are_named():
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
