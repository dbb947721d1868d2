"""What the problems of a task look like: how many, how long, how hard, how often repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from marft_envs.task import Problem, Task
from marft_envs.testing.episodes import strings_in, to_plain
from marft_envs.testing.task_variants import problem_of

_LEVELS = ("level", "difficulty", "rating", "operations", "steps")
"""Keys of a problem's notes that name its difficulty; the first that is there counts."""


@dataclass(frozen=True)
class ProblemStatistics:
    """What the problems look like.

    Attributes:
        size: Number of problems; None for a generator without an end.
        read: Number of problems that were read for these statistics.
        duplicates: How many of them repeat the text and gold of an earlier one.
        prompt_chars: Shortest, median and longest text that the agents of a problem read, in characters.
        golds: Number of different golds.
        levels: Number of problems by level of difficulty, if the notes have one.
        origin: Where the data comes from; "generated" for a generator.
    """

    size: int | None
    read: int
    duplicates: int
    prompt_chars: tuple[int, int, int]
    golds: int
    levels: Mapping[str, int]
    origin: str

    def lines(self) -> Iterator[str]:
        """Yield the statistics as text."""
        low, median, high = self.prompt_chars
        size = "no end" if self.size is None else f"{self.size:,}"
        yield f"problems: {size}; of {self.read} read, {self.duplicates} repeated, {self.golds} different golds"
        yield f"characters that a problem's agents read: {low} to {high}, median {median}; origin: {self.origin}"
        if self.levels:
            yield "levels: " + ", ".join(f"{level}: {count}" for level, count in self.levels.items())


def problem_statistics(task: Task, most: int = 500) -> ProblemStatistics:
    """Read the first problems of a task and describe them.

    Args:
        task: The task.
        most: Largest number of problems to read.
    """
    count = most if task.size is None else min(most, task.size)
    read_problems = [problem_of(task, index) for index in range(count)]
    contents = [repr(to_plain([p.prompt, dict(p.private), p.gold])) for p in read_problems]
    lengths = sorted(sum(map(len, _texts(problem))) for problem in read_problems)
    levels = Counter(level for problem in read_problems if (level := _level(problem)))
    return ProblemStatistics(
        size=task.size,
        read=count,
        duplicates=count - len(set(contents)),
        prompt_chars=(lengths[0], lengths[len(lengths) // 2], lengths[-1]),
        golds=len({repr(to_plain(problem.gold)) for problem in read_problems}),
        levels=dict(sorted(levels.items())),
        origin=str(getattr(task, "origin", "generated")),
    )


def _texts(problem: Problem) -> list[str]:
    return strings_in([problem.prompt, dict(problem.private)])


def _level(problem: Problem) -> str:
    return next((f"{name} {problem.notes[name]}" for name in _LEVELS if name in problem.notes), "")
