r"""Equality of an answer and a gold, in layers from cheap to expensive.

Each layer decides equal, different or unknown (``decision``); an unknown pair goes on to the next layer.

1. Strings that are equal after ``normalization``.
2. Two numbers: exact fractions, with percent signs and units (``number``, ``units``, ``quantity_equality``).
3. Choices, times, ratios, numerals in a base, words (``special_equality``).
4. The outermost shape: matrices, lists, tuples, sets, intervals and inequalities, part by part (``shape``,
   ``collection_equality``, ``real_intervals``).
5. Equations and names: x = 5 answers 5, as does the calculation 2 + 3 = 5; 2x + 4y = 3 equals y = -x/2 + 3/4
   (``relation_equality``, ``named_values``).
6. Two expressions by their values (``expression_equality``): exactly, modulo a prime, with floats, with decimals.
7. The symbolic worker, for all other pairs within the ``input_limits``.

Choices on which people differ are fields of ``GradingPolicy``. The other rules are fixed: no number is rounded unless
the policy says so; a single letter keeps its case; words are compared as words, never as products of letters; 1,000 and
1 000 are one thousand, and 1.000 is one; \approx is accepted if its right side is the rounded left side; numbers of
more than 10,000 digits are compared as strings.
"""

from __future__ import annotations

import re
from typing import Protocol

from marft_envs.mathematics.grader.assignments import without_names
from marft_envs.mathematics.grader.collection_equality import (
    compare_collections,
    compare_intervals,
    compare_matrices,
)
from marft_envs.mathematics.grader.decision import EQUAL, Decision, decision, different, unknown
from marft_envs.mathematics.grader.expression_equality import precise_value, same_value
from marft_envs.mathematics.grader.grading_policy import DEFAULT_POLICY, GradingPolicy
from marft_envs.mathematics.grader.input_limits import is_misread, too_costly, wants_worker
from marft_envs.mathematics.grader.named_values import without_lead
from marft_envs.mathematics.grader.normalization import comparison_key, normalize
from marft_envs.mathematics.grader.number import Number
from marft_envs.mathematics.grader.parse_answer import (
    MAX_LEVELS,
    NAME,
    PLUS_MINUS,
    expand_plus_minus,
    is_vector,
    merge_sets,
    number_in,
    plain,
    tree_of,
    without_unit,
)
from marft_envs.mathematics.grader.piecewise import compare_piecewise
from marft_envs.mathematics.grader.qualifiers import without_qualifiers
from marft_envs.mathematics.grader.quantity_equality import (
    compare_numbers,
    is_currency_against_percent,
    is_float_of,
    with_currencies,
)
from marft_envs.mathematics.grader.relation_equality import compare_both_branches, compare_relations
from marft_envs.mathematics.grader.sample_points import Point
from marft_envs.mathematics.grader.shape import shape_of
from marft_envs.mathematics.grader.special_equality import compare_special
from marft_envs.mathematics.grader.tree_cost import OutOfWork, Work
from marft_envs.mathematics.grader.tree_value import Node, has, is_rational
from marft_envs.mathematics.grader.units import read_unit

MAX_CHARS = 4_000  # longer strings are equal only as numbers or as strings

_INTEGER = re.compile(r"-?[0-9]{1,600}+")
_PHRASE = re.compile(r"\\text\{\s?(?:the )?(?:final )?answer\s?(?:is)?\s?:?\s?\}\s?", re.IGNORECASE)


class SymbolicComparer(Protocol):
    """Comparison by the symbolic worker: equal, different, or None if it cannot decide."""

    def trees(self, answer: Node, gold: Node, points: list[Point], digits: int) -> bool | None:
        """Compare two expression trees at points, to a number of digits."""

    def latex(self, answer: str, gold: str) -> bool | None:
        """Compare two normalized LaTeX strings."""


class NoWorker:
    """A ``SymbolicComparer`` that decides nothing."""

    def trees(self, answer: Node, gold: Node, points: list[Point], digits: int) -> bool | None:
        return None

    def latex(self, answer: str, gold: str) -> bool | None:
        return None


def equal(
    answer: str, gold: str, policy: GradingPolicy = DEFAULT_POLICY, comparer: SymbolicComparer | None = None
) -> bool:
    """Return whether ``compare`` finds an answer and a gold equal. A pair that no layer can decide is not equal."""
    return compare(answer, gold, policy, comparer).equal is True


def compare(
    answer: str, gold: str, policy: GradingPolicy = DEFAULT_POLICY, comparer: SymbolicComparer | None = None
) -> Decision:
    """Compare an answer with the gold under a policy.

    Args:
        answer: The answer itself, as LaTeX or plain text, without a box.
        gold: The gold answer, in the same form.
        policy: The rules for when an answer counts as equal to the gold.
        comparer: The last layer; None to leave it out.

    Returns:
        Equal if some layer finds the two equal, different if a layer proves that they differ, else unknown.
    """
    # A shortcut for the most frequent pair, two integers: it skips normalization.
    if _INTEGER.fullmatch(answer) and _INTEGER.fullmatch(gold) and not policy.rounding:
        return decision(int(answer) == int(gold), "the numbers are different")
    if is_currency_against_percent(answer, gold):
        return different("one is an amount of money, the other a percentage")
    answer, gold = with_currencies(answer, gold)  # before normalization, which removes currency signs
    if comparison_key(answer) == comparison_key(gold):
        return EQUAL
    answer, gold = normalize(answer), normalize(gold)
    if r"\text" in answer:
        answer = without_lead(normalize(_PHRASE.sub("", answer, count=1)))
    if r"\in" in answer or r"\in" in gold or "real" in answer:
        answer, gold = without_qualifiers(answer, gold)
    try:
        return _Comparison(policy, comparer or NoWorker()).same(answer, gold)
    except OutOfWork as limit:
        return unknown(str(limit))
    except RecursionError:  # possible only if the caller has used almost all of the stack; depths are bounded here
        return unknown("the stack is exhausted")


class _Comparison:
    """One comparison under a policy. ``same`` calls itself for the parts of a shape, up to MAX_LEVELS deep."""

    def __init__(self, policy: GradingPolicy, comparer: SymbolicComparer) -> None:
        self.policy = policy
        self.comparer = comparer
        self.work = Work()
        self.level = 0

    def same(self, answer: str, gold: str) -> Decision:
        """Compare two normalized strings."""
        if comparison_key(answer) == comparison_key(gold):
            return EQUAL
        self.work.spend(3)
        gold_number = number_in(gold)
        answer_number = number_in(answer)
        if gold_number is not None and answer_number is not None:
            return compare_numbers(answer_number, gold_number, self.policy)
        self.work.spend(100)
        if not answer:
            return different("a part of the answer is empty")
        if max(len(answer), len(gold)) > MAX_CHARS or self.level >= MAX_LEVELS:
            return unknown("the answer is too long or too deeply nested to be compared")
        self.level += 1
        try:
            decided = compare_special(self, answer, gold)
            return self._shapes(plain(answer), plain(gold)) if decided is None else decided
        finally:
            self.level -= 1

    def _shapes(self, answer: str, gold: str) -> Decision:
        """Compare two strings by their outermost shapes."""
        if r"\begin" in gold and (piecewise := compare_piecewise(self, answer, gold)) is not None:
            return piecewise
        a, g = shape_of(answer), shape_of(gold)
        # The order matters: an interval must be recognised before it is compared as a tuple, and a list of equations,
        # as in x = 1, y = 2, before one equation.
        if g.kind == "matrix" and a.kind == "relation" and a.signs == ("=",) and NAME.fullmatch(a.parts[0]):
            a = shape_of(a.parts[1])
        if "list" in (a.kind, g.kind) or "relation" in (a.kind, g.kind):
            a, g = without_names(answer, gold, a, g) or (a, g)
        if "matrix" in (a.kind, g.kind):
            return compare_matrices(self, a, g) if is_vector(a) and is_vector(g) else self.worker(answer, gold)
        decided = compare_intervals(self, answer, gold, a, g)
        if decided is not None:
            return decided
        if PLUS_MINUS.search(answer) or PLUS_MINUS.search(gold):
            if a.kind == g.kind == "relation" and a.signs == g.signs == ("=",):
                return compare_both_branches(self, answer, gold)
            a, g = expand_plus_minus(a), expand_plus_minus(g)
        if g.kind == "union" or a.kind == "union":
            a, g = merge_sets(a), merge_sets(g)
        if ("in",) in (a.signs, g.signs):
            return compare_relations(self, answer, gold, a, g)
        if (
            "relation" in (a.kind, g.kind)
            and not set(a.signs + g.signs) <= {"=", "~"}
            and "list" not in (a.kind, g.kind)
        ):
            return self.worker(answer, gold)  # an inequality and an interval, or two inequalities
        if {a.kind, g.kind} & {"list", "tuple", "set"}:
            return compare_collections(self, a, g)
        if "relation" in (a.kind, g.kind):
            return compare_relations(self, answer, gold, a, g)
        return self._single(answer, gold)

    def _single(self, answer: str, gold: str) -> Decision:
        """Compare two expressions, with units if both have one."""
        a, answer_unit = without_unit(answer)
        g, gold_unit = without_unit(gold, is_gold=True)
        if answer_unit and gold_unit and self.policy.units != "ignored":
            left, right = read_unit(answer_unit), read_unit(gold_unit)
            if left.measures != right.measures:
                return different("the units are different")
            if left.factor != right.factor:  # convert the answer to the gold's unit
                ratio = left.factor / right.factor
                a = rf"\frac{{{ratio.numerator}}}{{{ratio.denominator}}} \cdot ({a})"
        if self.policy.units == "required" and gold_unit and not answer_unit:
            return different("the unit is missing")
        answer_number, gold_number = number_in(a), number_in(g)
        if answer_number and gold_number:
            return compare_numbers(answer_number, gold_number, self.policy)
        if self._is_float(answer_number, g) or self._is_float(gold_number, a):
            return EQUAL
        answer_tree, gold_tree = tree_of(a, self.policy.log), tree_of(g, self.policy.log)
        if answer_tree and gold_tree:
            return self.trees(answer_tree, gold_tree)
        return self.worker(a, g)

    def _is_float(self, number: Number | None, other: str) -> bool:
        """Return whether a decimal of a float's precision stands for an irrational constant, such as sqrt(17)."""
        if number is None or not number.decimals or number.unit or number.percent:
            return False
        tree = tree_of(other, self.policy.log)
        if tree is None or is_rational(tree) or has(tree, "deg", "pct"):
            return False
        value = precise_value(tree, number.decimals + 10)
        return value is not None and is_float_of(number, value)

    def trees(self, answer: Node, gold: Node) -> Decision:
        """Compare two expression trees by their values."""
        same = same_value(answer, gold, self.policy, self.comparer.trees, self.work)
        return decision(same, "the values are different", "the values cannot be compared")

    def worker(self, answer: str, gold: str) -> Decision:
        """Compare sums, integrals, limits, matrices and inequalities that no other layer can read."""
        if not (wants_worker(answer) or wants_worker(gold)):
            return unknown("no layer can read the answer or the gold")
        if is_misread(answer) or is_misread(gold):
            return unknown("the symbolic worker does not understand all commands of the answer or the gold")
        cost = too_costly(answer) or too_costly(gold)
        if cost:
            return unknown(f"too costly for the symbolic worker: {cost}")
        same = self.comparer.latex(answer, gold)
        return decision(same, "the symbolic worker finds them different", "the symbolic worker cannot compare them")
