"""Settings of the game: the allowed values, and the validation of what a user passes to ``FlexMG``."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

from marft_envs.arguments import check_integer, expected_one_of
from marft_envs.task import Task
from marft_envs.team.team import Team

Memory = Literal["none", "own", "parents", "all"]
Order = Literal["stable", "reversed", "random"]
RenderMode = Literal["human", "ansi"]
MEMORIES = get_args(Memory)
ORDERS = get_args(Order)
RENDER_MODES = get_args(RenderMode)


def check_settings(
    task: Any,
    team: Any,
    *,
    rounds: Any,
    memory: Any,
    order: Any,
    format_bonus: Any,
    max_turns: Any,
    render_mode: Any,
    defer_grading: Any,
) -> tuple[int, int | None]:
    """Validate the arguments of ``FlexMG``.

    Returns:
        ``rounds`` and ``max_turns`` as Python integers; NumPy integers are accepted.

    Raises:
        TypeError, ValueError: An argument is wrong; the message names it.
    """
    choices = (
        ("memory", memory, MEMORIES),
        ("order", order, ORDERS),
        ("render_mode", render_mode, (None, *RENDER_MODES)),
    )
    for name, value, allowed in choices:
        if value not in allowed:
            raise ValueError(expected_one_of(name, value, allowed))
    _check_type("task", task, Task)
    _check_type("team", team, Team)
    rounds = check_integer("rounds", rounds, 1)
    if max_turns is not None:
        max_turns = check_integer("max_turns", max_turns, 1)
    _check_type("format_bonus", format_bonus, (int, float))
    if not math.isfinite(format_bonus):
        raise ValueError(f"format_bonus={format_bonus!r}: expected a finite number")
    _check_type("defer_grading", defer_grading, bool)
    team.schedule.check_rounds(rounds)
    return rounds, max_turns


def _check_type(name: str, value: Any, types: type | tuple[type, ...]) -> None:
    if not isinstance(value, types):
        expected = " or ".join(each.__name__ for each in (types if isinstance(types, tuple) else (types,)))
        raise TypeError(f"{name}={value!r:.80}: got {type(value).__name__}, expected {expected}")
