"""Points at which two expressions are compared, drawn with a seed.

The seed depends on the gold alone, so a verdict is repeatable, and no expression that vanishes at the points, or has
the signs of another one there, can be written without knowing the gold.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from marft_envs.mathematics.grader.tree_value import Node, Unknown, exact, symbols

Point = dict[str, Fraction]

_DENOMINATORS = (997, 1009, 1013, 1019, 1021, 1031, 1033, 1039)
_TRIES = 60
POSITIVE = frozenset(["c", "r", "R", "L"])
"""Names of lengths and of the speed of light: v sqrt(1 - v^2 / c^2) equals v / c sqrt(c^2 - v^2)."""


def integer_points(names: frozenset[str], seed: int) -> Iterator[Point]:
    """Yield 20 points with integers of 60 bits, for polynomials and integer powers modulo a prime."""
    rng = random.Random(seed)
    for _ in range(20):
        yield {name: Fraction(rng.getrandbits(59) | 1 << 59) for name in sorted(names)}


def small_integer_points(names: frozenset[str], seed: int) -> Iterator[Point]:
    """Yield 24 points with positive integers, of which half are below 13 and half below 600, for factorials."""
    rng = random.Random(seed)
    for number in range(24):
        yield {name: Fraction(rng.randint(1, 600 if number % 2 else 12)) for name in sorted(names)}


def sign_points(names: frozenset[str], seed: int) -> Iterator[Point]:
    """Yield points of moderate size that have every pattern of signs for up to three names, else 16 random ones.

    The numbers are fractions with large prime denominators, so that no simple identity holds at them by chance.
    """
    rng, ordered = random.Random(seed), sorted(names)
    if len(ordered) <= 3:
        patterns = list(product((1, -1), repeat=len(ordered))) * (8 >> len(ordered))
    else:
        patterns = [tuple(rng.choice((1, -1)) for _ in ordered) for _ in range(16)]
    for signs in patterns:
        yield _positive({name: sign * _fraction(rng, 0.1, 3.0) for name, sign in zip(ordered, signs, strict=True)})


def domain_points(names: frozenset[str], seed: int, *nodes: Node) -> Iterator[Point]:
    """Yield points of many sizes, among them some near the numbers in the expressions.

    Roots, logarithms and arc functions are real at a part of them, such as those between 3 and 4 for
    sqrt((x - 3) (4 - x)).
    """
    rng, ordered = random.Random(seed + 1), sorted(names)
    near = sorted({abs(number) for node in nodes for number in _numbers(node)})
    for number in range(_TRIES):
        point = {}
        for name in ordered:
            size = _fraction(rng, -1.7, 1.7, logarithmic=True)
            if number % 3 == 1 and near:
                size = rng.choice(near) + rng.choice((1, -1)) * _fraction(rng, 0.01, 1.0)
            elif number % 3 == 2:
                size = _fraction(rng, 0.0, 1.0)
            point[name] = size if number % 2 else size * rng.choice((1, -1))
        yield _positive(point)


def far_points(names: frozenset[str], seed: int, *nodes: Node) -> Iterator[Point]:
    """Yield points beyond all numbers in the expressions, where |x - 99| and 99 - x differ; none if all are small."""
    largest = max((abs(number) for node in nodes for number in _numbers(node)), default=Fraction(0))
    smallest = min((abs(number) for node in nodes for number in _numbers(node) if number), default=Fraction(1))
    scale = max(largest, 1 / smallest)
    if scale < 3:
        return
    rng = random.Random(seed + 2)
    for sign in (1, -1, 0):
        yield _positive(
            {name: (sign or rng.choice((1, -1))) * scale * (1 + _fraction(rng, 0.1, 3.0)) for name in sorted(names)}
        )


def _positive(point: Point) -> Point:
    """Return the point with positive values for the names that stand for positive numbers."""
    return {name: abs(value) if name in POSITIVE else value for name, value in point.items()}


def _fraction(rng: random.Random, low: float, high: float, *, logarithmic: bool = False) -> Fraction:
    """Return a random fraction between two bounds, or between 10 to these powers."""
    denominator = rng.choice(_DENOMINATORS)
    value = rng.uniform(low, high)
    return Fraction(max(1, round((10**value if logarithmic else value) * denominator)), denominator)


def _numbers(node: Node) -> Iterator[Fraction]:
    """Yield the values of the largest rational parts without symbols."""
    if node[0] not in ("sym", "const", "inf") and not symbols(node):
        try:
            yield exact(node)
            return
        except Unknown:
            pass
    for part in node[1:]:
        if isinstance(part, tuple):
            yield from _numbers(part)
