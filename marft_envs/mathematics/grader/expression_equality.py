"""Do two trees have the same value? Exact where it can be, otherwise by digits; never by simplification.

In this order, each step at microseconds: modulo two primes for fractions and whole powers (decides); floats with an
error bound at up to eight points (decides "different"); decimals of 60 digits at the same points (decides both). What
is left, mostly equal trigonometry, is asked of the symbolic worker, which does the same with mpmath.

A point at which one of the two is not a real number does not count, so ln(x^2) is 2 ln x; sqrt(x^2) is not x.
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

Ask = Callable[[Node, Node], bool | None]
_NO_VALUE = (Unknown, ArithmeticError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


class Measured(NamedTuple):
    """answer, gold: values with error bounds at one point."""

    answer: tuple[Any, Any]
    gold: tuple[Any, Any]


def same_value(answer: Node, gold: Node, policy: GradingPolicy, ask: Ask) -> bool | None:
    """Whether two trees are equal under the policy; None where nobody can tell."""
    verdicts = []
    for left, right in _readings(answer, gold, policy):
        verdict = _decide(left, right, policy, ask)
        if verdict:
            return True
        verdicts.append(verdict)
    return None if None in verdicts else False


def _readings(answer: Node, gold: Node, policy: GradingPolicy) -> Iterable[tuple[Node, Node]]:
    """The pair with its degree and percent marks made numbers in each way that the policy allows."""
    degrees, percent = _marked(answer, gold, "deg"), _marked(answer, gold, "pct")
    for degree in ("radian", "bare") if degrees and policy.degrees == "either" else ("radian",):
        for part in ("hundredth", "bare") if percent == 1 and policy.percent == "either" else ("hundredth",):
            yield _unmark(answer, degree, part), _unmark(gold, degree, part)


def _marked(answer: Node, gold: Node, mark: str) -> int:
    return has(answer, mark) + has(gold, mark)


def _unmark(node: Node, degree: str, percent: str) -> Node:
    if not has(node, "deg", "pct"):
        return node
    if node[0] == "fn":
        degree = "radian"
    if node[0] == "deg":
        inside = _unmark(node[1], degree, percent)
        return ("div", ("mul", inside, ("const", "pi")), ("num", 180)) if degree == "radian" else inside
    if node[0] == "pct":
        inside = _unmark(node[1], degree, percent)
        return ("div", inside, ("num", 100)) if percent == "hundredth" else inside
    return tuple(_unmark(part, degree, percent) if isinstance(part, tuple) else part for part in node)


def _decide(answer: Node, gold: Node, policy: GradingPolicy, ask: Ask) -> bool | None:
    if answer == gold:
        return True
    if has(answer, "inf") or has(gold, "inf"):
        return _infinity(answer) == _infinity(gold) != 0
    names = symbols(answer) | symbols(gold)
    if policy.rounding and not names:
        return _close(answer, gold, policy.rounding)
    if is_rational(answer) and is_rational(gold):
        verdict = _modular(answer, gold, names)
        if verdict is not None:
            return verdict
        if not names and not costly(answer) and not costly(gold):
            return False  # a division by zero
    verdict = _by_digits(answer, gold, names)
    if verdict is None and not costly(answer) and not costly(gold):
        verdict = ask(answer, gold)
    return verdict


def _infinity(node: Node) -> int:
    """1 for infinity, -1 for its negative, 0 for anything else."""
    return 1 if node == ("inf",) else -1 if node == ("neg", ("inf",)) else 0


def _modular(answer: Node, gold: Node, names: frozenset[str]) -> bool | None:
    """Two primes, at three points where both are defined."""
    agreed = 0
    for point in points(names)[:5]:
        try:
            for arithmetic in map(Modular, PRIMES):
                if arithmetic.run(answer, point) != arithmetic.run(gold, point):
                    return False
            agreed += 1
        except _NO_VALUE:
            continue
    return True if agreed >= min(3, len(points(names))) else None


def _by_digits(answer: Node, gold: Node, names: frozenset[str]) -> bool | None:
    """Floats until a point differs; where all agree, decimals."""
    floats = Complexes() if has(answer, "i") or has(gold, "i") else Floats()
    if any(agree(m.answer, m.gold) is False for m in measure(floats, answer, gold, names)):
        return False
    if isinstance(floats, Complexes):
        return None
    with decimal.localcontext(CONTEXT):
        decimals = Decimals()
        found = [agree(m.answer, m.gold) for m in measure(decimals, answer, gold, names)]
    if False in found:
        return False
    enough = len(found) >= (4 if names else 1)
    return True if enough and all(found) and decimals.exact_sums else None


def measure(arithmetic: Reals, answer: Node, gold: Node, names: frozenset[str]) -> Iterable[Measured]:
    """Both values at each point where both exist."""
    for point in points(names):
        try:
            yield Measured(arithmetic.run(answer, point), arithmetic.run(gold, point))
        except _NO_VALUE:
            continue


def _close(answer: Node, gold: Node, rounding: float) -> bool:
    for measured in measure(Floats(), answer, gold, frozenset()):
        return bool(abs(measured.answer[0] - measured.gold[0]) <= rounding * abs(measured.gold[0]))
    return False


def number_of(node: Node) -> float | None:
    """A constant as a float, infinities included; None where it is none."""
    if infinite := _infinity(node):
        return float("inf") * infinite
    try:
        return float(Floats().run(_unmark(node, "radian", "hundredth"), {})[0])
    except _NO_VALUE:
        return None


def is_defined(node: Node) -> bool:
    """Whether a tree without symbols has a value that floats or decimals can hold."""
    if number_of(node) is not None:
        return True
    with decimal.localcontext(CONTEXT):
        try:
            Decimals().run(_unmark(node, "radian", "hundredth"), {})
        except _NO_VALUE:
            return False
    return True


def proportional(f: Node, g: Node) -> bool:
    """Whether f = c g for one constant c that is not 0: then f = 0 and g = 0 are the same equation."""
    names = symbols(f)
    if not names or names != symbols(g):
        return False
    if is_rational(f) and is_rational(g):
        return all(_constant_modulo(prime, f, g, names) for prime in PRIMES)
    with decimal.localcontext(CONTEXT):
        ratios = _ratios(Decimals(), f, g, names)
        return len(ratios) >= 4 and all(abs(r - ratios[0]) <= abs(ratios[0]) * decimal.Decimal("1e-30") for r in ratios)


def _ratios(arithmetic: Reals, f: Node, g: Node, names: frozenset[str]) -> list[Any]:
    found = [m for m in measure(arithmetic, f, g, names) if abs(m.gold[0]) > m.gold[1] and m.answer[0]]
    return [m.answer[0] / m.gold[0] for m in found]


def _constant_modulo(prime: int, f: Node, g: Node, names: frozenset[str]) -> bool:
    arithmetic, ratios = Modular(prime), []
    for point in points(names):
        try:
            top, bottom = arithmetic.run(f, point), arithmetic.run(g, point)
            if not top and not bottom:
                continue
            ratios.append(top * arithmetic.inverse(bottom) % prime)
        except _NO_VALUE:
            continue
    return len(ratios) >= 3 and ratios[0] != 0 and len(set(ratios)) == 1
