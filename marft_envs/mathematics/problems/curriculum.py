"""A curriculum over the generators: how hard a problem is, as a function of its index.

| ``weights`` | level of problem ``index`` |
|---|---|
| None (default) | rises: p = 1 + (levels - 1) * min(1, index / until), drawn from the two levels next to p |
| {1: 3, 2: 1} | drawn with these weights, whatever the index |

The level, as all else, is a pure function of (seed, index). The problems of a level are those of its generator; splits
are by content, so train and test share none. ``problem.notes["level"]`` says the level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from marft_envs.arguments import check_integer
from marft_envs.mathematics.problems.generated import Arithmetic, WordProblems
from marft_envs.task import Problem, Task, check_index
from marft_envs.verdict import Verdict

FAMILIES: dict[str, tuple[type[Arithmetic] | type[WordProblems], int]] = {
    "word_problems": (WordProblems, 4),
    "arithmetic": (Arithmetic, 5),
}


class Curriculum(Task):
    """family: "word_problems" or "arithmetic". until: the index from which only the hardest level is drawn.

    weights: level -> weight, a fixed mixture in place of the rise. split, seed: as for the generators.
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
            raise ValueError(f"family={family!r}: expected one of {', '.join(FAMILIES)}")
        maker, levels = FAMILIES[family]
        self.family = family
        self.until = check_integer("until", until, 1, None)
        self.weights = None if weights is None else _checked(weights, levels)
        self._tasks = [maker(level=level, split=split, seed=seed) for level in range(1, levels + 1)]
        self.split = split
        self.seed = self._tasks[0].seed

    def level_weights(self, index: int) -> list[float]:
        """The chance of each level, from level 1 on, for problem ``index``; they sum to 1."""
        if self.weights is not None:
            total = sum(self.weights.values())
            return [self.weights.get(level, 0.0) / total for level in range(1, len(self._tasks) + 1)]
        place = (len(self._tasks) - 1) * min(1.0, index / self.until)
        return [max(0.0, 1.0 - abs(level - place)) for level in range(len(self._tasks))]

    def problem(self, index: int) -> Problem:
        number = check_index(self, index)
        rng = np.random.default_rng([self.seed, number, len(self._tasks)])
        level = int(rng.choice(len(self._tasks), p=self.level_weights(number)))
        return self._tasks[level].problem(number)

    def grade(self, answer: str, problem: Problem) -> Verdict:
        return self._tasks[0].grade(answer, problem)

    def answer_of(self, text: str) -> str | None:
        return self._tasks[0].answer_of(text)


def _checked(weights: Mapping[int, float], levels: int) -> dict[int, float]:
    for level, weight in weights.items():
        check_integer("level in weights", level, 1, levels)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < math.inf:
            raise ValueError(
                f"weights={dict(weights)!r}: expected a number from 0 on for level {level}, got {weight!r}"
            )
    if not sum(weights.values()):
        raise ValueError(f"weights={dict(weights)!r}: expected at least one level with a weight above 0")
    return dict(weights)
