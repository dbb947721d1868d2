"""Settings of the mathematics grader: the choices on which reasonable people differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class GradingPolicy:
    """Rules for when an answer counts as equal to the gold.

    Args:
        lists: "unordered": 3, 2, 1 equals 1, 2, 3, for lists without parentheses and for sets. "ordered": the order
            of both counts.
        tuples: "bare": 1, 2 equals (1, 2). "strict": the parentheses are part of the answer.
        rounding: The allowed relative error of a constant, at least 0 and below 1. 0: numbers are exact, and 0.33 is
            not 1/3. 0.01: an answer may differ from the gold by one per cent of the gold.
        percent: "either": if one side lacks the percent sign, 50 and 1/2 both equal 50%. "strict": only 1/2 does.
        units: "optional": a missing unit is ignored, a different unit is wrong, and known units are converted
            (5 cm equals 0.05 m). "required": an answer without the gold's unit is wrong. "ignored": units are not
            compared.
        degrees: "either": 60° equals pi/3 and 60. "strict": 60° equals pi/3 only. Two plain numbers are compared
            without their degree signs under both.
        log: The base of ``log`` without a subscript: "e" or "10".
        ratios: "reduced": 4:6 equals 2:3 and 2/3. "written": only 2:3 equals 2:3.
        bases: "optional": 1010 equals 1010_2. "required": the base is part of the answer.
        arithmetic: "any": 3 + 9 equals 12. "evaluated": if the gold is a number, 3 + 9 is wrong and 3 + 9 = 12 is
            correct, for problems that are a computation: copying the problem is then no answer.

    Raises:
        ValueError: A setting has a value that is not allowed.
    """

    lists: Literal["unordered", "ordered"] = "unordered"
    tuples: Literal["bare", "strict"] = "bare"
    rounding: float = 0.0
    percent: Literal["either", "strict"] = "either"
    units: Literal["optional", "required", "ignored"] = "optional"
    degrees: Literal["either", "strict"] = "either"
    log: Literal["e", "10"] = "e"
    ratios: Literal["reduced", "written"] = "reduced"
    bases: Literal["optional", "required"] = "optional"
    arithmetic: Literal["any", "evaluated"] = "any"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, allowed))}")
        if isinstance(self.rounding, bool) or not isinstance(self.rounding, (int, float)) or not 0 <= self.rounding < 1:
            raise ValueError(f"rounding={self.rounding!r}: expected a number of at least 0 and below 1")


_CHOICES = {name: get_args(hint) for name, hint in get_type_hints(GradingPolicy).items() if get_origin(hint) is Literal}
"""The allowed values of each setting that is a choice."""

DEFAULT_POLICY = GradingPolicy()
