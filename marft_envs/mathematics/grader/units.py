"""Units of measurement: their quantities and factors, so that 5 cm equals 0.05 m and not 5 m.

A word that is not in the table is a quantity of its own: apples are not pears.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

_TABLE = """
length 1: m meter metre
length 0.01: cm centimeter centimetre
length 0.001: mm millimeter millimetre
length 1000: km kilometer kilometre
length 0.0254: in inch inche
length 0.3048: ft foot feet
length 0.9144: yd yard
length 1609.344: mi mile
mass 1: g gram gm
mass 0.001: mg milligram
mass 1000: kg kilogram kilo
mass 453.59237: lb pound
mass 28.349523125: oz ounce
time 1: s sec second
time 60: min minute
time 3600: h hr hour
time 86400: day
time 604800: week
volume 1: l liter litre
volume 0.001: ml milliliter millilitre
money 1: dollar usd
money 0.01: cent
euro 1: euro eur
rupee 1: rupee
yuan 1: 元 yuan
yuan 0.1: 角
length 1: 米
length 0.1: dm decimeter decimetre 分米
length 0.01: 厘米
length 0.001: 毫米
length 1000: 千米 公里
mass 1: 克
mass 1000: 千克 公斤
mass 1000000: tonne 吨
time 1: 秒
time 60: 分钟
time 3600: 小时
time 86400: 天
volume 1: 升
volume 0.001: 毫升
"""
_PREFIX = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_ATTACHED_PREFIX = {"平方": 2, "立方": 3}
_COMPOUND = {"mph": "mi/h", "kph": "km/h", "kmh": "km/h", "kmph": "km/h", "mps": "m/s"}
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


def _read_table() -> dict[str, tuple[str, Fraction]]:
    units = {}
    for line in _TABLE.strip().splitlines():
        head, names = line.split(":")
        quantity, *_, factor = head.split()
        units.update({name: (quantity, Fraction(factor)) for name in names.split()})
    return units


_UNITS = _read_table()


def _lookup(word: str) -> tuple[str, Fraction]:
    """Return (quantity, factor) of a word, singular or plural; an unknown word is a quantity with factor 1."""
    found = _find(word)
    if found is not None:
        return found
    lower = word.casefold()
    return lower.removesuffix("s") if len(lower) > 2 else word, Fraction(1)


def _find(word: str) -> tuple[str, Fraction] | None:
    lower = word.casefold()
    names = (word, lower, lower.removesuffix("s"), lower.removesuffix("es"))
    return next((_UNITS[name] for name in names if name in _UNITS), None)


def is_known(text: str) -> bool:
    """Return whether every word of a unit is in the table."""
    words = [m[1] for m in _PIECE.finditer(text) if m[1] and m[1] != "per"]
    return bool(words) and all(is_unit_word(word) for word in words)


def is_unit_word(word: str) -> bool:
    """Return whether one word is a unit in the table, or a prefix such as "square"."""
    return word.casefold() in _PREFIX or word.casefold() in _COMPOUND or _find(word) is not None


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
        elif word.casefold() in _COMPOUND:
            compound = read_unit(_COMPOUND[word.casefold()])
            factor *= compound.factor
            for quantity, exponent in compound.measures:
                measures[quantity] = measures.get(quantity, 0) + exponent
        else:
            if word[:2] in _ATTACHED_PREFIX:
                prefix, word = _ATTACHED_PREFIX[word[:2]], word[2:]
            quantity, size = _lookup(word)
            exponent = sign * int(power or 1) * prefix
            measures[quantity] = measures.get(quantity, 0) + exponent
            factor *= size**exponent
            prefix = 1
    return Unit(tuple(sorted((q, e) for q, e in measures.items() if e)), factor)
