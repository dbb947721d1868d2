"""A data set as a ``Task``: its usable rows, in a seeded order."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

import numpy as np
import numpy.typing as npt

from marft_envs.arguments import check_integer
from marft_envs.datasets.dataset_spec import ItemT, Unusable, format_reasons
from marft_envs.datasets.files import DataError
from marft_envs.datasets.usable_rows import UsableRows
from marft_envs.task import Problem, Task, check_index

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProblemOrder:
    """The order of the problems and their number.

    Attributes:
        seed: Shuffles the problems; None keeps the order of the file.
        limit: Largest number of problems, taken after shuffling; None for all.
    """

    seed: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None:
            check_integer("limit", self.limit, 1)
        if self.seed is not None:
            check_integer("seed", self.seed, 0)

    def apply(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the chosen ``numbers``, in order."""
        if self.seed is not None:
            numbers = numbers[np.random.default_rng(self.seed).permutation(len(numbers))]
        return numbers[: self.limit]


class DatasetTask(Task, Generic[ItemT]):
    """Problems from the rows of a data set.

    A subclass implements ``to_problem`` and ``grade``.

    Args:
        name: Name of the data set.
        rows: Its usable rows.
        split: The split that they are of.
        order: Order and number of the problems.
        keep: Returns whether an item becomes a problem; None for all.

    Attributes:
        split: The split.
        origin: Where the rows came from, with a hash or commit where there is one.
        size: Number of problems, after ``keep`` and the limit.
        rows: Number of rows of the split before any was left out.
        unusable: (row, reason) of each row that cannot be graded.
        excluded: Number of rows left out for each reason.
    """

    def __init__(
        self,
        name: str,
        rows: UsableRows[ItemT],
        *,
        split: str,
        order: ProblemOrder,
        keep: Callable[[ItemT], bool] | None = None,
    ) -> None:
        self.name = name
        self.split = split
        self.origin = rows.origin
        self.rows = rows.total
        self.unusable = rows.unusable
        self.excluded = dict(Counter(reason for _, reason in self.unusable))
        self._usable_rows = rows
        numbers = np.arange(len(rows)) if keep is None else np.flatnonzero([keep(rows[n][1]) for n in range(len(rows))])
        self._order = order.apply(numbers)
        self.size: int = len(self._order)
        if self.excluded:
            left_out, reasons = len(self.unusable), format_reasons(self.excluded)
            _log.warning("%s %s: %d of %d rows left out: %s", name, split, left_out, self.rows, reasons)

    @abstractmethod
    def to_problem(self, index: int, item: ItemT, row: int) -> Problem:
        """Return the problem of an item. row: its number in the split, for the notes."""

    def problem(self, index: int) -> Problem:
        """Return problem ``index``.

        Raises:
            IndexError: There is no such problem.
            DataError: The row of a data set that is converted while it is read cannot be graded.
        """
        number = check_index(self, index)
        position = int(self._order[number])
        try:
            row, item = self._usable_rows[position]
        except Unusable as reason:
            raise DataError(f"{self.name}: row {position} cannot be graded: {reason}") from reason
        return self.to_problem(number, item, row)
