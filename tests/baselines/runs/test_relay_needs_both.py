"""The relay needs cooperation: with messages shuffled between episodes the score falls to chance."""

import re

import marft_envs
from baselines.engine.sampler import EngineSampler
from marft_envs.batch import BatchRunner


def shuffled(policy, agent):
    """Return ``policy`` with the agent's replies moved to the next episode of the batch."""

    def play(requests):
        replies = policy(requests)
        return [*replies[1:], replies[0]] if requests[0].agent == agent else replies

    return play


def add_up(requests):
    """A policy that adds all numbers in the user messages."""
    texts = [" ".join(m["content"] for m in r.observation["messages"] if m["role"] == "user") for r in requests]
    return [str(sum(map(int, re.findall(r"\d+", text)))) for text in texts]


def accuracy(runner, policy, count):
    episodes = runner.play(policy, indices=range(count))
    return sum(e.score for e in episodes) / count


def test_perfect_agents_need_each_others_messages():
    for team, n in (("duo", 2), ("quartet", 4)):
        env = marft_envs.math_v0.env(dataset="relay", style="symbols", team=team, dependency="chain", split="test")
        runner = BatchRunner(env, 400)
        assert accuracy(runner, add_up, 400) == 1.0
        for agent in env.possible_agents[: n - 1]:
            # chance: the total of another episode's numbers happens to be the same (two to six digits: 4 to 8 %)
            assert accuracy(runner, shuffled(add_up, agent), 400) < 0.1


def test_the_tiny_model_needs_its_first_agents_message(make_setup):
    setup = make_setup(episodes=400, perturb=0.0)
    greedy = EngineSampler(setup.engine, setup.loaded, None)
    whole, broken = (accuracy(setup.runner, p, 400) for p in (greedy, shuffled(greedy, "reasoner_0")))
    assert whole > 0.4
    assert broken < 0.12
