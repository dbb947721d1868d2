"""Whole numbers that users give: a problem's index within its task, a seed, a count; or a clear error."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from marft_envs.task import Problem, Task

UNLIMITED = 2**31
"""How many problems a task of size None has."""


def whole_number(
    name: str, value: Any, low: int, high: int | None = None, *, of: str = "", error: type[Exception] = ValueError
) -> int:
    """``value`` as an int from low to high, NumPy's integers too.

    TypeError for another type (a bool is one), ``error`` outside the range. of: " of relay", whose number it is.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name}={value!r:.80}{of}: got {type(value).__name__}, expected int")
    if number < low or (high is not None and number > high):
        raise error(f"{name}={number}{of}: expected {f'at least {low}' if high is None else f'{low} to {high}'}")
    return number


def check_index(task: Task, index: Any) -> int:
    """``index`` as an int; TypeError for anything else, IndexError outside the task."""
    size = UNLIMITED if task.size is None else task.size
    return whole_number("index", index, 0, size - 1, of=f" of {task.name}", error=IndexError)


def with_checked_index(problem: Callable[[Any, int], Problem]) -> Callable[[Any, int], Problem]:
    """The method ``problem`` that gets an index which is all right."""

    @functools.wraps(problem)
    def checked(self: Task, index: int) -> Problem:
        return problem(self, check_index(self, index))

    return checked
