"""The work that a comparison of expression trees takes, and the digits that it needs."""

from __future__ import annotations

import math
from fractions import Fraction

from marft_envs.mathematics.grader.tree_value import (
    MAX_FACTORIAL,
    Node,
    TooCostly,
    Unknown,
    bounded_integer,
    exact,
    symbols,
)

MAX_DIGITS = 3_000
WORK = 300_000
"""The work of one comparison of an answer with a gold, lists and retries included; a unit takes about a microsecond."""


class OutOfWork(Exception):
    """The comparison would take more work than is allowed."""


class Work:
    """The work that is left to a comparison.

    Args:
        units: The work that is allowed.
    """

    def __init__(self, units: int = WORK) -> None:
        self.units = units

    def spend(self, units: int) -> None:
        """Subtract the work of the next step; raise OutOfWork if not enough is left."""
        self.units -= units
        if self.units < 0:
            raise OutOfWork("the comparison needs too much work")


def weight(node: Node) -> int:
    """Return the work of one evaluation of a tree: one unit per node, more for factorials and long numbers."""
    if node[0] == "num":
        return 1 + node[1].numerator.bit_length() // 100 + node[1].denominator.bit_length() // 100
    parts = sum(weight(part) for part in node[1:] if isinstance(part, tuple))
    if node[0] in ("fact", "fact2", "binom"):
        try:
            return parts + 10 + bounded_integer(node[1]) // 15
        except Unknown:
            return parts + 40
    return parts + (8 if node[0] in ("fn", "log", "root", "pow") else 1)


def costly(node: Node) -> bool:
    """Return whether a tree contains a constant power, factorial or binomial too large to compute with all digits.

    A symbolic exponent is not costly: it is a small number at each of the comparison points.
    """
    if node[0] in ("fact", "fact2", "binom", "pow") and not symbols(node[-1] if node[0] == "pow" else node[1]):
        try:
            size = abs(exact(node[-1] if node[0] == "pow" else node[1]))
        except TooCostly:
            return True
        except Unknown:
            size = Fraction(0)
        if size > (10**4 if node[0] == "pow" else MAX_FACTORIAL):
            return True
    return any(costly(part) for part in node[1:] if isinstance(part, tuple))


def digits_needed(*nodes: Node) -> int:
    """Return the number of digits to which two constants must agree to be taken for equal.

    Expressions that are written with few digits cannot be very close to each other without being equal. The convergent
    of a square root with q in its denominator is closer to it than 1 / q^2, so the number of digits that are compared
    grows with the digits that are written: 30 plus three times those of all numbers and powers.

    Raises:
        TooCostly: More than MAX_DIGITS digits are needed.
    """
    digits = 30 + 3 * sum(map(_written_digits, nodes))
    if digits > MAX_DIGITS:
        raise TooCostly("numbers of too many digits")
    return digits


def _written_digits(node: Node) -> int:
    """Return the number of digits of all numbers in a tree, with those of constant powers written out."""
    if node[0] == "num":
        value = Fraction(node[1])
        return (value.numerator.bit_length() + value.denominator.bit_length()) * 3 // 10
    if node[0] in ("fact", "fact2", "binom") and not symbols(node):
        try:
            return min(4 * bounded_integer(node[1]), MAX_DIGITS)
        except Unknown:
            return MAX_DIGITS
    written = sum(_written_digits(part) for part in node[1:] if isinstance(part, tuple))
    if node[0] == "pow" and not symbols(node[2]):
        try:
            size = abs(exact(node[2]))
        except TooCostly:
            return MAX_DIGITS
        except Unknown:
            return written
        return min(written * max(1, math.ceil(size)), MAX_DIGITS)
    return written
