"""A task and an environment that pass every check, for the tests of the checks."""

import itertools

import numpy as np
import pytest

from marft_envs import FlexMG, Problem, Role, Task, Team, Verdict

ABC = ("a_0", "b_0", "c_0")


class Words(Task):
    """Say the word of the problem. This task passes every check."""

    name, size = "words", 40

    def __init__(self, seed=0, split="train"):
        self.seed, self.split = seed, split

    def problem(self, index):
        if not 0 <= index < self.size:
            raise IndexError(f"index={index}: expected 0 to {self.size - 1}")
        word = "".join(np.random.default_rng([self.seed, index, self.split == "test"]).permutation(list("abcdefgh")))
        return Problem(int(index), f"Say the word number {index}.", word, {a: f"secret of {a}" for a in ABC}, {"n": 1})

    def grade(self, answer, problem):
        return Verdict.correct() if answer.strip() == problem.gold else Verdict.wrong("another word")


class Game(FlexMG):
    """Three agents, a_0 -> b_0 -> c_0, two rounds. Subclasses each break one rule."""

    def __init__(self, task=None, dependency="chain", **arguments):
        team = Team({a: Role(f"You are {a}.") for a in ABC}, dependency)
        super().__init__(task or Words(), team, **{"rounds": 2, "memory": "parents", **arguments})


INSTANCES = itertools.count()


def collector(wrong):
    """Return a decorator factory ``wrong(check, message)`` that adds environments to the list.

    ``check`` must reject the decorated class (or function that makes the environment) with ``message``.
    """

    def rejected_by(check, message):
        def add(make):
            wrong.append(pytest.param(check, message, make, id=f"{check}-{make.__name__}"))
            return make

        return add

    return rejected_by
