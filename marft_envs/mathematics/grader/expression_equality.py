"""Equality of two expression trees by their values, without symbolic simplification.

| step | for | decides |
|---|---|---|
| fractions, or integers modulo a prime if they are long | rational constants | equal and different |
| integers modulo a prime, at up to 16 points | fractions, integer powers, factorials | equal and different |
| floats with an error bound, at eight points or more | all trees | different |
| decimals, at the same points | roots, powers, logarithms | equal and different |
| the symbolic worker (mpmath) | the rest, mostly equal trigonometric expressions | equal and different |

All but the last take microseconds. Equality at random points is identity testing in the sense of Schwartz (1980,
https://doi.org/10.1145/322217.322225) and Zippel (1979): a nonzero polynomial of degree d is zero modulo a prime p at a
random point with probability at most d / p. The points and the prime are drawn with the gold as seed
(``sample_points``, ``number_systems.prime``).

A point at which one of the two is not a real number is skipped, so ln(x^2) equals 2 ln x, and sqrt(x^2) differs from x.
"""

from __future__ import annotations

import decimal
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, NamedTuple

from marft_envs.mathematics.grader.grading_policy import GradingPolicy
from marft_envs.mathematics.grader.number_systems import Complexes, Decimals, Floats, Modular, context
from marft_envs.mathematics.grader.sample_points import (
    Point,
    domain_points,
    far_points,
    integer_points,
    sign_points,
    small_integer_points,
)
from marft_envs.mathematics.grader.tree_cost import Work, costly, digits_needed, weight
from marft_envs.mathematics.grader.tree_value import (
    Node,
    Reals,
    TooCostly,
    Unknown,
    agree,
    exact,
    has,
    has_symbolic_exponent,
    is_rational,
    symbols,
)

CompareTrees = Callable[[Node, Node, list[Point], int], bool | None]
ENOUGH = 8
GUARD_DIGITS = 30
FLOAT_DECIMALS = 30  # a float is precise enough for decimals with at most 20 digits after the point
_OF_INTEGERS = ("fact", "fact2", "binom", "floor", "ceil", "call")
_NO_VALUE = (Unknown, ArithmeticError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


class Evaluated(NamedTuple):
    """Both expressions at one point.

    Attributes:
        answer: (value, error bound) of the answer.
        gold: (value, error bound) of the gold.
    """

    answer: tuple[Any, Any]
    gold: tuple[Any, Any]


def same_value(
    answer: Node, gold: Node, policy: GradingPolicy, compare_trees: CompareTrees, work: Work | None = None
) -> bool | None:
    """Return whether two expression trees are equal under a policy.

    Args:
        answer: The tree of the answer.
        gold: The tree of the gold.
        policy: The settings for degrees, percent signs and rounding.
        compare_trees: The symbolic worker's comparison, for what the other steps leave open.
        work: The work that is left to the comparison; None for that of one.

    Returns:
        True, False, or None if no step can decide.

    Raises:
        OutOfWork: The comparison needs too much work.
    """
    work = work or Work()
    results = []
    for left, right in _interpretations(answer, gold, policy):
        result = _decide(left, right, policy, compare_trees, work)
        if result:
            return True
        results.append(result)
    return None if None in results else False


def _interpretations(answer: Node, gold: Node, policy: GradingPolicy) -> Iterable[tuple[Node, Node]]:
    """Yield the pair with its degree and percent marks replaced, in each way that the policy allows.

    60 degrees are pi/3 or 60. A percent sign can be ignored only if exactly one side has it: if both have it, dividing
    both by 100 is enough.
    """
    degrees, percent = _sides_with(answer, gold, "deg"), _sides_with(answer, gold, "pct")
    for degree in ("radian", "bare") if degrees and policy.degrees == "either" else ("radian",):
        for part in ("hundredth", "bare") if percent == 1 and policy.percent == "either" else ("hundredth",):
            yield _replace_marks(answer, degree, part), _replace_marks(gold, degree, part)


def _sides_with(answer: Node, gold: Node, mark: str) -> int:
    return has(answer, mark) + has(gold, mark)


def _replace_marks(node: Node, degree: str, percent: str) -> Node:
    """Return the tree without degree and percent marks: multiplied by pi / 180 and 1 / 100, or unchanged ("bare")."""
    if not has(node, "deg", "pct"):
        return node
    if node[0] == "fn":  # in sin(30 degrees) the argument is an angle under every policy
        degree = "radian"
    if node[0] == "deg":
        inside = _replace_marks(node[1], degree, percent)
        return ("div", ("mul", inside, ("const", "pi")), ("num", 180)) if degree == "radian" else inside
    if node[0] == "pct":
        inside = _replace_marks(node[1], degree, percent)
        return ("div", inside, ("num", 100)) if percent == "hundredth" else inside
    return tuple(_replace_marks(part, degree, percent) if isinstance(part, tuple) else part for part in node)


def _decide(answer: Node, gold: Node, policy: GradingPolicy, compare_trees: CompareTrees, work: Work) -> bool | None:
    """Compare two trees without marks, with the cheapest step that can decide."""
    if answer == gold:
        return True
    if has(answer, "inf") or has(gold, "inf"):
        return _infinity(answer) == _infinity(gold) != 0
    names = symbols(answer) | symbols(gold)
    if policy.rounding and not names:
        return _close(answer, gold, policy.rounding)
    pair = _Pair(answer, gold, names, zlib.crc32(repr(gold).encode()), work, weight(answer) + weight(gold))
    if is_rational(answer) and is_rational(gold):
        result = _by_integers(pair) if names else _exactly(pair)
        if result is not None:
            return result
    try:
        result, points = _by_digits(pair)
        if result is None and not costly(answer) and not costly(gold):
            result = compare_trees(answer, gold, points, digits_needed(answer, gold))
    except TooCostly:  # the digits that would be needed
        return None
    return result


@dataclass(frozen=True)
class _Pair:
    """Two expressions, and what their comparison needs.

    Attributes:
        answer: The tree of the answer.
        gold: The tree of the gold.
        names: The symbols of both.
        seed: The seed of the points and of the prime, which depends on the gold alone.
        work: The work that is left.
        weight: The work of evaluating both once.
    """

    answer: Node
    gold: Node
    names: frozenset[str]
    seed: int
    work: Work
    weight: int

    def at(self, numbers: Reals, point: Point, cost: int = 1) -> Evaluated | None:
        """Return both values at a point, or None if one of them does not exist."""
        self.work.spend(self.weight * cost)
        try:
            return Evaluated(numbers.run(self.answer, point), numbers.run(self.gold, point))
        except _NO_VALUE:
            return None


def _infinity(node: Node) -> int:
    """Return 1 for infinity, -1 for its negative, 0 for anything else."""
    return 1 if node == ("inf",) else -1 if node == ("neg", ("inf",)) else 0


def _exactly(pair: _Pair) -> bool | None:
    """Compare two rational constants as fractions, or modulo a prime if they are too long for that."""
    pair.work.spend(pair.weight)
    try:
        return exact(pair.answer) == exact(pair.gold)
    except TooCostly:
        pass
    except _NO_VALUE:  # a division by zero, or i
        if not has(pair.answer, "i") and not has(pair.gold, "i"):
            return None
    return _modular(pair, [{}], 1)


def _by_integers(pair: _Pair) -> bool | None:
    """Compare two rational expressions at integers: long ones, or short ones if there are factorials."""
    exponential = has_symbolic_exponent(pair.answer) or has_symbolic_exponent(pair.gold)  # (-1)^n is 1 at even n
    result = _modular(pair, integer_points(pair.names, pair.seed), 16 if exponential else 3)
    return _modular(pair, small_integer_points(pair.names, pair.seed), 12) if result is None else result


def _modular(pair: _Pair, points: Iterable[Point], needed: int) -> bool | None:
    """Compare two rational trees modulo a prime; None if they are defined at fewer points than needed.

    A difference proves that the values differ.
    """
    numbers, agreed = Modular(pair.seed), 0
    for point in points:
        pair.work.spend(pair.weight)
        try:
            if numbers.run(pair.answer, point) != numbers.run(pair.gold, point):
                return False
        except _NO_VALUE:
            continue
        agreed += 1
        if agreed >= needed:
            return True
    return None


def _by_digits(pair: _Pair) -> tuple[bool | None, list[Point]]:
    """Compare with floats until a point differs; if none does, with decimals.

    Returns:
        (the decision, the points at which both have values).
    """
    floats = Complexes() if has(pair.answer, "i") or has(pair.gold, "i") else Floats()
    points: list[Point] = []
    for point in _candidates(pair, points):
        values = pair.at(floats, point)
        if values is None:
            continue
        if agree(values.answer, values.gold, 1e-30) is False:
            return False, points
        points.append(point)
    if not pair.names:
        points = [{}]
    if isinstance(floats, Complexes):
        return None, points  # decimals are real
    digits = digits_needed(pair.answer, pair.gold)
    with decimal.localcontext(context(digits + GUARD_DIGITS)):
        return _by_decimals(pair, points, digits), points


def _candidates(pair: _Pair, found: list[Point]) -> Iterable[Point]:
    """Yield points for floats until enough are found: with all patterns of signs, then in the domain, then far away."""
    if not pair.names:
        yield {}
        return
    yield from sign_points(pair.names, pair.seed)
    for point in domain_points(pair.names, pair.seed, pair.answer, pair.gold):
        if len(found) >= ENOUGH:
            break
        yield point
    yield from far_points(pair.names, pair.seed, pair.answer, pair.gold)
    if len(found) < ENOUGH or has(pair.answer, *_OF_INTEGERS) or has(pair.gold, *_OF_INTEGERS):
        yield from small_integer_points(pair.names, pair.seed)


def _by_decimals(pair: _Pair, points: list[Point], digits: int) -> bool | None:
    """Compare with decimals at the points; None if fewer than four points, one for constants, show equality."""
    numbers, agreed = Decimals(digits + GUARD_DIGITS), 0
    tiny = decimal.Decimal(1).scaleb(-digits)
    for point in points:
        numbers.exact_sums = True
        values = pair.at(numbers, point, 4 + digits * digits // 10_000)
        if values is None:
            continue
        same = agree(values.answer, values.gold, tiny)
        if same is False:
            return False
        agreed += bool(same) and numbers.exact_sums
    return True if agreed >= (4 if pair.names else 1) else None


def _close(answer: Node, gold: Node, rounding: float) -> bool | None:
    """Return whether two constants differ by at most ``rounding`` times the gold; None if one has no value."""
    a, g = number_of(answer), number_of(gold)
    return None if a is None or g is None else abs(a - g) <= rounding * abs(g)


def number_of(node: Node) -> float | None:
    """Return the value of a constant as a float, infinities included; None if the tree has no such value."""
    if infinite := _infinity(node):
        return float("inf") * infinite
    try:
        return float(Floats().run(_replace_marks(node, "radian", "hundredth"), {})[0])
    except _NO_VALUE:
        return None


def precise_value(node: Node, digits: int) -> Fraction | None:
    """Return the value of a constant: with this many digits, or with 16 if decimals cannot compute it; None if none."""
    if digits <= 1_000:
        with decimal.localcontext(context(digits + GUARD_DIGITS)):
            try:
                return Fraction(Decimals(digits + GUARD_DIGITS).run(node, {})[0])
            except _NO_VALUE:
                pass
    value = number_of(node) if digits <= FLOAT_DECIMALS else None
    return Fraction(value) if value is not None and isfinite(value) else None


def is_defined(node: Node) -> bool:
    """Return whether a tree without symbols has a value that a float or a decimal can represent."""
    if number_of(node) is not None:
        return True
    with decimal.localcontext(context(60)):
        try:
            Decimals(60).run(_replace_marks(node, "radian", "hundredth"), {})
        except _NO_VALUE:
            return False
    return True


def proportional(f: Node, g: Node, work: Work) -> bool | None:
    """Return whether f = c g for a constant c other than 0; then f = 0 and g = 0 are the same equation.

    Returns:
        True or False; None if too few points show it.
    """
    names = symbols(f)
    if not names or names != symbols(g):
        return False
    pair = _Pair(f, g, names, zlib.crc32(repr(g).encode()), work, weight(f) + weight(g))
    if is_rational(f) and is_rational(g):
        return _constant_modulo(pair)
    try:
        digits = digits_needed(f, g)
    except TooCostly:
        return None
    points = [*sign_points(names, pair.seed), *domain_points(names, pair.seed, f, g)]
    with decimal.localcontext(context(digits + GUARD_DIGITS)):
        numbers, tiny = Decimals(digits + GUARD_DIGITS), decimal.Decimal(1).scaleb(-digits)
        evaluated = [values for point in points if (values := pair.at(numbers, point, 4 + digits * digits // 10_000))]
        ratios = [at.answer[0] / at.gold[0] for at in evaluated if abs(at.gold[0]) > at.gold[1] and at.answer[0]]
    if len(ratios) < 4:
        return None
    return all(abs(ratio - ratios[0]) <= abs(ratios[0]) * tiny for ratio in ratios)


def _constant_modulo(pair: _Pair) -> bool | None:
    """Return whether answer / gold is the same number modulo a prime at three or more points; None if at fewer."""
    numbers, ratios = Modular(pair.seed), []
    for point in (*integer_points(pair.names, pair.seed), *small_integer_points(pair.names, pair.seed)):
        pair.work.spend(pair.weight)
        try:
            top, bottom = numbers.run(pair.answer, point), numbers.run(pair.gold, point)
            if not top and not bottom:
                continue  # the point solves both equations and says nothing about the factor
            ratios.append(top * numbers.inverse(bottom) % numbers.prime)
        except _NO_VALUE:
            continue
        if len(ratios) >= 5:
            break
    return None if len(ratios) < 3 else ratios[0] != 0 and len(set(ratios)) == 1
