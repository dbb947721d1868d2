r"""Congruences: x \equiv 3 \pmod 7, x \equiv \pm 2 \pmod 7, 3 \pmod 7; and remainders: 17 \bmod 5, which is 2."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from marft_envs.mathematics.grader.expression_parser import Unreadable, parse
from marft_envs.mathematics.grader.normalization import unwrap_text
from marft_envs.mathematics.grader.number import Number
from marft_envs.mathematics.grader.tree_value import Unknown, integer

MAX_CHARS = 200
MAX_MODULUS = 5_000  # residues are compared modulo the least common multiple of two moduli up to this size

_MODULUS = r"\{?\s?(\d{1,9})\s?\}?"
_TAIL = re.compile(
    rf"[\s,]*(?:\\pmod\s?{_MODULUS}|\(\s?(?:\\[bp]?mod|modulo|mod)\s?{_MODULUS}\s?\)"
    rf"|(?:\\b?mod|\bmodulo|\bmod)\s?{_MODULUS})\Z"
)
_REMAINDER = re.compile(rf"(.{{1,80}}?)\s?(?:\\b?mod|\bmod)\s?{_MODULUS}\Z")
_HEAD = re.compile(r"([A-Za-z](?:_\{?\w\}?)?|[A-Za-z]\^\{?\d\}?)\s?(?:\\equiv|≡|=)\s?(.*)", re.DOTALL)
_SEPARATOR = re.compile(r"\s?(?:,|\\lor|\bor\b|\band\b|或|和)\s?")
_SIGN = re.compile(r"\s?(?:\\pm|±)\s?")


@dataclass(frozen=True, slots=True)
class Congruence:
    """The integers that leave one of some remainders.

    Attributes:
        name: The variable; "" if none is named.
        residues: The remainders, from 0 to modulus - 1.
        modulus: The modulus.
    """

    name: str
    residues: frozenset[int]
    modulus: int


def read_congruence(text: str) -> Congruence | None:
    """Read one or more congruences with one modulus and one name; None for anything else."""
    if "mod" not in text or len(text) > MAX_CHARS:
        return None
    parts = [part for part in _SEPARATOR.split(" ".join(unwrap_text(text).split())) if part]
    name, modulus, residues = "", 0, set()
    for part in reversed(parts):
        if tail := _TAIL.search(part):
            found = int(next(group for group in tail.groups() if group))
            if modulus not in (0, found):
                return None
            modulus, part = found, part[: tail.start()]
        if head := _HEAD.fullmatch(part.strip()):
            if name not in ("", head[1]):
                return None
            name, part = head[1], head[2]
        values = _integers(part)
        if not modulus or not values:
            return None
        residues |= {value % modulus for value in values}
    return Congruence(name, frozenset(residues), modulus) if residues else None


def same_congruence(a: Congruence, b: Congruence) -> bool:
    """Return whether two congruences have the same solutions; if both name a variable, the names must be equal."""
    if a.name and b.name and a.name != b.name:
        return False
    modulus = lcm(a.modulus, b.modulus)
    if a.modulus == b.modulus or modulus > MAX_MODULUS:
        return (a.residues, a.modulus) == (b.residues, b.modulus)
    return _lifted(a, modulus) == _lifted(b, modulus)


def read_remainder(text: str) -> Number | None:
    r"""Return the value of 17 \bmod 5; None for anything else, and for 17 \pmod 5, which is no number."""
    match = _REMAINDER.fullmatch(" ".join(unwrap_text(text).split())) if "mod" in text and len(text) < 100 else None
    values = _integers(match[1]) if match and "(" not in match[1] else []
    if match is None or len(values) != 1 or not int(match[2]):
        return None
    return Number(Fraction(values[0] % int(match[2])))


def _lifted(congruence: Congruence, modulus: int) -> set[int]:
    return {r + k for r in congruence.residues for k in range(0, modulus, congruence.modulus)}


def _integers(text: str) -> list[int]:
    r"""Return the values of an integer expression: one, two if it starts with \pm, none if it is not an integer."""
    signed = _SIGN.match(text)
    try:
        value = integer(parse(text[signed.end() if signed else 0 :].strip()))
    except (Unreadable, Unknown, RecursionError):
        return []
    return [value, -value] if signed else [value]
