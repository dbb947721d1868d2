"""GeneratedTask: a task whose problems are generated from (seed, index), with splits that share no content.

A problem belongs to the split "test" if the CRC-32 of its key is a multiple of 5, and otherwise to "train", for every
seed. The key is a canonical form of the content (say, its numbers and operations), so the same content in other words
is in the same split. Problem ``index`` is drawn repeatedly from one generator until it belongs to the task's split.
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
MAX_DRAWS = 1_000  # four of five draws are not in "test", so the chance of failure is 0.8 ** 1000, or 1e-97


@dataclass(frozen=True)
class ProblemDraft:
    """A generated problem without an index.

    Attributes:
        key: A canonical form of the content; it decides the split.
        prompt: The string that every agent reads.
        gold: The reference answer, or a mapping from agent to reference answer if several agents answer.
        private: For each agent the string that only this agent reads.
        notes: Facts for people and filters; no agent sees them.
    """

    key: str
    prompt: str
    gold: Any
    private: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


class GeneratedTask(Task):
    """A task with unlimited generated problems; subclasses implement ``draw`` and ``grade``.

    Args:
        split: "train" or "test".
        seed: Selects a sequence of problems. It is mixed with the index and not added to it, so that neighbouring seeds
            share no problems.

    Raises:
        TypeError, ValueError: The split or the seed is wrong; the message names it.
    """

    def __init__(self, *, split: str = "train", seed: int = 0) -> None:
        if split not in SPLITS:
            raise ValueError(expected_one_of("split", split, SPLITS))
        self.split = split
        self.seed = check_integer("seed", seed, 0)

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> ProblemDraft:
        """Return a random problem of either split. All randomness must come from ``rng``."""

    def problem(self, index: int) -> Problem:
        number = check_index(self, index)
        rng = np.random.default_rng([self.seed, number])
        for _ in range(MAX_DRAWS):
            draft = self.draw(rng)
            if split_of(draft.key) == self.split:
                notes = {**draft.notes, "key": draft.key, "split": self.split}
                return Problem(number, draft.prompt, draft.gold, draft.private, notes)
        raise ValueError(
            f"split={self.split!r}: none of {MAX_DRAWS} drawn problems of {self.name} is in this split; expected a "
            "generator with more different problems"
        )


def split_of(key: str) -> str:
    """Return the split of a problem with this key."""
    return "test" if zlib.crc32(key.encode()) % 5 == 0 else "train"
