"""The batch runner: lockstep, grouping, order, faults, grading beside play."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import marft_envs
from marft_envs import FlexMG, Problem, Role, Task, Team, Verdict
from marft_envs.batch import BatchRunner, Reply


class Sum(Task):
    """Say the index; "crash" crashes the grader."""

    name = "sum"

    def __init__(self):
        self.graded_in = set()

    def problem(self, index):
        return Problem(index, f"say {index}", str(index))

    def grade(self, answer, problem):
        self.graded_in.add(threading.current_thread().name)
        if answer == "crash":
            raise RuntimeError("lost the worker")
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("no")


TEAM = Team({"first_0": Role(), "second_0": Role(answers=True)})


def test_one_call_for_each_waiting_role_and_results_in_order():
    calls = []

    def policy(requests):
        calls.append([(r.agent, r.episode, r.index) for r in requests])
        return [Reply(str(r.index), kept=("kept", r.turn)) for r in requests]

    episodes = BatchRunner(FlexMG(Sum(), TEAM), 4).play(policy, indices=[5, 5, 8, 1])
    assert calls == [[(a, e, i) for e, i in enumerate([5, 5, 8, 1])] for a in ("first_0", "second_0")]
    assert [e.index for e in episodes] == [5, 5, 8, 1]
    assert [e.score for e in episodes] == [1.0] * 4
    assert all(e.terminated and e.rewards == {"first_0": 1.0, "second_0": 1.0} for e in episodes)
    assert episodes[2].steps[1].kept == ("kept", 1)
    assert episodes[2].steps[1].request.observation["messages"][-1]["content"] == "8"


def test_a_fault_is_told_and_the_others_are_graded():
    episodes = BatchRunner(FlexMG(Sum(), TEAM), 2).play(
        lambda requests: ["crash" if r.index == 1 else "2" for r in requests], indices=[1, 2]
    )
    assert episodes[0].not_graded == "second_0: RuntimeError: lost the worker"
    assert not episodes[0].terminated
    assert episodes[1].not_graded == "" and episodes[1].score == 1.0


def test_grading_runs_in_the_executor():
    task = Sum()
    with ThreadPoolExecutor(2, thread_name_prefix="grader") as executor:
        runner = BatchRunner(FlexMG(task, TEAM), 8, executor=executor)
        episodes = runner.play(lambda requests: [str(r.index) for r in requests], indices=range(8))
    assert all(name.startswith("grader") for name in task.graded_in)
    assert sum(e.score for e in episodes) == 8


def test_the_batch_plays_as_single_episodes_do():
    env = marft_envs.math_v0.env(dataset="relay", style="symbols")
    episodes = BatchRunner(env, 3).play(lambda requests: ["7"] * len(requests), indices=[4, 5, 6])
    for episode in episodes:
        env.reset(options={"index": episode.index})
        for step in episode.steps:
            assert env.agent_selection == step.request.agent
            assert env.observe(step.request.agent) == step.request.observation
            env.step(step.text)
        assert env.rewards == episode.rewards


def test_wrong_use_is_named():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 2)
    with pytest.raises(ValueError, match="indices has 3 entries: expected at most size=2"):
        runner.play(lambda requests: [], indices=[1, 2, 3])
    with pytest.raises(ValueError, match="policy returned 1 replies for first_0: expected 2"):
        runner.play(lambda requests: ["x"], indices=[1, 2])
    with pytest.raises(TypeError, match="action of first_0: got int"):
        runner.play(lambda requests: [3, 4], indices=[1, 2])
    with pytest.raises(ValueError, match="size=0"):
        BatchRunner(FlexMG(Sum(), TEAM), 0)
