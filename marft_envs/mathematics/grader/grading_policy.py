"""The settings where reasonable people differ. One frozen record; the defaults are those of the case file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

Percent = Literal["either", "strict"]
Units = Literal["optional", "required", "ignored"]
Degrees = Literal["either", "strict"]
Order = Literal["free", "given"]
_CHOICES = {
    "lists": Order,
    "tuples": Literal["bare", "strict"],
    "percent": Percent,
    "units": Units,
    "degrees": Degrees,
    "log": Literal["e", "10"],
    "ratios": Literal["reduced", "written"],
    "bases": Literal["optional", "required"],
}


@dataclass(frozen=True, slots=True)
class GradingPolicy:
    """What counts as equal.

    lists: "free": 3, 2, 1 is 1, 2, 3, for lists without parentheses and for sets; "given": lists keep their order.
    tuples: "bare": 1, 2 is (1, 2); "strict": the parentheses are part of the answer.
    rounding: 0: no number is rounded, 0.33 is not 1/3; r > 0: two constants may differ by r times the gold's size.
    percent: "either": where one side lacks the sign, 50 and 1/2 are both 50%; "strict": only 1/2 is.
    units: "optional": a missing unit is no fault, a different one is, and known units are converted (5 cm is 0.05 m);
        "required": the gold's unit must be there; "ignored": units are not looked at.
    degrees: "either": 60° is pi/3 and also 60; "strict": 60° is pi/3 only.
    log: the base of a bare log: "e" or "10".
    ratios: "reduced": 4:6 is 2:3 and 2/3; "written": only 2:3 is.
    bases: "optional": 1010 is 1010_2, whose subscript was forgotten; "required": it is not.
    """

    lists: Order = "free"
    tuples: Literal["bare", "strict"] = "bare"
    rounding: float = 0.0
    percent: Percent = "either"
    units: Units = "optional"
    degrees: Degrees = "either"
    log: Literal["e", "10"] = "e"
    ratios: Literal["reduced", "written"] = "reduced"
    bases: Literal["optional", "required"] = "optional"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            allowed = get_args(_CHOICES.get(field.name))
            if allowed and value not in allowed:
                raise ValueError(f"{field.name}={value!r}: expected one of {', '.join(map(repr, allowed))}")
        if isinstance(self.rounding, bool) or not isinstance(self.rounding, (int, float)) or not 0 <= self.rounding < 1:
            raise ValueError(f"rounding={self.rounding!r}: expected a number from 0 up to, not including, 1")


DEFAULT_POLICY = GradingPolicy()
