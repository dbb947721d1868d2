"""Truncated episodes bootstrap from their own final views, terminated ones do not; on rollouts of several rounds."""

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
from marft_envs.batch import BatchRunner

RELAY = {"dataset": "relay", "style": "symbols"}
ROUNDS = {**RELAY, "rounds": 3}


def play(setup, **arguments):
    """Play the setup's problems and random numbers in another environment, so that the first turns are the same."""
    setup.runner = BatchRunner(marft_envs.math_v0.env(**ROUNDS, **arguments), 16)
    setup.episodes = setup.play((0, 7))
    sampler = EngineSampler(setup.engine, setup.loaded, None)
    return make_batch(setup.episodes, setup.policy.agents, 0, prompt=lambda _, seen: sampler.prompt(seen))


def learner_of(setup, name, **settings):
    """Return a learner with a perturbed critic, because the values of a new one are all about the same."""
    learner = Learner(setup.policy, arm(name).with_settings(settings), temperature=1.0, seed=3)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in learner.critic.networks.parameters():
            p += 0.1 * torch.randn(p.shape, generator=generator)
    return learner


def values_of(learner, batch):
    """Start the critic on a batch and return the features and the values of its turns."""
    features, _ = learner._read(batch)
    learner.critic.start(features, batch.mask)
    return features, learner.critic.values(features)[..., 0]


ARMS_AND_CRITICS = {
    "additive": ("marft", {}),
    "head": ("marft", {"critic_network": "head"}),
    "transformer": ("marft", {"critic_network": "transformer"}),
    "token": ("marft_token", {}),
    "token transformer": ("marft_token", {"critic_network": "transformer"}),
}


@pytest.mark.parametrize("turns", [3, 4], ids=["inside a round", "between rounds"])
def test_the_chain_continues_with_the_value_of_the_next_agents_turn(make_setup, turns):
    """Episodes truncated after ``turns`` turns, and the same not truncated: V_next is their V of turn ``turns``."""
    setup = make_setup(episodes=16)
    truncated, whole = play(setup, max_turns=turns), play(setup)
    assert truncated.mask.shape[1] == turns and whole.mask.shape[1] == 6
    assert torch.equal(truncated.views.next_agent, whole.agent_index[:, turns]) and whole.views is None
    for case, (name, settings) in ARMS_AND_CRITICS.items():
        learner = learner_of(setup, name, **settings)
        _, values = values_of(learner, whole)
        features, _ = learner._read(truncated)
        final = learner._final_values(truncated, features)
        expected = values[:, turns : turns + 1].expand(-1, turns)
        torch.testing.assert_close(final, expected, rtol=1e-4, atol=1e-5, msg=lambda text, case=case: f"{case}: {text}")
        assert values[:, turns].std() > 1e-3, case
        assert torch.equal(learner._final_values(whole, features), torch.zeros(16, 6)), case


def test_own_bootstraps_continue_with_the_agents_own_view(make_setup):
    """Without dependencies, every agent's view between two rounds is the prompt of its next turn."""
    setup = make_setup(episodes=16)
    truncated, whole = play(setup, max_turns=2, dependency="none"), play(setup, dependency="none")
    for network in ("additive", "head", "transformer"):
        learner = learner_of(setup, "ippo", critic_network=network)
        values_of(learner, whole)  # starts the critics
        with torch.no_grad():
            for critic in learner.critic.networks:
                critic.bias += torch.tensor([-0.5, 0.5])  # so that the values of the agents differ
        _, values = values_of(learner, whole)
        features, _ = learner._read(truncated)
        final = learner._final_values(truncated, features)
        torch.testing.assert_close(final, values[:, 2:4], rtol=1e-4, atol=1e-5)
        assert (final[:, 0] - final[:, 1]).abs().mean() > 1e-3, network


@pytest.mark.parametrize(("name", "in_round"), [("marft", 0.9), ("ippo", 0.5)])
def test_a_truncated_episode_has_no_reward_but_a_bootstrap(make_setup, name, in_round):
    """Truncated inside round 1: delta = discount * V_next - V on the last turn, where the chain uses gamma_in."""
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
def test_a_run_trains_on_truncated_and_on_graded_episodes(name, monkeypatch):
    """A stop word ends some episodes; the limit truncates the others, which an arm without a critic cannot use."""
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
        truncated = ~batch.scored
        assert torch.equal(
            explained[0], batch.mask & batch.scored.unsqueeze(-1)
        )  # a bootstrapped target would explain itself
        no_penalty = torch.zeros(*batch.mask.shape, 1)
        _, features, _ = run.learner._assign_credit(batch, run.learner._read(batch)[0], no_penalty)
        assert (features.target[truncated][batch.mask[truncated]] > 0).all()  # the critic's value; the score would be 0
        scores = batch.score.unsqueeze(-1).expand_as(batch.mask)
        ended_turns = batch.mask & ~truncated.unsqueeze(-1)
        assert torch.equal(features.target[ended_turns], scores[ended_turns])


def test_an_episode_whose_grading_fails_is_dropped():
    """A failed grading is counted as not graded, never as truncated, and nothing is bootstrapped from it."""
    run = Run(config("marft", environment_arguments={**RELAY}))
    run.training.task.grade = lambda answer, problem: 1 / 0
    row = run.train_once(1)
    assert row["skipped"] == "no graded episode" and (row["not_graded"], row["truncated"]) == (128, 0)
