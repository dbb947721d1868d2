"""A small task, its teams and policies, for the tests of the batch runner."""

import threading

from marft_envs import FlexMG, Problem, Role, Task, Team, Verdict
from marft_envs.batch import BatchRunner


class Sum(Task):
    """Say the index. The answer "crash" makes the grader raise."""

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


ABC = ("a_0", "b_0", "c_0")


def three(dependency, **team):
    return Team({agent: Role(answers=agent == "c_0") for agent in ABC}, dependency, **team)


def say_index(requests):
    return [str(r.index) for r in requests]


SHORT_OR_LONG = Team(dict.fromkeys(("first_0",), Role(answers=True)), stop={"word": ["first_0", "stop"]})


def uneven(stop_early):
    """Return a policy that ends an episode after one turn if ``stop_early(index)``, and never else."""
    return lambda requests: ["stop" if stop_early(r.index) else "go" for r in requests]


def stream(stop_early, size, executor=None, **arguments):
    with BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=5), size, executor=executor) as runner:
        return list(runner.stream(uneven(stop_early), **arguments))
