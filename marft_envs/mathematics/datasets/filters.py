"""Filters of mathematics problems by level, subject, length and type of answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from marft_envs.arguments import check_integer
from marft_envs.datasets.usable_rows import UsableRows
from marft_envs.mathematics.datasets.row_readers import MathItem
from marft_envs.mathematics.grader.number import parse_number

Choice = str | int | Collection[str | int] | None
_MOST_VALUES = 20


@dataclass(frozen=True)
class Filters:
    """Conditions that a problem must meet, all of them.

    Attributes:
        level: Allowed level, or several; compared with the problem's notes without regard to case.
        subject: Allowed subject, or several.
        max_chars: Largest length of the prompt.
        integer: True keeps the problems whose answer is an integer, False the others.
    """

    level: Choice = None
    subject: Choice = None
    max_chars: int | None = None
    integer: bool | None = None

    def __post_init__(self) -> None:
        if self.max_chars is not None:
            check_integer("max_chars", self.max_chars, 1)
        if self.integer not in (None, True, False):
            raise TypeError(f"integer={self.integer!r}: expected True, False or None")

    @property
    def any(self) -> bool:
        """Whether there is a condition at all."""
        return self != Filters()

    def keep(self, item: MathItem) -> bool:
        """Return whether a problem meets all conditions."""
        if self.max_chars is not None and len(item.prompt) > self.max_chars:
            return False
        if self.integer is not None and _is_integer(item.gold) != self.integer:
            return False
        return _is_chosen(self.level, item.notes.get("level")) and _is_chosen(self.subject, item.notes.get("subject"))

    def message(self, name: str, rows: UsableRows[MathItem]) -> str:
        """Return the error message for a data set of which no problem is left."""
        notes = [rows[n][1].notes for n in range(len(rows))]
        levels, subjects = (
            sorted({str(note[key]) for note in notes if key in note})[:_MOST_VALUES] for key in ("level", "subject")
        )
        return f"{name}: no problem passes {self}; levels: {levels}, subjects: {subjects}"


def _is_integer(gold: str) -> bool:
    number = parse_number(gold)
    return number is not None and number.value.denominator == 1 and not number.percent


def _is_chosen(wanted: Choice, value: Any) -> bool:
    if wanted is None:
        return True
    values = [wanted] if isinstance(wanted, (str, int)) else list(wanted)
    return str(value).casefold() in {str(one).casefold().removeprefix("level ") for one in values}
