"""A programming data set as a ``Task``."""

from __future__ import annotations

from typing import Any

from marft_envs.coding.code_task import CodeItem, CodeTask, with_code_options
from marft_envs.datasets.dataset_task import DatasetTask, ProblemOrder
from marft_envs.datasets.usable_rows import UsableRows
from marft_envs.task import Problem


class CodeDatasetTask(DatasetTask[CodeItem], CodeTask):
    """Programming problems from the rows of a data set.

    Args:
        name: Name of the data set.
        rows: Its usable rows.
        split: The split that they are of.
        order: Order and number of the problems.
        options: The fields of ``CodeOptions``.
    """

    @with_code_options
    def __init__(
        self, name: str, rows: UsableRows[CodeItem], *, split: str, order: ProblemOrder, **options: Any
    ) -> None:
        DatasetTask.__init__(self, name, rows, split=split, order=order)
        CodeTask.__init__(self, **options)

    def to_problem(self, index: int, item: CodeItem, row: int) -> Problem:
        problem = item.problem(index)
        return Problem(index, problem.prompt, problem.gold, notes={**problem.notes, "row": row})
