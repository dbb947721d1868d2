"""Problems drawn from a generator: a pure function of (seed, index), with splits that share no content.

A problem belongs to "test" when the CRC-32 of its key is a multiple of 5, and to "train" otherwise, whatever the seed.
The key names the content (numbers and operations, say) in one form, so the same content in other words is in the same
split. Problem ``index`` is drawn again from the same generator until the split fits.
"""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marft_envs.arguments import check_integer, expected_one_of
from marft_envs.task import Problem, Task, check_index

SPLITS = ("train", "test")
MAX_DRAWS = 1_000  # four of five draws miss "test": 0.8 ** 1000 is 1e-97


@dataclass(frozen=True)
class ProblemDraft:
    """A drawn problem before it has a number. key: its content in one canonical form. gold: one, or one per agent."""

    key: str
    prompt: str
    gold: Any
    private: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


class GeneratedTask(Task):
    """A generator without end. split: "train" or "test". seed: mixed with the index, never added to it."""

    def __init__(self, *, split: str = "train", seed: int = 0) -> None:
        if split not in SPLITS:
            raise ValueError(expected_one_of("split", split, SPLITS))
        self.split = split
        self.seed = check_integer("seed", seed, 0)

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> ProblemDraft:
        """One problem of any split; all chance comes from ``rng``."""

    def problem(self, index: int) -> Problem:
        number = check_index(self, index)
        rng = np.random.default_rng([self.seed, number])
        for _ in range(MAX_DRAWS):
            draft = self.draw(rng)
            if split_of(draft.key) == self.split:
                notes = {**draft.notes, "key": draft.key, "split": self.split}
                return Problem(number, draft.prompt, draft.gold, draft.private, notes)
        raise ValueError(f"split={self.split!r}: no such problem of {self.name} in {MAX_DRAWS} draws; too few exist")


def split_of(key: str) -> str:
    """The split that a problem belongs to for good."""
    return "test" if zlib.crc32(key.encode()) % 5 == 0 else "train"
