"""Comparisons in the worker's child: two trees with mpmath, two LaTeX strings with math-verify.

The worker loads this file by its path, without the package. math-verify (https://github.com/huggingface/Math-Verify,
Apache-2.0) runs with its own time-outs off, because they need ``signal`` and the main thread. It rounds numbers to
absolute precision, so that 2^-99 equals 2^-98; two numbers that it finds equal are therefore compared again, to 30
significant digits.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import math_verify
import mpmath
import sympy
from latex2sympy2_extended import NormalizationConfig
from math_verify import LatexExtractionConfig

tree_value: Any = sys.modules["marft_tree_value"]
logging.disable(logging.CRITICAL)
GUARD_DIGITS = 30
_CONFIG = [
    LatexExtractionConfig(
        boxed_match_priority=0,
        normalization_config=NormalizationConfig(
            basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="all", equations=False
        ),
    )
]


def run(request: dict[str, Any], gold_done: Callable[[], None]) -> bool | None:
    """Answer one request.

    Args:
        request: "op" ("trees" or "latex"), "answer" and "gold".
        gold_done: Called as soon as the gold has been evaluated or parsed. A time-out before this call is a fault of
            the gold, one after it a fault of the answer.

    Returns:
        Whether the two are equal, or None if that cannot be decided.
    """
    if request["op"] == "trees":
        points = [{name: Fraction(value) for name, value in point.items()} for point in request["points"]]
        return same_trees(_tree(request["answer"]), _tree(request["gold"]), points, request["digits"], gold_done)
    return same_latex(request["answer"], request["gold"], gold_done)


def same_trees(
    answer: Any, gold: Any, points: list[dict[str, Fraction]], digits: int, gold_done: Callable[[], None]
) -> bool | None:
    """Compare two trees at points to a number of digits, as ``expression_equality`` does with decimals."""
    with mpmath.workdps(digits + GUARD_DIGITS):
        numbers = Mpmath(tree_value.has(answer, "i") or tree_value.has(gold, "i"))
        golds = [_value(numbers, gold, point) for point in points]
        gold_done()
        tiny, agreed = mpmath.mpf(10) ** -digits, 0
        for point, (gold_value, clean) in zip(points, golds, strict=True):
            answer_value, answer_clean = _value(numbers, answer, point)
            if answer_value is None or gold_value is None:
                continue
            same = tree_value.agree(answer_value, gold_value, tiny)
            if same is False:
                return False
            agreed += bool(same) and clean and answer_clean
    return True if agreed >= (4 if points != [{}] else 1) else None


def same_latex(answer: str, gold: str, gold_done: Callable[[], None]) -> bool | None:
    """Compare two LaTeX strings with math-verify; None if it cannot parse one of them."""
    parsed_gold = _parse(gold)
    gold_done()
    parsed_answer = _parse(answer)
    if parsed_gold is None or parsed_answer is None:
        return None
    equal = math_verify.verify(parsed_gold, parsed_answer, allow_set_relation_comp=True, timeout_seconds=None)
    return bool(equal) and _equal_to_30_digits(parsed_answer, parsed_gold)


def _parse(text: str) -> Any:
    parsed = math_verify.parse(
        rf"\boxed{{{text}}}", _CONFIG, fallback_mode="no_fallback", extraction_mode="first_match", parsing_timeout=None
    )
    return next((item for item in parsed if not isinstance(item, str)), None)


def _equal_to_30_digits(answer: Any, gold: Any) -> bool:
    """Return whether two numbers agree to 30 significant digits; True for anything that is not a number."""
    if not all(isinstance(item, sympy.Expr) and not item.free_symbols for item in (answer, gold)):
        return True
    a, b = (sympy.N(item.doit(), 50) for item in (answer, gold))
    if not (a.is_number and b.is_number and a.is_finite and b.is_finite):
        return bool(a == b)
    return bool(abs(a - b) <= abs(b) * sympy.Float("1e-30", 50))


def _value(numbers: Mpmath, tree: Any, point: dict[str, Fraction]) -> tuple[Any, bool]:
    """Return ((value, error bound), whether no sum has absorbed a summand); None in place of both without a value."""
    numbers.exact_sums = True
    try:
        value = numbers.run(tree, point)
    except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError, mpmath.libmp.NoConvergence):
        return None, False
    return value, numbers.exact_sums


def _tree(data: Any) -> Any:
    """Return the tree that ``worker_pool._to_json`` wrote."""
    if data[0] == "num":
        return ("num", Fraction(data[1]))
    return tuple(_tree(part) if isinstance(part, list) else part for part in data)


class Mpmath(tree_value.Reals):  # type: ignore[misc]
    """mpmath numbers of the working precision with all functions; complex if the expressions contain i, else real."""

    def __init__(self, is_complex: bool) -> None:
        self.is_complex = is_complex
        self.eps = mpmath.mpf(10) ** (2 - mpmath.mp.dps)

    def num(self, value: Fraction) -> Any:
        return mpmath.mpf(value.numerator) / value.denominator

    def const(self, name: str) -> Any:
        return {"pi": +mpmath.pi, "e": +mpmath.e, "i": mpmath.mpc(0, 1)}[name]

    def fn(self, name: str, value: Any) -> Any:
        names = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}
        return self._real(getattr(mpmath, names.get(name, name))(value))

    def power(self, base: Any, exponent: Any, node: Any) -> Any:
        if abs(exponent) > 10**12:
            raise tree_value.TooCostly("a large power")
        if not self.is_complex and base < 0 and exponent != int(exponent):
            return tree_value.signed_power(node[2], base, lambda size: size**exponent)
        return base**exponent

    def root(self, index: int, value: Any) -> Any:
        if self.is_complex:
            return value ** (mpmath.mpf(1) / index)
        return tree_value.signed_root(index, value, lambda size: mpmath.root(size, index))

    def ln(self, value: Any) -> Any:
        return self._real(mpmath.log(value))

    def _real(self, value: Any) -> Any:
        if isinstance(value, mpmath.mpc) and not self.is_complex:
            raise tree_value.Unknown("not a real number")
        return value
