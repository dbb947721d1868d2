"""The index of a problem is an int within the task, or a clear error; the game and ``@register`` see to it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from marft_envs.task import Problem, Task

UNLIMITED = 2**31
"""How many problems a task of size None has."""


def check_index(task: Task, index: Any) -> int:
    """``index`` as an int (NumPy's integers too); TypeError for anything else, IndexError outside the task."""
    try:
        number = operator.index(index)
    except TypeError:
        raise TypeError(f"index={index!r} of {task.name}: got {type(index).__name__}, expected int") from None
    size = UNLIMITED if task.size is None else task.size
    if not 0 <= number < size:
        raise IndexError(f"index={number} of {task.name}: expected 0 to {size - 1}")
    return number


def with_checked_index(problem: Callable[[Any, int], Problem]) -> Callable[[Any, int], Problem]:
    """The method ``problem`` that gets an index which is all right."""

    @functools.wraps(problem)
    def checked(self: Task, index: int) -> Problem:
        return problem(self, check_index(self, index))

    return checked
