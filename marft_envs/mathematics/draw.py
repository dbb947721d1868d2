"""Problems drawn from a generator: a pure function of (seed, index), with splits that share no content.

A problem belongs to "test" when the CRC-32 of its key is a multiple of 5, and to "train" otherwise, whatever the seed.
The key names the numbers and operations, so the same numbers in other words are in the same split. Problem ``index`` is
drawn again from the same generator until the split fits.
"""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marft_envs.mathematics import grade
from marft_envs.mathematics.agreement import answer_of
from marft_envs.suggest import expected
from marft_envs.task import Problem, Task
from marft_envs.verdict import Verdict

SPLITS = ("train", "test")
MAX_INDEX = 2**31 - 1
MAX_DRAWS = 1_000  # four of five draws miss "test": 0.8 ** 1000 is 1e-97


@dataclass(frozen=True)
class Draft:
    """A drawn problem before it has a number. key: its content in one canonical form. gold: one, or one per agent."""

    key: str
    prompt: str
    gold: str | Mapping[str, str]
    private: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


class DrawnTask(Task):
    """A generator without end. split: "train" or "test". seed: mixed with the index, never added to it."""

    def __init__(self, *, split: str = "train", seed: int = 0) -> None:
        if split not in SPLITS:
            raise ValueError(expected("split", split, SPLITS))
        self.split = split
        self.seed = whole_number("seed", seed, 0, None)

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Draft:
        """One problem of any split; all chance comes from ``rng``."""

    def problem(self, index: int) -> Problem:
        number = whole_number("index", index, 0, MAX_INDEX, error=IndexError)
        rng = np.random.default_rng([self.seed, number])
        for _ in range(MAX_DRAWS):
            draft = self.draw(rng)
            if split_of(draft.key) == self.split:
                notes = {**draft.notes, "key": draft.key, "split": self.split}
                return Problem(number, draft.prompt, draft.gold, draft.private, notes)
        raise ValueError(f"split={self.split!r}: no such problem of {self.name} in {MAX_DRAWS} draws; too few exist")

    def grade(self, answer: str, problem: Problem) -> Verdict:
        return grade(answer, problem.gold, unmarked="whole")

    def answer_of(self, text: str) -> str | None:
        return answer_of(text)


def split_of(key: str) -> str:
    """The split that a problem belongs to for good."""
    return "test" if zlib.crc32(key.encode()) % 5 == 0 else "train"


def whole_number(name: str, value: Any, low: int, high: int | None, *, error: type[Exception] = ValueError) -> int:
    """``value`` as an int from low to high; TypeError for another type, ``error`` outside the range."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}={value!r}: got {type(value).__name__}, expected int")
    if value < low or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"{low} to {high}"
        raise error(f"{name}={value}: expected {limits}")
    return int(value)
