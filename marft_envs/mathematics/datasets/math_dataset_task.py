"""A mathematics data set as a ``Task``: rows that pass the filters, graded with the mathematics grader."""

from __future__ import annotations

from marft_envs.datasets.dataset_task import DatasetTask, ProblemOrder
from marft_envs.datasets.files import DataError
from marft_envs.datasets.usable_rows import UsableRows
from marft_envs.mathematics import grade
from marft_envs.mathematics.datasets.filters import Filters
from marft_envs.mathematics.datasets.row_readers import MathItem
from marft_envs.mathematics.grader.canonical_answer import canonical_answer
from marft_envs.mathematics.grader.grading_policy import GradingPolicy
from marft_envs.task import Problem
from marft_envs.verdict import Verdict


class MathDatasetTask(DatasetTask[MathItem]):
    """Mathematics problems from the rows of a data set.

    Args:
        name: Name of the data set.
        rows: Its usable rows.
        split: The split that they are of.
        policy: How replies are compared with the golds.
        filters: Conditions that a problem must meet.
        order: Order and number of the problems.

    Raises:
        DataError: No problem passes the filters.
    """

    def __init__(
        self,
        name: str,
        rows: UsableRows[MathItem],
        *,
        split: str,
        policy: GradingPolicy,
        filters: Filters,
        order: ProblemOrder,
    ) -> None:
        super().__init__(name, rows, split=split, order=order, keep=filters.keep if filters.any else None)
        if not self.size:
            raise DataError(filters.message(name, rows))
        self.policy = policy

    def to_problem(self, index: int, item: MathItem, row: int) -> Problem:
        notes = {**item.notes, "row": row, "split": self.split}
        return Problem(index, item.prompt, item.gold, notes=notes)

    def grade(self, answer: str, problem: Problem) -> Verdict:
        return grade(answer, problem.gold, unmarked="whole", policy=self.policy)

    def answer_of(self, text: str) -> str | None:
        return canonical_answer(text)
