r"""Quantities in two or three units: 1 h 20 min, 12^\circ 30', 5 ft 3 in, 3 dollars and 50 cents.

The value is the sum, in the smallest unit; that of an angle is in degrees.
"""

from __future__ import annotations

import re
from fractions import Fraction

from marft_envs.mathematics.grader.normalization import unwrap_text
from marft_envs.mathematics.grader.number import Number
from marft_envs.mathematics.grader.units import is_unit_word, read_unit

MAX_CHARS = 80

_PART = r"(\d{1,12}(?:\.\d{1,12})?)\s?([^\W\d_]{1,10})\.?"
_JOINT = r"(?:\s?,)?\s?(?:and\s|和|又|零)?\s?"
_WORDS = re.compile(rf"(-?)\s?{_PART}{_JOINT}{_PART}(?:{_JOINT}{_PART})?")
_PRIME = r"(?:'|′|\^\s?\{?\s?\\prime\s?\}?|\s?arcmin(?:utes?)?)"
_SECOND = r"(?:''|′′|″|\"|\^\s?\{?\s?\\prime\s?\\prime\s?\}?|'\s?'|\s?arcsec(?:onds?)?)"
_ANGLE = re.compile(
    r"(-?)\s?(\d{1,12})\s?(?:°|\^\s?(?:\{\s?\\circ\s?\}|\\circ)|\s?degrees?\b)(?:\s?,)?(?:\s?and)?\s?"
    rf"(\d{{1,2}}(?:\.\d{{1,12}})?)\s?(?:{_PRIME}|minutes?\b)(?:\s?(\d{{1,2}}(?:\.\d{{1,12}})?)\s?(?:{_SECOND}|seconds?\b))?"
)
_FEET = re.compile(rf"(\d{{1,6}})\s?(?:'|′)\s?(\d{{1,2}}(?:\.\d{{1,6}})?)\s?{_SECOND}")
_COUNTABLE = ("length", "mass", "time", "month", "money", "yuan")


def read_compound(text: str) -> Number | None:
    """Return the value of a normalized string that is a quantity in several units; None for anything else."""
    if len(text) > MAX_CHARS or not (text[:1].isdigit() or text[:1] == "-"):
        return None
    words = " ".join(unwrap_text(text).split())
    if angle := _ANGLE.fullmatch(words):
        sign, degrees, minutes, seconds = angle.groups()
        value = Fraction(degrees) + Fraction(minutes) / 60 + Fraction(seconds or 0) / 3600
        return Number(-value if sign else value)
    if feet := _FEET.fullmatch(words):
        return Number(12 * Fraction(feet[1]) + Fraction(feet[2]), unit="in")
    match = _WORDS.fullmatch(words)
    return _sum(match) if match else None


def _sum(match: re.Match[str]) -> Number | None:
    """Return the sum of quantities of one kind in units that become smaller; only the last may have a decimal point."""
    sign, *parts = [part for part in match.groups() if part is not None]
    numbers, names = parts[::2], parts[1::2]
    if names[0] in ("h", "hr", "hrs") and names[1] == "m":
        names[1] = "min"
    if not all(map(is_unit_word, names)) or any("." in number for number in numbers[:-1]):
        return None
    units = [read_unit(name) for name in names]
    measures = {unit.measures for unit in units}
    factors = [unit.factor for unit in units]
    if len(measures) != 1 or factors != sorted(set(factors), reverse=True):
        return None
    ((quantity, power),) = units[0].measures if len(units[0].measures) == 1 else (("", 0),)
    if power != 1 or quantity not in _COUNTABLE:
        return None
    value = sum((Fraction(n) * f for n, f in zip(numbers, factors, strict=True)), Fraction(0)) / factors[-1]
    return Number(-value if sign else value, unit=names[-1])
