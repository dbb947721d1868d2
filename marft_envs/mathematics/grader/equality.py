r"""Equality of an answer and a gold, in layers from cheap to expensive.

Each layer decides the pairs that it can read and leaves the others to the next layer.

1. Strings that are equal after ``normalization``.
2. Two numbers: exact fractions, with percent signs and units (``number``, ``units``, ``quantity_equality``).
3. Choices, times, ratios, numerals in a base, words (``special_answers``).
4. The outermost shape: matrices, lists, tuples, sets, intervals and inequalities, part by part (``shape``,
   ``intervals``).
5. Equations and names: x = 5 answers 5, as does the calculation 2 + 3 = 5; 2x + 4y = 3 equals y = -x/2 + 3/4.
6. Two expressions by their values (``expression_equality``): exactly modulo primes, with floats, with 60 digits.
7. The symbolic worker, for all other pairs within the ``input_limits``.

Choices on which people differ are fields of ``GradingPolicy``. The other rules are fixed: no number is rounded unless
the policy says so; a single letter keeps its case; words are compared as words, never as products of letters; 1,000 and
1 000 are one thousand, and 1.000 is one; \approx is accepted if its right side is the rounded left side; numbers of
more than 10,000 digits are compared as strings.
"""

from __future__ import annotations

import re
from typing import Protocol

from marft_envs.mathematics.grader import special_answers
from marft_envs.mathematics.grader.expression_equality import number_of, proportional, same_value
from marft_envs.mathematics.grader.grading_policy import DEFAULT_POLICY, GradingPolicy
from marft_envs.mathematics.grader.input_limits import too_costly, wants_worker
from marft_envs.mathematics.grader.normalization import comparison_key, normalize, unwrap_text
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
from marft_envs.mathematics.grader.quantity_equality import numbers_equal, with_currencies
from marft_envs.mathematics.grader.real_intervals import is_plain_pair, read_intervals, same_intervals
from marft_envs.mathematics.grader.shape import Shape, shape_of
from marft_envs.mathematics.grader.tree_value import Node
from marft_envs.mathematics.grader.units import read_unit

MAX_CHARS = 4_000  # longer strings are equal only as numbers or as strings

_INTEGER = re.compile(r"-?[0-9]{1,600}+")
_PHRASE = re.compile(r"\\text\{\s?(?:the )?(?:final )?answer\s?(?:is)?\s?:?\s?\}\s?", re.IGNORECASE)


class SymbolicComparer(Protocol):
    """Comparison by the symbolic worker: equal, different, or None if it cannot decide."""

    def trees(self, answer: Node, gold: Node) -> bool | None:
        """Compare two expression trees."""

    def latex(self, answer: str, gold: str) -> bool | None:
        """Compare two normalized LaTeX strings."""


class NoWorker:
    """A ``SymbolicComparer`` that decides nothing."""

    def trees(self, answer: Node, gold: Node) -> bool | None:
        return None

    def latex(self, answer: str, gold: str) -> bool | None:
        return None


def equal(
    answer: str, gold: str, policy: GradingPolicy = DEFAULT_POLICY, comparer: SymbolicComparer | None = None
) -> bool:
    """Return whether an answer equals the gold under a policy.

    Args:
        answer: The answer itself, as LaTeX or plain text, without a box.
        gold: The gold answer, in the same form.
        policy: The rules for when an answer counts as equal to the gold.
        comparer: The last layer; None to leave it out.

    Returns:
        True if some layer finds the two equal. A pair that no layer can decide is not equal.
    """
    # A shortcut for the most frequent pair, two integers: it skips normalization.
    if _INTEGER.fullmatch(answer) and _INTEGER.fullmatch(gold) and not policy.rounding:
        return int(answer) == int(gold)
    answer, gold = with_currencies(answer, gold)  # before normalization, which removes currency signs
    if comparison_key(answer) == comparison_key(gold):
        return True
    answer, gold = normalize(answer), normalize(gold)
    if r"\text" in answer:
        answer = normalize(_PHRASE.sub("", answer, count=1))
    try:
        return _Comparison(policy, comparer or NoWorker()).same(answer, gold)
    except RecursionError:  # possible only if the caller has used almost all of the stack; depths are bounded here
        return False


class _Comparison:
    """One comparison under a policy. ``same`` calls itself for the parts of a shape, up to MAX_LEVELS deep."""

    def __init__(self, policy: GradingPolicy, comparer: SymbolicComparer) -> None:
        self.policy = policy
        self.comparer = comparer
        self.level = 0

    def same(self, answer: str, gold: str) -> bool:
        """Return whether two normalized strings are equal."""
        if comparison_key(answer) == comparison_key(gold):
            return True
        gold_number = number_in(gold)
        answer_number = number_in(answer)
        if gold_number is not None and answer_number is not None:
            return numbers_equal(answer_number, gold_number, self.policy)
        if not answer or max(len(answer), len(gold)) > MAX_CHARS or self.level >= MAX_LEVELS:
            return False
        self.level += 1
        try:
            decided = self._special(answer, gold)
            return self._shapes(plain(answer), plain(gold)) if decided is None else decided
        finally:
            self.level -= 1

    def _special(self, answer: str, gold: str) -> bool | None:
        """Compare choices, times, ratios, numerals and words; None if the gold is none of these.

        The gold decides how the pair is read: an answer "C" is a choice if the gold is one, else a variable.
        """
        choice = special_answers.read_choice(gold)
        if choice and choice[0] in gold:  # a capital letter; (a) is more likely a variable in parentheses
            return self._choices(answer, choice)
        gold_time = special_answers.read_time(gold)
        if gold_time:
            answer_time = special_answers.read_time(answer)
            return answer_time is not None and special_answers.same_time(answer_time, gold_time)
        gold_numeral = special_answers.read_numeral(gold)
        if gold_numeral:
            answer_numeral = special_answers.read_numeral(answer)
            digits = answer_numeral is None and self.policy.bases == "optional" and answer.lstrip("0").upper()
            return answer_numeral == gold_numeral if answer_numeral else digits == gold_numeral.digits
        # Braces mean LaTeX, in which a colon belongs to a set or a function, as in \{x : x > 3\}.
        ratio = special_answers.read_ratio(gold) if "{" not in gold or r"\text" in gold else None
        if ratio:
            return self._ratios(answer, ratio)
        value = number_in(gold) if ":" in answer and self.policy.ratios == "reduced" else None
        if value is not None and not value.unit:
            terms = special_answers.read_ratio(answer)
            return terms is not None and special_answers.ratio_value(terms) == value.value
        return self._words(answer, gold)

    def _choices(self, answer: str, gold: tuple[str, str]) -> bool | None:
        """Compare an answer with a choice (letter, text of the option).

        The letters must be equal, and so must the wording of the options if both are present. A gold that is a letter
        alone may also be a variable or a point; if the answer is not a choice, a later layer decides.
        """
        choice = special_answers.read_choice(answer)
        if choice is None:
            return None if not gold[1] and len(answer) > 1 else False
        return choice[0] == gold[0] and (not choice[1] or not gold[1] or self.same(choice[1], gold[1]))

    def _ratios(self, answer: str, gold: list[str]) -> bool:
        """Compare an answer, a ratio or a number, with the terms of a gold ratio."""
        terms = special_answers.read_ratio(answer)
        if self.policy.ratios == "written":
            return terms is not None and [comparison_key(x) for x in terms] == [comparison_key(x) for x in gold]
        if terms is None:
            number = number_in(answer)
            return number is not None and not number.unit and number.value == special_answers.ratio_value(gold)
        same = special_answers.same_ratio(terms, gold)
        if same is None:  # a term is an expression
            same = len(terms) == len(gold) and all(map(self.same, terms, gold))
        return same

    def _words(self, answer: str, gold: str) -> bool | None:
        """Compare words, or lists of words; None if the gold is mathematics.

        This layer comes before expressions because single letters multiply: "seat" and "east" are equal as products.
        """
        gold_key = special_answers.word_key(gold)
        if gold_key in ("∅", "undefined") or special_answers.word_key(answer) == "∅":
            return special_answers.word_key(answer) == gold_key
        if not special_answers.words_of(gold) or read_intervals(gold) or tree_of(without_unit(gold)[0]):
            return None
        if any(c in gold for c in "=<>\\^_") and not gold.startswith(r"\text"):
            return None
        if special_answers.word_key(answer) == gold_key:
            return True
        a, g = shape_of(unwrap_text(answer).strip()), shape_of(unwrap_text(gold).strip())
        if g.kind != "list" or a.kind != "list":
            return None if g.kind == "list" and a.kind == "set" else False
        keys = [[special_answers.word_key(part) for part in shape.parts] for shape in (a, g)]
        return keys[0] == keys[1] or (self.policy.lists == "unordered" and sorted(keys[0]) == sorted(keys[1]))

    def _shapes(self, answer: str, gold: str) -> bool:
        """Compare two strings by their outermost shapes."""
        a, g = shape_of(answer), shape_of(gold)
        # The order matters: an interval must be recognised before it is compared as a tuple, and a list of equations,
        # as in x = 1, y = 2, before one equation.
        if g.kind == "matrix" and a.kind == "relation" and a.signs == ("=",) and NAME.fullmatch(a.parts[0]):
            a = shape_of(a.parts[1])
        if "matrix" in (a.kind, g.kind):
            return self._matrices(a, g) if is_vector(a) and is_vector(g) else self._with_worker(answer, gold)
        decided = self._intervals(answer, gold, a, g)
        if decided is not None:
            return decided
        if PLUS_MINUS.search(answer) or PLUS_MINUS.search(gold):
            a, g = expand_plus_minus(a), expand_plus_minus(g)
        if g.kind == "union" or a.kind == "union":
            a, g = merge_sets(a), merge_sets(g)
        if {a.kind, g.kind} & {"list", "tuple", "set"}:
            return self._collections(a, g)
        if "relation" in (a.kind, g.kind):
            return self._relations(answer, gold, a, g)
        return self._single(answer, gold)

    def _matrices(self, a: Shape, g: Shape) -> bool:
        """Compare two matrices or vectors; a tuple may stand for a vector."""
        if a.brackets in ("||", "") and g.brackets in ("||", "") and a.brackets != g.brackets:
            return False  # a determinant is not a matrix
        if a.kind == g.kind and a.columns != g.columns:  # a tuple has no columns, and equals a row or a column
            return False
        return len(a.parts) == len(g.parts) and all(map(self.same, a.parts, g.parts))

    def _intervals(self, answer: str, gold: str, a: Shape, g: Shape) -> bool | None:
        """Compare intervals, unions and inequalities; None if one side is none of these."""
        kinds = {a.kind, g.kind}
        real_line = any(r"\mathbb" in text or "all real" in text for text in (answer, gold))
        # (a, b) on both sides may be a point, whose coordinates need not be in order: it is compared as a tuple.
        both_pairs = is_plain_pair(a) and is_plain_pair(g)
        if not real_line and (both_pairs or not kinds & {"union", "relation", "tuple", "list"}):
            return None
        if kinds == {"relation"} and "=" in a.signs + g.signs:
            return None
        gold_intervals = read_intervals(gold)
        answer_intervals = read_intervals(answer) if gold_intervals else None
        if gold_intervals is None or answer_intervals is None:
            return None
        if is_plain_pair(g) and g.parts[0] and g.kind == "tuple" and a.kind == "list":
            return None
        return same_intervals(answer_intervals, gold_intervals, self._trees)

    def _collections(self, a: Shape, g: Shape) -> bool:
        """Compare lists, tuples and sets. Lists and sets have no order by default; sets have no repetitions."""
        if a.kind == "one" and len(g.parts) == 1 and g.kind == "set":
            return self.same(a.parts[0], g.parts[0])
        if a.kind not in ("list", "tuple", "set"):
            a = Shape("list", a.parts) if a.kind == "one" else a
        ordered = "tuple" in (a.kind, g.kind) or self.policy.lists == "ordered"
        if a.kind != g.kind and "tuple" in (a.kind, g.kind):  # 1, 2 against (1, 2)
            brackets = a.brackets + g.brackets
            if self.policy.tuples == "strict" or "set" in (a.kind, g.kind) or brackets not in ("()", "[]"):
                return False
        if a.kind == g.kind == "tuple" and a.brackets != g.brackets:
            return False
        if a.kind == "relation":
            return False
        answers, golds = (self._distinct(a.parts), self._distinct(g.parts)) if g.kind == "set" else (a.parts, g.parts)
        if len(answers) != len(golds):
            return False
        return all(map(self.same, answers, golds)) if ordered else self._matched(list(answers), list(golds))

    def _distinct(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Return the elements of a set, each spelling once."""
        return tuple({comparison_key(part): part for part in parts}.values())

    def _matched(self, answers: list[str], golds: list[str]) -> bool:
        """Return whether each gold can be paired with an equal answer of its own.

        Each gold takes the first equal answer. That is exact where equality is transitive, and may miss a pairing
        under rounding or where 50 and 1/2 both equal 50%.
        """
        for gold in golds:
            index = next((i for i, answer in enumerate(answers) if self.same(answer, gold)), None)
            if index is None:
                return False
            answers.pop(index)
        return True

    def _relations(self, answer: str, gold: str, a: Shape, g: Shape) -> bool:
        """Compare equations, approximations, memberships and inequalities, of which at least one side is one."""
        if set(a.signs + g.signs) <= {"=", "~"}:
            if g.kind == "one":
                return self._chain(a, gold)
            if a.kind == "one":  # the gold y = 2x + 1 is answered by 2x + 1, but not the gold 2x + y = 1
                return g.signs == ("=",) and bool(NAME.fullmatch(g.parts[0])) and self.same(answer, g.parts[1])
            return self._equations(a, g)
        if "in" in a.signs + g.signs:
            return (
                self.same(a.parts[-1], g.parts[-1])
                if (a.signs, g.signs) != (("in",), ("in",))
                else (a.parts[0] == g.parts[0] and self.same(a.parts[1], g.parts[1]))
            )
        return self._with_worker(answer, gold)

    def _chain(self, a: Shape, gold: str) -> bool:
        """Compare a calculation with a gold that is one expression.

        x = 5, 2 + 3 = 5, A = pi r^2 = 9 pi and sqrt(2) ~ 1.414 answer their last side; before an approximation, the
        exact side is an answer, too. All constant sides must agree, so that x = 41 = 42 answers neither.
        """
        parts = list(a.parts)
        named = NAME.fullmatch(parts[0]) and number_in(parts[0]) is None and a.signs[0] == "="
        steps, signs = (parts[1:], a.signs[1:]) if named else (parts, a.signs)
        if not all(steps):
            return False
        values = [number_of(node) if (node := tree_of(without_unit(step)[0])) else None for step in steps]
        if not named and None in values[:-1]:  # y + 1 = 2x + 5 is an equation, not a calculation
            return False
        if not all(_consistent(*pair) for pair in zip(values, values[1:], steps[1:], signs, strict=False)):
            return False
        last = next((i for i, sign in enumerate(signs) if sign == "~"), len(steps) - 1)
        return self.same(steps[last], gold) or (last < len(steps) - 1 and self.same(steps[-1], gold))

    def _equations(self, a: Shape, g: Shape) -> bool:
        """Compare two equations: the same name and value, or left side minus right side equal up to a factor."""
        if a.parts[0] == g.parts[0] and NAME.fullmatch(g.parts[0]) and len(g.parts) == len(a.parts) == 2:
            if self.same(a.parts[1], g.parts[1]):
                return True
            if not tree_of(g.parts[1]):
                return False
        if len(a.parts) != 2 or len(g.parts) != 2:
            return False
        sides = [[tree_of(part) for part in shape.parts] for shape in (a, g)]
        (a1, a2), (g1, g2) = sides
        if a1 and a2 and g1 and g2:
            return proportional(("add", a1, ("neg", a2)), ("add", g1, ("neg", g2)))
        return self._with_worker(" = ".join(a.parts), " = ".join(g.parts))

    def _single(self, answer: str, gold: str) -> bool:
        """Compare two expressions, with units if both have one."""
        a, answer_unit = without_unit(answer)
        g, gold_unit = without_unit(gold)
        if answer_unit and gold_unit and self.policy.units != "ignored":
            left, right = read_unit(answer_unit), read_unit(gold_unit)
            if left.measures != right.measures:
                return False
            if left.factor != right.factor:  # convert the answer to the gold's unit
                ratio = left.factor / right.factor
                a = rf"\frac{{{ratio.numerator}}}{{{ratio.denominator}}} \cdot ({a})"
        if self.policy.units == "required" and gold_unit and not answer_unit:
            return False
        answer_number, gold_number = number_in(a), number_in(g)
        if answer_number and gold_number:
            return numbers_equal(answer_number, gold_number, self.policy)
        answer_tree, gold_tree = tree_of(a, self.policy.log), tree_of(g, self.policy.log)
        if answer_tree and gold_tree:
            return self._trees(answer_tree, gold_tree)
        return self._with_worker(a, g)

    def _trees(self, answer: Node, gold: Node) -> bool:
        return bool(same_value(answer, gold, self.policy, self.comparer.trees))

    def _with_worker(self, answer: str, gold: str) -> bool:
        """Compare sums, integrals, limits, matrices and inequalities that no other layer can read."""
        if not (wants_worker(answer) or wants_worker(gold)) or too_costly(answer) or too_costly(gold):
            return False
        return bool(self.comparer.latex(answer, gold))


def _consistent(left: float | None, right: float | None, right_text: str, sign: str) -> bool:
    """Return whether two neighbouring sides of a chain agree: exactly for =, to the digits written for \\approx."""
    if left is None or right is None:
        return True
    digits = len(right_text.partition(".")[2]) if re.fullmatch(r"-?\d+\.?\d*", right_text) else 9
    if sign == "~":
        return abs(left - right) <= 0.5000001 * 10.0**-digits  # half a unit of the last digit, plus float error
    return abs(left - right) <= 1e-9 * max(1.0, abs(left))
