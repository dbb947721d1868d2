"""The task of the study of homogeneous teams: its checks, and the vote."""

import importlib

import pytest

import marft_envs
from marft_envs.testing import check_task

SIZES = (2, 4, 8)
pytestmark = pytest.mark.usefixtures("clean_registry")  # the module registers its environments


def test_it_is_a_task():
    voted_sums = importlib.import_module("benchmarks.tasks.voted_sums")  # not the one that a test before has forgotten
    assert check_task(voted_sums.VotedSums).passed and voted_sums.SIZES == SIZES


@pytest.mark.parametrize(("right", "score"), [(0, 0.0), (1, 0.0), (2, 0.5), (3, 1.0), (4, 1.0)])
def test_the_majority_decides(right, score):
    env = marft_envs.make("benchmarks.tasks.voted_sums:voted_sums_4_v0").unwrapped
    env.reset(seed=0)
    for agent in range(4):
        env.step(env.problem.gold if agent < right else "-1")
    assert env.outcome.score == score


@pytest.mark.parametrize("size", SIZES)
def test_every_agent_reads_the_sum_alone(size):
    env = marft_envs.make(f"benchmarks.tasks.voted_sums:voted_sums_{size}_v0").unwrapped
    env.reset(seed=0)
    assert len(env.possible_agents) == size and not env.team.dependency.edges
    views = [env.observe(agent)["messages"] for agent in env.possible_agents]
    assert all(view == ({"role": "user", "name": "task", "content": env.problem.prompt},) for view in views)
