"""Equality of two expression trees by their values, without symbolic simplification.

| step | for | decides |
|---|---|---|
| modulo two primes, at up to five points | fractions and integer powers | equal and different |
| floats with an error bound, at up to eight points | all trees | different |
| decimals of 60 digits, at the same points | roots, powers, logarithms | equal and different |
| the symbolic worker (mpmath, 60 digits) | the rest, mostly equal trigonometric expressions | equal and different |

Each of the first three takes microseconds. Equality at random points is identity testing in the sense of Schwartz
(1980, https://doi.org/10.1145/322217.322225) and Zippel (1979): a nonzero polynomial of degree d is zero modulo a prime
p at a random point with probability at most d / p. The points are fixed here, so that verdicts are reproducible; an
answer that is constructed from the points themselves could be accepted.

A point at which one of the two is not a real number is skipped, so ln(x^2) equals 2 ln x, and sqrt(x^2) differs from x.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from marft_envs.mathematics.grader.grading_policy import GradingPolicy
from marft_envs.mathematics.grader.number_systems import CONTEXT, PRIMES, Complexes, Decimals, Floats, Modular
from marft_envs.mathematics.grader.tree_value import (
    Node,
    Reals,
    Unknown,
    agree,
    costly,
    has,
    is_rational,
    points,
    symbols,
)

CompareTrees = Callable[[Node, Node], bool | None]
_NO_VALUE = (Unknown, ArithmeticError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


class Evaluated(NamedTuple):
    """Both expressions at one point.

    Attributes:
        answer: (value, error bound) of the answer.
        gold: (value, error bound) of the gold.
    """

    answer: tuple[Any, Any]
    gold: tuple[Any, Any]


def same_value(answer: Node, gold: Node, policy: GradingPolicy, compare_trees: CompareTrees) -> bool | None:
    """Return whether two expression trees are equal under a policy.

    Args:
        answer: The tree of the answer.
        gold: The tree of the gold.
        policy: The settings for degrees, percent signs and rounding.
        compare_trees: The symbolic worker's comparison, for what the other steps leave open.

    Returns:
        True, False, or None if no step can decide.
    """
    results = []
    for left, right in _interpretations(answer, gold, policy):
        result = _decide(left, right, policy, compare_trees)
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


def _decide(answer: Node, gold: Node, policy: GradingPolicy, compare_trees: CompareTrees) -> bool | None:
    """Compare two trees without marks, with the cheapest step that can decide."""
    if answer == gold:
        return True
    if has(answer, "inf") or has(gold, "inf"):
        return _infinity(answer) == _infinity(gold) != 0
    names = symbols(answer) | symbols(gold)
    if policy.rounding and not names:
        return _close(answer, gold, policy.rounding)
    if is_rational(answer) and is_rational(gold):
        result = _modular(answer, gold, names)
        if result is not None:
            return result
        if not names and not costly(answer) and not costly(gold):
            return False  # a division by zero
    result = _by_digits(answer, gold, names)
    if result is None and not costly(answer) and not costly(gold):
        result = compare_trees(answer, gold)
    return result


def _infinity(node: Node) -> int:
    """Return 1 for infinity, -1 for its negative, 0 for anything else."""
    return 1 if node == ("inf",) else -1 if node == ("neg", ("inf",)) else 0


def _modular(answer: Node, gold: Node, names: frozenset[str]) -> bool | None:
    """Compare two rational trees modulo two primes; None if they are defined at fewer than three points.

    Any difference proves that the values differ. Two primes instead of one make an accidental agreement of two
    constants, which have a single point, practically impossible.
    """
    agreed = 0
    for point in points(names)[:5]:
        try:
            for numbers in map(Modular, PRIMES):
                if numbers.run(answer, point) != numbers.run(gold, point):
                    return False
            agreed += 1
        except _NO_VALUE:
            continue
    return True if agreed >= min(3, len(points(names))) else None


def _by_digits(answer: Node, gold: Node, names: frozenset[str]) -> bool | None:
    """Compare with floats until a point differs; if none does, with decimals. None if neither can decide."""
    floats = Complexes() if has(answer, "i") or has(gold, "i") else Floats()
    if any(agree(at.answer, at.gold) is False for at in evaluate(floats, answer, gold, names)):
        return False
    if isinstance(floats, Complexes):
        return None  # decimals are real
    with decimal.localcontext(CONTEXT):
        decimals = Decimals()
        agreements = [agree(at.answer, at.gold) for at in evaluate(decimals, answer, gold, names)]
    if False in agreements:
        return False
    # With symbols, at least half of the eight points must be valid; agreement at fewer is not evidence enough.
    enough = len(agreements) >= (4 if names else 1)
    return True if enough and all(agreements) and decimals.exact_sums else None


def evaluate(numbers: Reals, answer: Node, gold: Node, names: frozenset[str]) -> Iterable[Evaluated]:
    """Yield both values at each point where both exist."""
    for point in points(names):
        try:
            yield Evaluated(numbers.run(answer, point), numbers.run(gold, point))
        except _NO_VALUE:
            continue


def _close(answer: Node, gold: Node, rounding: float) -> bool:
    """Return whether two constants differ by at most ``rounding`` times the gold."""
    for at in evaluate(Floats(), answer, gold, frozenset()):
        return bool(abs(at.answer[0] - at.gold[0]) <= rounding * abs(at.gold[0]))
    return False


def number_of(node: Node) -> float | None:
    """Return the value of a constant as a float, infinities included; None if the tree has no such value."""
    if infinite := _infinity(node):
        return float("inf") * infinite
    try:
        return float(Floats().run(_replace_marks(node, "radian", "hundredth"), {})[0])
    except _NO_VALUE:
        return None


def is_defined(node: Node) -> bool:
    """Return whether a tree without symbols has a value that a float or a decimal can represent."""
    if number_of(node) is not None:
        return True
    with decimal.localcontext(CONTEXT):
        try:
            Decimals().run(_replace_marks(node, "radian", "hundredth"), {})
        except _NO_VALUE:
            return False
    return True


def proportional(f: Node, g: Node) -> bool:
    """Return whether f = c g for a constant c other than 0; then f = 0 and g = 0 are the same equation."""
    names = symbols(f)
    if not names or names != symbols(g):
        return False
    if is_rational(f) and is_rational(g):
        return all(_constant_modulo(prime, f, g, names) for prime in PRIMES)
    with decimal.localcontext(CONTEXT):
        ratios = _ratios(Decimals(), f, g, names)
        return len(ratios) >= 4 and all(abs(r - ratios[0]) <= abs(ratios[0]) * decimal.Decimal("1e-30") for r in ratios)


def _ratios(numbers: Reals, f: Node, g: Node, names: frozenset[str]) -> list[Any]:
    """Return f / g at each point where both are defined and not zero within their error bounds."""
    nonzero = [at for at in evaluate(numbers, f, g, names) if abs(at.gold[0]) > at.gold[1] and at.answer[0]]
    return [at.answer[0] / at.gold[0] for at in nonzero]


def _constant_modulo(prime: int, f: Node, g: Node, names: frozenset[str]) -> bool:
    """Return whether f / g is the same number modulo ``prime`` at three or more points."""
    numbers, ratios = Modular(prime), []
    for point in points(names):
        try:
            top, bottom = numbers.run(f, point), numbers.run(g, point)
            if not top and not bottom:
                continue  # the point solves both equations and says nothing about the factor
            ratios.append(top * numbers.inverse(bottom) % prime)
        except _NO_VALUE:
            continue
    return len(ratios) >= 3 and ratios[0] != 0 and len(set(ratios)) == 1
