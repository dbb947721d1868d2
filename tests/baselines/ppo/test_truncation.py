"""A truncated episode bootstraps from its own final views, a terminated one does not: real rollouts, several rounds."""

import pytest
import torch

import marft_envs
from baselines.critics.critic import TeamCritic
from baselines.engine.sampler import EngineSampler
from baselines.engine.torch_engine import Decoding
from baselines.ladder import arm
from baselines.ppo.learner import Learner
from baselines.runs.run import Run
from baselines.runs.run_config import RunConfig
from baselines.trajectory import make_batch
from marft_envs.batch.runner import BatchRunner

RELAY = {"dataset": "relay", "style": "symbols"}
ROUNDS = {**RELAY, "rounds": 3}


def play(setup, **arguments):
    """The same problems and random numbers in another environment, so the first turns are the same."""
    setup.runner = BatchRunner(marft_envs.math_v0.env(**ROUNDS, **arguments), 16)
    setup.episodes = setup.play((0, 7))
    sampler = EngineSampler(setup.engine, setup.loaded, None)
    return make_batch(setup.episodes, setup.policy.agents, 0, prompt=lambda _, seen: sampler.prompt(seen))


def learner_of(setup, name, **settings):
    """With a critic whose values differ: a fresh one says about the same of everything."""
    learner = Learner(setup.policy, arm(name).with_settings(settings), temperature=1.0, seed=3)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in learner.critic.networks.parameters():
            p += 0.1 * torch.randn(p.shape, generator=generator)
    return learner


def values_of(learner, batch):
    features, _ = learner._read(batch)
    learner.critic.start(features, batch.mask)
    return features, learner.critic.values(features)[..., 0]


@pytest.mark.parametrize("turns", [3, 4], ids=["in a round", "between rounds"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("marft", {}),
        ("marft", {"critic_network": "head"}),
        ("marft", {"critic_network": "transformer"}),
        ("marft_token", {}),
        ("marft_token", {"critic_network": "transformer"}),
    ],
    ids=["additive", "head", "transformer", "token", "token transformer"],
)
def test_the_chain_goes_on_with_the_value_that_the_next_agents_turn_would_have_had(make_setup, name, settings, turns):
    """Cut after ``turns`` turns against the same episodes, not cut: V_next is their V of turn ``turns``."""
    setup = make_setup(episodes=16)
    cut, whole = play(setup, max_turns=turns), play(setup)
    assert cut.mask.shape[1] == turns and whole.mask.shape[1] == 6
    assert torch.equal(cut.views.next_agent, whole.agent_index[:, turns]) and whole.views is None
    learner = learner_of(setup, name, **settings)
    _, values = values_of(learner, whole)
    features, _ = learner._read(cut)
    final = learner._final_values(cut, features)
    torch.testing.assert_close(final, values[:, turns : turns + 1].expand(-1, turns), rtol=1e-4, atol=1e-5)
    assert values[:, turns].std() > 1e-3
    assert torch.equal(learner._final_values(whole, features), torch.zeros(16, 6))


@pytest.mark.parametrize("network", ["additive", "head", "transformer"])
def test_own_bootstraps_go_on_with_the_agents_own_view(make_setup, network):
    """Nobody hears anybody in a round, so every agent's view between two rounds is that of its next turn."""
    setup = make_setup(episodes=16)
    cut, whole = play(setup, max_turns=2, dependency="none"), play(setup, dependency="none")
    learner = learner_of(setup, "ippo", critic_network=network)
    values_of(learner, whole)  # starts the critics
    with torch.no_grad():
        for critic in learner.critic.networks:
            critic.bias += torch.tensor([-0.5, 0.5])  # so that one agent's value is not the other's
    _, values = values_of(learner, whole)
    features, _ = learner._read(cut)
    final = learner._final_values(cut, features)
    torch.testing.assert_close(final, values[:, 2:4], rtol=1e-4, atol=1e-5)
    assert (final[:, 0] - final[:, 1]).abs().mean() > 1e-3


@pytest.mark.parametrize(("name", "in_round"), [("marft", 0.9), ("ippo", 0.5)])
def test_nothing_is_paid_for_what_was_not_played(make_setup, name, in_round):
    """Cut in the middle of round 1: delta = discount * V_next - V on the last turn; the chain goes on in that round."""
    setup = make_setup(episodes=16)
    batch = play(setup, max_turns=3)
    assert not batch.terminated.any() and batch.ended[:, -1].all() and not batch.score.any()
    learner = learner_of(setup, name, gamma=0.5, gamma_in=0.9, lam=0.0)
    features, values = values_of(learner, batch)
    final = learner._final_values(batch, features)
    zeros = torch.zeros_like(values).unsqueeze(-1)
    advantages, _ = learner.advantages(batch, features.decisions, values.unsqueeze(-1), zeros, 0.0, final)
    torch.testing.assert_close(advantages[:, -1, 0], in_round * final[:, -1] - values[:, -1])


def config(name, **changes):
    return RunConfig(
        **{
            "arm": name,
            "environment_arguments": {**ROUNDS, "max_turns": 4, "stop": {"word": ["reasoner_0", "9"]}},
            "updates": 1,
            "episodes": 128,
            "evaluation_items": 4,
            "settings": {"normalization": "sum", "learning_rate": 3e-3},
            "decoding": Decoding(max_new_tokens=4),
            **changes,
        }
    )


@pytest.mark.parametrize("name", ["marft", "magrpo"])
def test_a_run_trains_on_what_was_cut_and_on_what_was_graded(name, monkeypatch):
    """A word ends some episodes in time, the limit cuts the others, for which a critic has to stand in."""
    run, seen, update, explained = Run(config(name)), [], Learner.update, []
    measure = TeamCritic.observe_explained_variance

    def watched(self, values, features, position):
        explained.append(features.mask)
        return measure(self, values, features, position)

    monkeypatch.setattr(TeamCritic, "observe_explained_variance", watched)
    monkeypatch.setattr(Learner, "update", lambda self, batch: seen.append(batch) or update(self, batch))
    row = run.train_once(1)
    (batch,) = seen
    ended = int(batch.scored.sum())
    assert 0 < ended < 64 and row["truncated"] == row["not_graded"] == 128 - ended
    assert len(batch.score) == (128 if name == "marft" else ended)
    if name == "marft":
        assert "skipped" not in row
        cut = ~batch.scored
        assert torch.equal(explained[0], batch.mask & batch.scored.unsqueeze(-1))  # a value explains no value
        _, features, _ = run.learner._assign_credit(batch, run.learner._read(batch)[0], torch.zeros(*batch.mask.shape, 1))
        assert (features.target[cut][batch.mask[cut]] > 0).all()  # a value, where a score would have been 0
        scores = batch.score.unsqueeze(-1).expand_as(batch.mask)
        ended_turns = batch.mask & ~cut.unsqueeze(-1)
        assert torch.equal(features.target[ended_turns], scores[ended_turns])


def test_a_fault_is_left_out_however_the_episode_ended():
    """A grader that fails, and a limit after it: dropped and counted, nothing is bootstrapped from."""
    run = Run(config("marft", environment_arguments={**RELAY}))
    run.training.task.grade = lambda answer, problem: 1 / 0
    row = run.train_once(1)
    assert row["skipped"] == "no graded episode" and (row["not_graded"], row["truncated"]) == (128, 0)
