"""A data set as a ``Task``: its usable rows, filtered, in a seeded order, graded with the mathematics grader."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from marft_envs.arguments import check_integer
from marft_envs.datasets.files import DataError
from marft_envs.datasets.specs import counted
from marft_envs.datasets.store import Store
from marft_envs.mathematics import grade
from marft_envs.mathematics.datasets.specs import MathDatasetSpec
from marft_envs.mathematics.grader.canonical_answer import canonical_answer
from marft_envs.mathematics.grader.number import parse_number
from marft_envs.task import Problem, Task
from marft_envs.verdict import Verdict

_log = logging.getLogger(__name__)
Choice = str | int | Collection[str | int] | None


@dataclass(frozen=True)
class Filters:
    """level, subject: one, or several, of the values in the problems' notes. max_chars: of the prompt.

    integer: True keeps the problems whose answer is a whole number, False the others.
    """

    level: Choice = None
    subject: Choice = None
    max_chars: int | None = None
    integer: bool | None = None

    def __post_init__(self) -> None:
        if self.max_chars is not None:
            check_integer("max_chars", self.max_chars, 1, None)
        if self.integer not in (None, True, False):
            raise TypeError(f"integer={self.integer!r}: expected True, False or None")

    @property
    def any(self) -> bool:
        return self != Filters()

    def keep(self, prompt: str, gold: str, notes: dict[str, Any]) -> bool:
        """Whether a problem passes all filters."""
        if self.max_chars is not None and len(prompt) > self.max_chars:
            return False
        if self.integer is not None:
            number = parse_number(gold)
            if (number is not None and number.value.denominator == 1 and not number.percent) != self.integer:
                return False
        return _chosen(self.level, notes.get("level")) and _chosen(self.subject, notes.get("subject"))


def _chosen(wanted: Choice, value: Any) -> bool:
    if wanted is None:
        return True
    values = [wanted] if isinstance(wanted, (str, int)) else list(wanted)
    return str(value).casefold() in {str(one).casefold().removeprefix("level ") for one in values}


class DatasetTask(Task):
    """Problems from rows.

    split: which part. origin: where the rows came from, with a hash or commit. size: usable problems, after filters and
    ``limit``. rows: rows of this split before anything was left out. excluded: reason -> number of rows left out.
    unusable: (row, reason) of each of them.
    """

    def __init__(
        self, spec: MathDatasetSpec, store: Store, *, split: str, filters: Filters, limit: int | None, seed: int | None
    ) -> None:
        self.name = spec.name
        self.split = split
        self.policy = spec.policy
        self.origin = str(store.meta["origin"])
        self.rows = int(store.meta["rows"])
        self.unusable: tuple[tuple[int, str], ...] = tuple((row, reason) for row, reason in store.meta["unusable"])
        self.excluded = dict(Counter(reason for _, reason in self.unusable))
        self._store = store
        kept = _filtered(store, filters, spec.name)
        order = kept if seed is None else kept[np.random.default_rng(seed).permutation(len(kept))]
        self._order = order[:limit]
        self.size: int = len(self._order)
        if self.excluded:
            told = counted(self.excluded)
            _log.warning("%s %s: %d of %d rows left out: %s", spec.name, split, len(self.unusable), self.rows, told)

    def problem(self, index: int) -> Problem:
        number = check_integer(f"index of {self.name} (size {self.size})", index, 0, self.size - 1, error=IndexError)
        row, prompt, gold, notes = self._store[int(self._order[number])]
        return Problem(number, prompt, gold, notes={**notes, "row": row, "split": self.split})

    def grade(self, answer: str, problem: Problem) -> Verdict:
        return grade(answer, problem.gold, unmarked="whole", policy=self.policy)

    def answer_of(self, text: str) -> str | None:
        return canonical_answer(text)


def _filtered(store: Store, filters: Filters, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The numbers of the items that pass; DataError that says what there is where none does."""
    if not filters.any:
        return np.arange(len(store))
    kept = [n for n in range(len(store)) if filters.keep(*store[n][1:])]
    if kept:
        return np.array(kept)
    notes = [store[n][3] for n in range(len(store))]
    there = {key: sorted({str(note[key]) for note in notes if key in note})[:20] for key in ("level", "subject")}
    raise DataError(f"{name}: no problem passes {filters}; levels: {there['level']}, subjects: {there['subject']}")
