"""Curriculum over the generators: the difficulty of a problem is a function of its index.

| ``weights`` | level of problem ``index`` |
|---|---|
| None (default) | rises: p = 1 + (levels - 1) * min(1, index / until); one of the two levels next to p, mean p |
| {1: 3, 2: 1} | drawn with these weights, independent of the index |

The level is a pure function of (seed, index), as is the problem, which comes from the generator of that level. A
problem's split depends on its content alone, so train and test share no problem. ``problem.notes["level"]`` holds the
level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from marft_envs.arguments import check_integer, expected_one_of
from marft_envs.mathematics.grader.grading_policy import GradingPolicy
from marft_envs.mathematics.problems.arithmetic import Arithmetic
from marft_envs.mathematics.problems.word_problems import WordProblems
from marft_envs.task import Problem, Task, check_index
from marft_envs.verdict import Verdict

FAMILIES: dict[str, tuple[type[Arithmetic] | type[WordProblems], int]] = {
    "word_problems": (WordProblems, 4),
    "arithmetic": (Arithmetic, 5),
}
"""Generator and number of levels of each family."""


class Curriculum(Task):
    """Problems whose level rises with their index, or follows a fixed mixture of levels.

    Args:
        family: The generator: "word_problems" (4 levels) or "arithmetic" (5 levels).
        until: The index from which on all problems have the highest level. Ignored when ``weights`` is set.
        weights: A mapping from level to weight, for a mixture that does not depend on the index. Levels that are
            absent have weight 0; weights need not sum to 1. None for a level that rises with the index.
        split: "train" or "test".
        seed: The seed of the levels and of the generators, an integer from 0 on.

    Raises:
        ValueError: An argument has a value that is not allowed.
        TypeError: ``until``, ``seed`` or a level in ``weights`` is not an integer.
    """

    name = "curriculum"

    def __init__(
        self,
        *,
        family: str = "word_problems",
        until: int = 10_000,
        weights: Mapping[int, float] | None = None,
        split: str = "train",
        seed: int = 0,
    ) -> None:
        if family not in FAMILIES:
            raise ValueError(expected_one_of("family", family, FAMILIES))
        generator, levels = FAMILIES[family]
        self.family = family
        self.until = check_integer("until", until, 1, None)
        self.weights = None if weights is None else _check_weights(weights, levels)
        self._tasks = [generator(level=level, split=split, seed=seed) for level in range(1, levels + 1)]
        self.split = split
        self.seed = self._tasks[0].seed

    def level_weights(self, index: int) -> list[float]:
        """Return the probability of each level for problem ``index``, from level 1 on; the sum is 1."""
        if self.weights is not None:
            total = sum(self.weights.values())
            return [self.weights.get(level, 0.0) / total for level in range(1, len(self._tasks) + 1)]
        # Linear interpolation: only the two levels next to the (fractional) position have a positive weight.
        position = (len(self._tasks) - 1) * min(1.0, index / self.until)
        return [max(0.0, 1.0 - abs(level - position)) for level in range(len(self._tasks))]

    def problem(self, index: int) -> Problem:
        number = check_index(self, index)
        # A third element in the seed separates this stream from that of the generators, which use [seed, index].
        rng = np.random.default_rng([self.seed, number, len(self._tasks)])
        level = int(rng.choice(len(self._tasks), p=self.level_weights(number)))
        return self._tasks[level].problem(number)

    @property
    def policy(self) -> GradingPolicy:
        """How replies are compared with the golds."""
        return self._tasks[0].policy

    @policy.setter
    def policy(self, policy: GradingPolicy) -> None:
        self._tasks[0].policy = policy

    def grade(self, answer: str, problem: Problem) -> Verdict:
        return self._tasks[0].grade(answer, problem)

    def answer_of(self, text: str) -> str | None:
        return self._tasks[0].answer_of(text)


def _check_weights(weights: Mapping[int, float], levels: int) -> dict[int, float]:
    for level, weight in weights.items():
        check_integer("level in weights", level, 1, levels)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < math.inf:
            raise ValueError(
                f"weights={dict(weights)!r}: expected a finite number of at least 0 for level {level}, got {weight!r}"
            )
    if not sum(weights.values()):
        raise ValueError(f"weights={dict(weights)!r}: expected at least one level with a weight above 0")
    return dict(weights)
