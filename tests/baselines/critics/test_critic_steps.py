"""Steps of a critic with known values: the clipped Huber loss, weight decay, and the positions that open the gate."""

import math

import pytest
import torch

from baselines.critics.critic import TeamCritic
from baselines.ladder import arm
from baselines.ppo.learner import Learner
from tests.baselines.ppo.bigram import HALF, bigram_policy, duo_batch, zero_weights


@pytest.fixture
def critic_of(monkeypatch):
    """Return a function: settings -> a new critic, and the features of four episodes of which every second succeeds."""

    def make(name="marft", **settings):
        recorded = []
        with monkeypatch.context() as patch:
            patch.setattr(TeamCritic, "train", lambda self, features, *rest: recorded.append(features) or 0.0)
            learner = Learner(bigram_policy(), arm(name).with_settings(settings), temperature=HALF, seed=3)
            learner.update(duo_batch())
        return learner.critic, recorded[0]

    return make


def filled(features, value):
    return torch.full(features.decisions.shape, value)


def test_the_huber_loss_is_clipped_around_the_old_value(critic_of):
    """V = .5, V_old = .1, G = .5 and clip .2: max(huber(0), huber(.1 + .2 - .5)) = .2^2 / 2 = .02.

    The larger part does not depend on V, so the step changes no weight.
    """
    critic, features = critic_of(value_loss="huber", value_clip=0.2, critic_weight_decay=0.0)
    zero_weights(critic)
    loss = critic.train(features, filled(features, 0.1), filled(features, 0.5), 1)
    cause = "the critic's loss is not clipped around the old value"
    assert loss == pytest.approx(0.02, abs=1e-6), cause
    torch.testing.assert_close(critic.values(features), filled(features, 0.5), msg=lambda text: f"{cause}\n{text}")


def test_the_bce_loss_is_to_the_score_and_not_to_the_gae_return(critic_of):
    """V = .8 everywhere; two of four episodes succeed: -(log .8 + log .2) / 2. The returns are all 1."""
    critic, features = critic_of(value_loss="bce")
    zero_weights(critic)
    with torch.no_grad():
        critic.networks[0].bias.fill_(math.log(4))
    loss = critic.train(features, filled(features, 0.8), filled(features, 1.0), 1)
    expected = -(math.log(0.8) + math.log(0.2)) / 2
    assert loss == pytest.approx(expected, abs=1e-5), "with value_loss='bce' the critic's target is not the score"


def test_every_batch_of_the_replay_is_trained_on(critic_of):
    """V = .5. The first batch has the loss .02 of the test above, and the second, with V_old = G = .5, the loss 0."""
    critic, features = critic_of(value_loss="huber", value_clip=0.2, critic_weight_decay=0.0)
    zero_weights(critic)
    critic.train(features, filled(features, 0.1), filled(features, 0.5), 1)
    loss = critic.train(features, filled(features, 0.5), filled(features, 0.5), 1)
    assert loss == pytest.approx(0.01, abs=1e-6), "the critic is not trained on all batches of the replay buffer"


def test_without_a_gradient_a_step_of_the_critic_is_its_weight_decay(critic_of):
    """V is near .5, V_old = 0, G = .6, clip .2: huber(.2 - .6) counts, without a gradient. AdamW then only decays.

    Three steps with learning rate .01 and decay .5 multiply every weight by (1 - .005)^3.
    """
    settings = {"value_loss": "huber", "value_clip": 0.2, "critic_learning_rate": 0.01, "critic_weight_decay": 0.5}
    critic, features = critic_of(**settings)
    before = [p.detach().clone() for p in critic.networks.parameters()]
    critic.train(features, filled(features, 0.0), filled(features, 0.6), 3)
    decayed = 0
    for p, old in zip(critic.networks.parameters(), before, strict=True):
        if p.grad is not None and bool(old.any()):
            torch.testing.assert_close(
                p.detach(), old * 0.995**3, rtol=1e-5, atol=1e-7,
                msg=lambda text: f"the critic's weight decay has no effect\n{text}",
            )  # fmt: skip
            decayed += 1
    assert decayed >= 2, "no weight of the critic is part of the loss"


@pytest.mark.parametrize(("known_first", "running", "lam_in"), [(True, 0.0, 1.0), (False, 1.0, 0.25)])
def test_the_gate_reads_the_positions_after_the_first(critic_of, known_first, running, lam_in):
    """The values are the targets at one of the two positions and .5, which explains nothing, at the other."""
    critic, features = critic_of(lam_in=0.25, ev_gate=0.1)
    critic.running_ev = None
    position = torch.tensor([0, 1]).expand(4, 2)
    known = position == (0 if known_first else 1)
    values = torch.where(known, features.target, torch.full_like(features.target, 0.5)).unsqueeze(-1)
    explained = critic.observe_explained_variance(values, features, position)
    assert explained == pytest.approx({"1": float(known_first), "2": float(not known_first)})
    cause = "the gate on lam_in averages position 1, too, where nothing of the round is known"
    assert critic.running_ev == pytest.approx(running), cause
    assert critic.lam_in() == lam_in, cause
