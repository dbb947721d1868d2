"""Coordination games with known optima, in which simultaneous updates fail and sequential ones with the factor succeed.

A cooperative matrix game: both agents choose 0 (score 1), or both choose 1 (score ``low``); anything else scores 0.
"""

import pytest
import torch

from baselines.functional.losses import clipped_policy_loss
from baselines.functional.ratios import compound

NO_CLIP = 1e9


def play_updates(starts, *, low, factor, updates=15, epochs=5, rate=3.0):
    """Return the expected score after sequential updates, a first.

    Updates are near-best responses: many epochs, no clip, a wide clamp. Without the factor they equal simultaneous
    updates, because the agents share no parameters. starts: each agent's initial probability of 0.
    """
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


def test_the_factor_reaches_the_better_equilibrium_where_simultaneous_updates_reach_the_worse():
    """a prefers 1 (0 with 15 %), b prefers 0 (65 %). Both respond to the other's *old* policy, so both change sides and
    end at .9. With the factor b responds to the new policy of a."""
    assert play_updates((0.15, 0.65), low=0.9, factor=False) == pytest.approx(0.9, abs=0.01)
    assert play_updates((0.15, 0.65), low=0.9, factor=True) > 0.98


def test_the_factor_does_not_always_reach_the_better_equilibrium():
    """From the mirrored start, the best response of a to b's old policy is 1, and b follows. Simultaneous updates
    happen to reach the better equilibrium. The factor makes each step exact; it does not choose the equilibrium."""
    assert play_updates((0.65, 0.35), low=0.9, factor=True) == pytest.approx(0.9, abs=0.01)
    assert play_updates((0.65, 0.35), low=0.9, factor=False) > 0.98


@pytest.mark.parametrize("preference", [0.05, 0.25, 0.45, 0.55, 0.75, 0.95])
def test_crossed_coordination_needs_the_factor(preference):
    """Two equally good equilibria and mirrored preferences: simultaneous responses stay mirrored, at .5 or less. With
    the factor the agents agree from every start."""
    assert play_updates((preference, 1 - preference), low=1.0, factor=False) <= 0.5 + 1e-9
    assert play_updates((preference, 1 - preference), low=1.0, factor=True) > 0.97
