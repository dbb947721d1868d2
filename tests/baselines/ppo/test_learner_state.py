"""A learner that is saved, loaded and continued equals the uninterrupted one, bit for bit."""

import pytest
import torch

from baselines.ladder import arm
from baselines.ppo.learner import Learner

SETTINGS = {
    "learning_rate": 1e-3, "order": "permuted", "minibatches": 2, "ev_gate": -1.0, "kl_target": 1e-4,
    "critic_warmup": 2, "advantage_floor": 0.0, "epochs": 1,
}  # fmt: skip


def make(setup, name):
    return Learner(setup.policy, arm(name).with_settings(SETTINGS), temperature=1.0, seed=3)


def plain(metrics):
    return {k: v for k, v in metrics.items() if k != "seconds"}


@pytest.mark.parametrize("name", ["ippo", "marft", "marft_token", "magrpo"])
def test_a_reloaded_learner_continues_bit_for_bit(make_setup, tmp_path, name):
    whole = make_setup(episodes=16)
    whole.batch = whole.play_groups(8)
    learner = make(whole, name)
    for _ in range(3):  # the first two train the critic only
        learner.update(whole.batch)
    torch.save({"learner": learner.state_dict(), "weights": whole.weights()}, tmp_path / "state.pt")
    expected = [plain(learner.update(whole.batch)) for _ in range(2)]

    resumed = make_setup(episodes=16, perturb=0.0)  # other weights until they are loaded
    fresh = make(resumed, name)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    for agent, weights in state["weights"].items():
        for p, w in zip(resumed.policy.adapter_parameters(agent), weights, strict=True):
            p.data.copy_(w)
    fresh.load_state_dict(state["learner"])
    assert [plain(fresh.update(whole.batch)) for _ in range(2)] == expected
    assert resumed.changed(whole.weights()) == []
