"""Grading in executors, faults of workers, and policies that raise."""

import multiprocessing
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from marft_envs import FlexMG, Verdict
from marft_envs.batch import BatchRunner
from tests.marft_envs.batch.sum_task import SHORT_OR_LONG, TEAM, Sum, say_index, uneven


def test_a_fault_of_the_grader_is_reported_and_the_other_episodes_are_graded():
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


class SlowGrader(Sum):
    """The verdict is CORRECT only if the policy is called again while the grader waits."""

    def __init__(self):
        self.called_again = threading.Event()

    def grade(self, answer, problem):
        return Verdict.correct() if self.called_again.wait(5) else Verdict.wrong("no call during grading")


@pytest.mark.parametrize("call", ["play", "stream"])
def test_grading_runs_concurrently_with_generation(call):
    """The first episode ends after one turn and is graded during the next call of the policy."""
    task, waves = SlowGrader(), []
    early = uneven(lambda index: index == 1)

    def policy(requests):
        waves.append(len(requests))
        if len(waves) == 2:
            task.called_again.set()
        return early(requests)

    with ThreadPoolExecutor(1) as executor:
        runner = BatchRunner(FlexMG(task, SHORT_OR_LONG, rounds=2), 2 if call == "play" else 1, executor=executor)
        episodes = list(getattr(runner, call)(policy, indices=[1, 2]))
    assert [e.score for e in episodes] == [1.0, 1.0]


def die_at_2(requests):
    return ["die" if r.index == 2 and r.agent == "second_0" else str(r.index) for r in requests]


DEADLY = """
import os, signal
from marft_envs import Problem, Task, Verdict

class Deadly(Task):
    name = "deadly"
    def problem(self, index):
        return Problem(index, f"say {index}", str(index))
    def grade(self, answer, problem):
        if answer == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("no")
"""


@pytest.fixture
def one_process(tmp_path, monkeypatch):
    """Make executors of one new process that can import ``deadly_task``, whose grader kills its process on "die"."""
    source = tmp_path / "deadly_task.py"
    source.write_text(DEADLY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    yield lambda: ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    sys.modules.pop("deadly_task", None)


def test_a_killed_worker_gives_not_graded_and_the_run_continues(one_process):
    import deadly_task

    game = FlexMG(deadly_task.Deadly(), TEAM)
    with one_process() as executor:
        runner = BatchRunner(game, 1, executor=executor)
        episodes = list(runner.stream(die_at_2, indices=[1, 2, 3]))
    assert [e.score for e in episodes] == [1.0, 0.0, 0.0]
    assert episodes[0].not_graded == ""
    assert all("BrokenProcessPool" in e.not_graded and not e.terminated for e in episodes[1:])
    assert (runner.counts.graded, runner.counts.not_graded) == (1, 2)
    with BatchRunner(game, 1, executor=one_process) as runner:
        episodes = [*runner.play(die_at_2, indices=[2]), *runner.play(die_at_2, indices=[3])]
    assert "BrokenProcessPool" in episodes[0].not_graded
    assert episodes[1].not_graded == "" and episodes[1].score == 1.0


def test_an_executor_that_was_shut_down_gives_not_graded():
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    (episode,) = BatchRunner(FlexMG(Sum(), TEAM), 1, executor=executor).play(say_index, indices=[1])
    assert "cannot schedule new futures after shutdown" in episode.not_graded and not episode.terminated
    game = FlexMG(Sum(), TEAM)
    with pytest.raises(TypeError, match="executor=3: expected"):
        BatchRunner(game, 1, executor=3)
    with pytest.raises(TypeError, match=r"executor=<lambda>: takes \(workers\), expected a function of no arguments"):
        BatchRunner(game, 1, executor=lambda workers: ThreadPoolExecutor(workers))
    with pytest.raises(TypeError, match=r"executor=<lambda> returned 3: expected a concurrent\.futures\.Executor"):
        BatchRunner(game, 1, executor=lambda: 3).play(say_index, indices=[1])
    with BatchRunner(game, 1, executor=ThreadPoolExecutor) as runner:
        assert runner.play(say_index, indices=[1])[0].outcome is not None


def test_finished_episodes_survive_a_policy_that_raises():
    called = []

    def policy(requests):
        called.append(len(requests))
        if len(called) == 3:
            raise ConnectionError("connection lost")
        return uneven(lambda i: i != 0)(requests)

    runner = BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=5), 3)
    with pytest.raises(ConnectionError, match="connection lost"):
        runner.play(policy, indices=[0, 1, 2])
    assert [(e.index, e.outcome.score) for e in runner.finished] == [(1, 0.0), (2, 0.0)]
    called.clear()
    with ThreadPoolExecutor(1) as executor:
        runner = BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=5), 2, executor=executor)
        with pytest.raises(ConnectionError):
            list(runner.stream(policy, indices=[0, 1, 2, 3]))
    assert [e.index for e in runner.finished] == [1, 2]
    assert len(runner.play(say_index, indices=[1, 2])) == 2 and runner.finished == []


def test_finished_episodes_survive_an_action_that_is_not_a_string():
    def policy(requests):
        return [str(r.index) if r.index == 1 or r.agent == "first_0" else None for r in requests]

    runner = BatchRunner(FlexMG(Sum(), TEAM), 2)
    with pytest.raises(TypeError, match="action of second_0: got NoneType"):
        runner.play(policy, indices=[1, 2])
    assert [(e.index, e.score, e.not_graded) for e in runner.finished] == [(1, 1.0, "")]
