"""Units of measurement: their quantities and factors, so that 5 cm equals 0.05 m and not 5 m.

A word that is not in the table is a quantity of its own: apples are not pears.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from marft_envs.mathematics.grader.unit_table import UNITS, Measures

_PREFIX = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_ATTACHED_PREFIX = {"平方": 2, "立方": 3}
_SHORT_NAMES = "mm cm km kg mg lb oz ft in yd mi hr ml dm kw hz"
_SHORT_WORDS = frozenset(_SHORT_NAMES.split())
"""Units of two letters that need no \\text: other pairs of letters, such as nm, are more likely products."""
_PIECE = re.compile(r"([^\W\d_]+)\.?\s?(?:\^\s?\{?(-?\d)\}?)?|(/|\bper\b)")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as a product of powers.

    Attributes:
        measures: Sorted pairs of a quantity and its power: (("length", 1), ("time", -1)) for km/h.
        factor: The size of the unit in the base units of the table.
    """

    measures: tuple[tuple[str, int], ...]
    factor: Fraction


def _find(word: str) -> tuple[Measures, Fraction] | None:
    """Return (measures, factor) of a word in the table, singular or plural; None for any other word."""
    lower = word.casefold()
    names = [word, lower, lower.removesuffix("s"), lower.removesuffix("es")]
    if len(word) == 1:  # M is not a meter, but L is a liter
        names = ["l" if word == "L" else word]
    return next((UNITS[name] for name in names if name in UNITS), None)


def is_unit_word(word: str) -> bool:
    """Return whether one word is a unit in the table, or a prefix such as "square"."""
    return word.casefold() in _PREFIX or _find(word) is not None


def is_known(text: str) -> bool:
    r"""Return whether every word of a unit is in the table, and is a unit although it is not in \text."""
    words = [m[1] for m in _PIECE.finditer(text) if m[1] and m[1] != "per"]
    return bool(words) and all(
        is_unit_word(word)
        and (len(word) != 2 or not word.isascii() or word.casefold() in _SHORT_WORDS)
        and (len(word) > 1 or not word.isascii() or word.islower())
        for word in words
    )


@lru_cache(maxsize=1024)
def read_unit(text: str) -> Unit:
    """Return the unit that ``text`` names; ``m s^{-1}``, ``m/s`` and ``meters per second`` give the same unit."""
    measures: dict[str, int] = {}
    factor, sign, prefix = Fraction(1), 1, 1
    for match in _PIECE.finditer(text):
        word, power, slash = match.groups()
        if slash or (word or "").casefold() == "per":
            sign = -1
        elif word.casefold() in _PREFIX:
            prefix = _PREFIX[word.casefold()]
        else:
            if word[:2] in _ATTACHED_PREFIX:
                prefix, word = _ATTACHED_PREFIX[word[:2]], word[2:]
            # An unknown word is a quantity of its own.
            name = word.casefold().removesuffix("s") if len(word) > 2 else word
            quantities, size = _find(word) or (((name, 1),), Fraction(1))
            exponent = sign * int(power or 1) * prefix
            for quantity, times in quantities:
                measures[quantity] = measures.get(quantity, 0) + times * exponent
            factor *= size**exponent
            prefix = 1
    return Unit(tuple(sorted((q, e) for q, e in measures.items() if e)), factor)
