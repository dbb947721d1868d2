"""The solutions of an inequality between rational functions of one variable, from the signs between its zeros."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import isqrt

from marft_envs.mathematics.grader.polynomials import coefficients, rational_function
from marft_envs.mathematics.grader.tree_value import Node, Unknown

MAX_ROOT_SEARCH = 2_000  # the largest constant coefficient, as an integer, whose divisors are tried as zeros
_NEAREST = 1e-6

End = tuple[float, Node]
Piece = tuple[End, End, bool, bool]
LOWEST: End = (float("-inf"), ("neg", ("inf",)))
HIGHEST: End = (float("inf"), ("inf",))


def solve_inequality(difference: Node, sign: str, name: str) -> list[Piece]:
    """Return the pieces of the real line on which ``difference`` has a sign.

    Args:
        difference: The tree of left side minus right side, a rational function of ``name``.
        sign: "<", "<=", ">", ">=" or "!=": its relation to zero.
        name: The variable.

    Returns:
        The pieces in order, each (low, high, whether low belongs to it, whether high does).

    Raises:
        Unknown: It is not a rational function of one variable, its zeros cannot be found exactly, or nothing solves it.
    """
    top, bottom = (coefficients(part, name) for part in rational_function(difference))
    if not top or not bottom or len(top) + len(bottom) < 3:
        raise Unknown("a constant")
    zeros, poles = _zeros(top), _zeros(bottom)
    marks = sorted({**{z[0]: z for z in zeros}, **{p[0]: p for p in poles}}.values(), key=lambda end: end[0])
    if any(b[0] - a[0] < _NEAREST * max(1.0, abs(a[0])) for a, b in pairwise(marks)):
        raise Unknown("two zeros are too close to each other")
    undefined = {pole[0] for pole in poles}
    closed = sign in ("<=", ">=")
    pieces: list[Piece] = []
    for low, high in pairwise([LOWEST, *marks, HIGHEST]):
        if low is not LOWEST and closed and low[0] not in undefined:
            _append(pieces, (low, low, True, True))
        value = _sign(top, bottom, _between(low[0], high[0]))
        if sign == "!=" or (value < 0) == (sign[0] == "<"):
            _append(pieces, (low, high, False, False))
    if not pieces:
        raise Unknown("no solution")
    return pieces


def _append(pieces: list[Piece], piece: Piece) -> None:
    """Add a piece, joined with the last one if they touch in a point that belongs to one of them."""
    if pieces and pieces[-1][1][0] == piece[0][0] and (pieces[-1][3] or piece[2]):
        last = pieces.pop()
        pieces.append((last[0], piece[1], last[2], piece[3]))
    else:
        pieces.append(piece)


def _between(low: float, high: float) -> Fraction:
    if low == float("-inf"):
        return Fraction(high) - 1 if high != float("inf") else Fraction(0)
    return Fraction(low) + 1 if high == float("inf") else (Fraction(low) + Fraction(high)) / 2


def _sign(top: list[Fraction], bottom: list[Fraction], x: Fraction) -> int:
    value = _value(top, x) * _value(bottom, x)
    if not value:
        raise Unknown("a zero between two zeros")
    return 1 if value > 0 else -1


def _value(polynomial: list[Fraction], x: Fraction) -> Fraction:
    value = Fraction(0)
    for coefficient in reversed(polynomial):
        value = value * x + coefficient
    return value


def _zeros(polynomial: list[Fraction]) -> list[End]:
    """Return the real zeros: rational ones by division, and those of a remaining quadratic factor."""
    zeros: list[End] = []
    while len(polynomial) > 3 or (len(polynomial) > 1 and not polynomial[0]):
        zero = _rational_zero(polynomial)
        zeros.append((float(zero), ("num", zero)))
        polynomial = _divide(polynomial, zero)
    if len(polynomial) == 2:
        zero = -polynomial[0] / polynomial[1]
        zeros.append((float(zero), ("num", zero)))
    if len(polynomial) == 3:
        zeros += _quadratic_zeros(*polynomial)
    return zeros


def _rational_zero(polynomial: list[Fraction]) -> Fraction:
    if not polynomial[0]:
        return Fraction(0)
    scale = 1
    for coefficient in polynomial:
        scale = scale * coefficient.denominator // _gcd(scale, coefficient.denominator)
    first, last = abs(int(polynomial[0] * scale)), abs(int(polynomial[-1] * scale))
    if max(first, last) > MAX_ROOT_SEARCH:
        raise Unknown("large coefficients")
    for top in (d for d in range(1, first + 1) if first % d == 0):
        for bottom in (d for d in range(1, last + 1) if last % d == 0):
            for candidate in (Fraction(top, bottom), Fraction(-top, bottom)):
                if not _value(polynomial, candidate):
                    return candidate
    raise Unknown("no rational zero")


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def _divide(polynomial: list[Fraction], zero: Fraction) -> list[Fraction]:
    """Divide by (x - zero), by Horner's method."""
    quotient: list[Fraction] = []
    value = Fraction(0)
    for coefficient in reversed(polynomial):
        value = value * zero + coefficient
        quotient.append(value)
    return quotient[-2::-1]


def _quadratic_zeros(c: Fraction, b: Fraction, a: Fraction) -> list[End]:
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        return []
    root = Fraction(isqrt(discriminant.numerator), isqrt(discriminant.denominator))
    if root * root == discriminant:
        return [(float(x), ("num", x)) for x in {(-b - root) / (2 * a), (-b + root) / (2 * a)}]
    middle, size = -b / (2 * a), float(discriminant) ** 0.5 / abs(float(2 * a))
    distance: Node = ("root", ("num", Fraction(2)), ("num", discriminant / (4 * a * a)))
    low: Node = ("add", ("num", middle), ("neg", distance))
    return [(float(middle) - size, low), (float(middle) + size, ("add", ("num", middle), distance))]
