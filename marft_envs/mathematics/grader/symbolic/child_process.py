"""Comparisons in the worker's child: two trees with mpmath, two LaTeX strings with math-verify.

The worker loads this file by its path, without the package. math-verify (https://github.com/huggingface/Math-Verify,
Apache-2.0) runs with its own time-outs off, because they need ``signal`` and the main thread. It rounds numbers to
absolute precision, so that 2^-99 equals 2^-98; two numbers that it finds equal are therefore compared again, to 30
significant digits.
"""

from __future__ import annotations

import logging
import random
import re
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
_COMMAND = re.compile(r"\\[A-Za-z]+")
_NAME = re.compile(r"\\[A-Za-z]+|[A-Z]")
_LETTER = re.compile(r"[A-Za-z]")
_BOUND = re.compile(r"\\(?:sum|prod|lim)\s?_\s?\{?\s?([A-Za-z])|d ?([A-Za-z])(?![A-Za-z])")
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
    """Compare two LaTeX strings with math-verify.

    Returns:
        True if math-verify finds them equal and their numbers agree to 30 digits, False if their values at a point
        differ, None if neither is shown, or if one cannot be parsed without losing a name.
    """
    answer, gold = _with_small_letters(answer, gold)
    parsed_gold = _parse(gold)
    gold_done()
    parsed_answer = _parse(answer)
    if not (_has_all_names(parsed_gold, gold) and _has_all_names(parsed_answer, answer)):
        return None
    if not (isinstance(parsed_answer, sympy.Expr) and isinstance(parsed_gold, sympy.Expr)):
        sets = _as_set(parsed_answer), _as_set(parsed_gold)
        return True if None not in sets and sets[0] == sets[1] else None
    differ = _differ(parsed_answer, parsed_gold)
    if differ:
        return False
    if differ is None:
        return None
    if sympy.simplify((parsed_answer - parsed_gold).doit()) == 0:
        return True
    equal = math_verify.verify(parsed_gold, parsed_answer, allow_set_relation_comp=True, timeout_seconds=None)
    return True if equal else None


def _parse(text: str) -> Any:
    parsed = math_verify.parse(
        rf"\boxed{{{text}}}", _CONFIG, fallback_mode="no_fallback", extraction_mode="first_match", parsing_timeout=None
    )
    return next((item for item in parsed if not isinstance(item, str)), None)


def _with_small_letters(*texts: str) -> tuple[str, ...]:
    """Return the strings with a small letter of its own for each capital: math-verify does not tell N from n."""
    letters = {letter for text in texts for letter in _LETTER.findall(_COMMAND.sub(" ", text))}
    free = (letter for letter in "abcfghjklmnopqrstuvwxyz" if letter not in letters)
    names = {letter: next(free, letter) for letter in sorted(letters) if letter.isupper()}
    return tuple(_NAME.sub(lambda match: names.get(match.group(), match.group()), text) for text in texts)


def _has_all_names(parsed: Any, text: str) -> bool:
    """Return whether each letter of a string is a symbol of what was parsed: math-verify drops what it cannot read."""
    if not isinstance(parsed, sympy.Basic):
        return False
    letters = set(_LETTER.findall(_COMMAND.sub(" ", text)))
    bound = {
        letter for pair in _BOUND.findall(text) for letter in pair
    }  # the variables of sums, products, limits and integrals
    return letters - bound - {"e", "i", "d"} <= {str(symbol) for symbol in parsed.atoms(sympy.Symbol)}


def _as_set(item: Any) -> Any:
    """Return a set of real numbers, such as that of an inequality in one variable, as a set of SymPy, or None."""
    try:
        return item if isinstance(item, sympy.Set) else item.as_set()
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return None


def _differ(answer: Any, gold: Any) -> bool | None:
    """Return whether two expressions have different values at three points, to 30 digits; None if they have none."""
    names = sorted(answer.free_symbols | gold.free_symbols, key=str)
    rng = random.Random(str(gold))
    agreed = 0
    for _ in range(3 if names else 1):
        point = {name: _draw(rng, answer, gold) for name in names}
        a, g = (sympy.N(item.subs(point).doit(), 50) for item in (answer, gold))
        if not (a.is_number and g.is_number and a.is_finite and g.is_finite):
            continue
        if abs(a - g) > abs(g) * sympy.Float("1e-30", 50):
            return True
        agreed += 1
    return False if agreed else None


def _draw(rng: random.Random, *items: Any) -> Any:
    """Return a random integer, or a fraction between 0 and 1, at which an infinite series may have a value."""
    endless = any(sympy.oo in limits for item in items for series in item.atoms(sympy.Sum) for limits in series.limits)
    return sympy.Rational(rng.randint(100, 900), 1009) if endless else sympy.Integer(rng.randint(2, 12))


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


def warm_up() -> None:
    """Make one comparison of each kind: SymPy imports many modules at first use, which children then inherit."""
    for answer, gold in (
        (r"\sum_{k=1}^{n} k", r"\frac{n(n+1)}{2}"),
        (r"\int_0^1 x^2 dx", r"\frac{1}{3}"),
        (r"\lim_{x \to 0} \frac{\sin x}{x}", "1"),
        ("x^2 < 4", "(-2, 2)"),
    ):
        same_latex(answer, gold, lambda: None)


warm_up()
