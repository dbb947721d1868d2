"""A data set as a ``Task``: its usable rows, numbered, graded with the first mathematics grader."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

import numpy as np

from marft_envs.datasets.files import DataError, Row
from marft_envs.datasets.specs import DatasetSpec, Item, Unusable
from marft_envs.mathematics import grade
from marft_envs.mathematics.draw import whole_number
from marft_envs.task import Problem, Task
from marft_envs.verdict import Verdict

_log = logging.getLogger(__name__)


class DatasetTask(Task):
    """Problems from rows.

    split: which part. origin: where the rows came from, with a hash or commit. size: usable problems, after ``limit``.
    rows: rows of this split before anything was left out. excluded: reason -> number of rows that cannot be graded yet.
    """

    def __init__(
        self, spec: DatasetSpec, rows: Sequence[Row], *, split: str, origin: str, limit: int | None, seed: int | None
    ) -> None:
        self.name = spec.name
        self.split = split
        self.origin = origin
        self.rows = len(rows)
        items, self.excluded = _usable(spec, rows)
        if not items:
            raise DataError(f"{spec.name} from {origin}: no usable row among {len(rows)}: {self.excluded}")
        order = np.arange(len(items)) if seed is None else np.random.default_rng(seed).permutation(len(items))
        self._items = [items[i] for i in order[:limit]]
        self.size: int = len(self._items)
        if self.excluded:
            left_out = sum(self.excluded.values())
            _log.warning("%s %s: %d of %d rows left out: %s", spec.name, split, left_out, self.rows, self.excluded)

    def problem(self, index: int) -> Problem:
        number = whole_number(f"index of {self.name} (size {self.size})", index, 0, self.size - 1, error=IndexError)
        row, item = self._items[number]
        return Problem(number, item.prompt, item.gold, notes={**item.notes, "row": row, "split": self.split})

    def grade(self, answer: str, problem: Problem) -> Verdict:
        return grade(answer, problem.gold, unmarked="whole")


def _usable(spec: DatasetSpec, rows: Sequence[Row]) -> tuple[list[tuple[int, Item]], dict[str, int]]:
    """((row number within the split, item) of each usable row, reason -> rows left out)."""
    items: list[tuple[int, Item]] = []
    excluded: Counter[str] = Counter()
    for number, row in enumerate(rows):
        try:
            items.append((number, spec.read(row)))
        except Unusable as reason:
            excluded[str(reason)] += 1
    return items, dict(excluded)
