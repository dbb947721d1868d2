r"""Is an answer equal to the gold? Layers, cheapest first; each decides what it understands and leaves the rest.

1. The same text, after ``notation.normalize``.
2. Two numbers: exact fractions, with percent signs and units (``number``, ``units``).
3. Choices, times, ratios, numerals in a base, words (``special``).
4. The outer shape: matrices, lists, tuples, sets, intervals and inequalities, by parts (``structure``, ``regions``).
5. Equations and names: x = 5 is 5; 2x + 4y = 3 is y = -x/2 + 3/4; a working such as 2 + 3 = 5 answers 5.
6. Two expressions by their values (``expression``): exact modulo primes, by floats, by 60 digits.
7. What is left is asked of the symbolic worker, through ``ask``; a text beyond the cost gate never is.

What is open to choice is a field of ``GradingPolicy``. Not open: nothing is rounded unless asked for; a single letter
keeps its case; words are compared as words, never as products of letters; 1,000 and 1 000 are one thousand, 1.000 is
one; \approx counts where its right side is the rounded left side; numbers of more than 10,000 digits are texts.
"""

from __future__ import annotations

import re
from typing import Protocol

from marft_envs.mathematics.grader import special_answers
from marft_envs.mathematics.grader.expression_equality import number_of, proportional, same_value
from marft_envs.mathematics.grader.grading_policy import DEFAULT_POLICY, GradingPolicy
from marft_envs.mathematics.grader.input_limits import too_costly, wants_worker
from marft_envs.mathematics.grader.intervals import is_plain_pair, read_intervals, same_intervals
from marft_envs.mathematics.grader.normalization import comparison_key, normalize, unwrap_text
from marft_envs.mathematics.grader.parse_answer import (
    MAX_LEVELS,
    NAME,
    PLUS_MINUS,
    is_vector,
    listed,
    number_in,
    plain,
    tree_of,
    united,
    without_unit,
)
from marft_envs.mathematics.grader.quantity_equality import numbers_equal, with_currencies
from marft_envs.mathematics.grader.shape import Shape, shape_of
from marft_envs.mathematics.grader.tree_value import Node
from marft_envs.mathematics.grader.units import read_unit

MAX_CHARS = 4_000  # beyond it only numbers and equal texts

_INTEGER = re.compile(r"-?[0-9]{1,600}+")
_PHRASE = re.compile(r"\\text\{\s?(?:the )?(?:final )?answer\s?(?:is)?\s?:?\s?\}\s?", re.IGNORECASE)


class Ask(Protocol):
    """The symbolic worker: whether two trees, or two texts, are equal; None where it cannot tell."""

    def trees(self, answer: Node, gold: Node) -> bool | None: ...
    def texts(self, answer: str, gold: str) -> bool | None: ...


class Nobody:
    """Asks nobody: what the cheap layers leave is open."""

    def trees(self, answer: Node, gold: Node) -> bool | None:
        return None

    def texts(self, answer: str, gold: str) -> bool | None:
        return None


def equal(answer: str, gold: str, policy: GradingPolicy = DEFAULT_POLICY, ask: Ask | None = None) -> bool:
    """Whether ``answer`` says what ``gold`` says, under the policy. What nobody can tell is not equal."""
    if _INTEGER.fullmatch(answer) and _INTEGER.fullmatch(gold) and not policy.rounding:
        return int(answer) == int(gold)
    answer, gold = with_currencies(answer, gold)
    if comparison_key(answer) == comparison_key(gold):
        return True
    answer, gold = normalize(answer), normalize(gold)
    if r"\text" in answer:
        answer = normalize(_PHRASE.sub("", answer, count=1))
    try:
        return _Comparison(policy, ask or Nobody()).same(answer, gold)
    except RecursionError:  # little stack was left to begin with
        return False


class _Comparison:
    """One comparison: the policy and the worker; ``same`` is called again for the parts of a shape."""

    def __init__(self, policy: GradingPolicy, ask: Ask) -> None:
        self.policy = policy
        self.ask = ask
        self.level = 0

    def same(self, answer: str, gold: str) -> bool:
        """Equality of two cleaned texts."""
        if comparison_key(answer) == comparison_key(gold):
            return True
        wanted = number_in(gold)
        given = number_in(answer)
        if wanted is not None and given is not None:
            return numbers_equal(given, wanted, self.policy)
        if not answer or max(len(answer), len(gold)) > MAX_CHARS or self.level >= MAX_LEVELS:
            return False
        self.level += 1
        try:
            decided = self._special(answer, gold)
            return self._shapes(plain(answer), plain(gold)) if decided is None else decided
        finally:
            self.level -= 1

    def _special(self, answer: str, gold: str) -> bool | None:
        """Choices, times, ratios, numerals and words; None where the gold is none of these."""
        choice = special_answers.read_choice(gold)
        if choice and choice[0] in gold:  # a capital: (a) is more likely a variable
            return self._choices(answer, choice)
        time = special_answers.read_time(gold)
        if time:
            given = special_answers.read_time(answer)
            return given is not None and special_answers.same_time(given, time)
        numeral = special_answers.read_numeral(gold)
        if numeral:
            other = special_answers.read_numeral(answer)
            bare = other is None and self.policy.bases == "optional" and answer.lstrip("0").upper()
            return other == numeral if other else bare == numeral.digits
        ratio = special_answers.read_ratio(gold) if "{" not in gold or r"\text" in gold else None
        if ratio:
            return self._ratios(answer, ratio)
        value = number_in(gold) if ":" in answer and self.policy.ratios == "reduced" else None
        if value is not None and not value.unit:
            terms = special_answers.read_ratio(answer)
            return terms is not None and special_answers.ratio_value(terms) == value.value
        return self._words(answer, gold)

    def _choices(self, answer: str, gold: tuple[str, str]) -> bool | None:
        """The letters decide; a letter alone may also be a variable or a point, then the answer is not a choice."""
        given = special_answers.read_choice(answer)
        if given is None:
            return None if not gold[1] and len(answer) > 1 else False
        return given[0] == gold[0] and (not given[1] or not gold[1] or self.same(given[1], gold[1]))

    def _ratios(self, answer: str, gold: list[str]) -> bool:
        given = special_answers.read_ratio(answer)
        if self.policy.ratios == "written":
            return given is not None and [comparison_key(x) for x in given] == [comparison_key(x) for x in gold]
        if given is None:
            number = number_in(answer)
            return number is not None and not number.unit and number.value == special_answers.ratio_value(gold)
        verdict = special_answers.same_ratio(given, gold)
        if verdict is None:
            verdict = len(given) == len(gold) and all(map(self.same, given, gold))
        return verdict

    def _words(self, answer: str, gold: str) -> bool | None:
        """Words are equal as words, or as a list of words in any order."""
        wanted_key = special_answers.word_key(gold)
        if wanted_key in ("∅", "undefined") or special_answers.word_key(answer) == "∅":
            return special_answers.word_key(answer) == wanted_key
        if not special_answers.words_of(gold) or read_intervals(gold) or tree_of(without_unit(gold)[0]):
            return None
        if any(c in gold for c in "=<>\\^_") and not gold.startswith(r"\text"):
            return None
        if special_answers.word_key(answer) == wanted_key:
            return True
        wanted, given = shape_of(unwrap_text(gold).strip()), shape_of(unwrap_text(answer).strip())
        if wanted.kind != "list" or given.kind != "list":
            return None if wanted.kind == "list" and given.kind == "set" else False
        keys = [[special_answers.word_key(part) for part in shape.parts] for shape in (given, wanted)]
        return keys[0] == keys[1] or (self.policy.lists == "free" and sorted(keys[0]) == sorted(keys[1]))

    def _shapes(self, answer: str, gold: str) -> bool:
        a, g = shape_of(answer), shape_of(gold)
        if g.kind == "matrix" and a.kind == "relation" and a.signs == ("=",) and NAME.fullmatch(a.parts[0]):
            a = shape_of(a.parts[1])
        if "matrix" in (a.kind, g.kind):
            return self._matrices(a, g) if is_vector(a) and is_vector(g) else self._texts(answer, gold)
        decided = self._regions(answer, gold, a, g)
        if decided is not None:
            return decided
        if PLUS_MINUS.search(answer) or PLUS_MINUS.search(gold):
            a, g = listed(a), listed(g)
        if g.kind == "union" or a.kind == "union":
            a, g = united(a), united(g)
        if {a.kind, g.kind} & {"list", "tuple", "set"}:
            return self._several(a, g)
        if "relation" in (a.kind, g.kind):
            return self._relations(answer, gold, a, g)
        return self._single(answer, gold)

    def _matrices(self, a: Shape, g: Shape) -> bool:
        if a.brackets in ("||", "") and g.brackets in ("||", "") and a.brackets != g.brackets:
            return False  # a determinant is no matrix
        if a.kind == g.kind and a.columns != g.columns:
            return False
        return len(a.parts) == len(g.parts) and all(map(self.same, a.parts, g.parts))

    def _regions(self, answer: str, gold: str, a: Shape, g: Shape) -> bool | None:
        """Intervals, unions and inequalities; two plain pairs are compared as pairs."""
        kinds = {a.kind, g.kind}
        line = any(r"\mathbb" in text or "all real" in text for text in (answer, gold))
        if not line and ((is_plain_pair(a) and is_plain_pair(g)) or not kinds & {"union", "relation", "tuple", "list"}):
            return None
        if kinds == {"relation"} and "=" in a.signs + g.signs:
            return None
        wanted = read_intervals(gold)
        given = read_intervals(answer) if wanted else None
        if wanted is None or given is None:
            return None
        if is_plain_pair(g) and g.parts[0] and g.kind == "tuple" and a.kind == "list":
            return None
        return same_intervals(given, wanted, self._nodes)

    def _several(self, a: Shape, g: Shape) -> bool:
        """Lists, tuples and sets. Lists and sets have no order, unless the policy says so; sets have no repetition."""
        if a.kind == "one" and len(g.parts) == 1 and g.kind == "set":
            return self.same(a.parts[0], g.parts[0])
        if a.kind not in ("list", "tuple", "set"):
            a = Shape("list", a.parts) if a.kind == "one" else a
        ordered = "tuple" in (a.kind, g.kind) or self.policy.lists == "given"
        if a.kind != g.kind and "tuple" in (a.kind, g.kind):
            brackets = a.brackets + g.brackets
            if self.policy.tuples == "strict" or "set" in (a.kind, g.kind) or brackets not in ("()", "[]"):
                return False
        if a.kind == g.kind == "tuple" and a.brackets != g.brackets:
            return False
        if a.kind == "relation":
            return False
        given, wanted = (self._distinct(a.parts), self._distinct(g.parts)) if g.kind == "set" else (a.parts, g.parts)
        if len(given) != len(wanted):
            return False
        return all(map(self.same, given, wanted)) if ordered else self._matched(list(given), list(wanted))

    def _distinct(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple({comparison_key(part): part for part in parts}.values())

    def _matched(self, given: list[str], wanted: list[str]) -> bool:
        """Whether each wanted part has a given part of its own."""
        for part in wanted:
            found = next((i for i, other in enumerate(given) if self.same(other, part)), None)
            if found is None:
                return False
            given.pop(found)
        return True

    def _relations(self, answer: str, gold: str, a: Shape, g: Shape) -> bool:
        if set(a.signs + g.signs) <= {"=", "~"}:
            if g.kind == "one":
                return self._chain(a, gold)
            if a.kind == "one":
                return g.signs == ("=",) and bool(NAME.fullmatch(g.parts[0])) and self.same(answer, g.parts[1])
            return self._equations(a, g)
        if "in" in a.signs + g.signs:
            return (
                self.same(a.parts[-1], g.parts[-1])
                if (a.signs, g.signs) != (("in",), ("in",))
                else (a.parts[0] == g.parts[0] and self.same(a.parts[1], g.parts[1]))
            )
        return self._texts(answer, gold)

    def _chain(self, a: Shape, gold: str) -> bool:
        """x = 5, 2 + 3 = 5, A = pi r^2 = 9 pi and sqrt(2) ~ 1.414: all constant steps must agree."""
        parts = list(a.parts)
        named = NAME.fullmatch(parts[0]) and number_in(parts[0]) is None and a.signs[0] == "="
        steps, signs = (parts[1:], a.signs[1:]) if named else (parts, a.signs)
        if not all(steps):
            return False
        values = [number_of(node) if (node := tree_of(without_unit(step)[0])) else None for step in steps]
        if not named and None in values[:-1]:
            return False
        if not all(_consistent(*pair) for pair in zip(values, values[1:], steps[1:], signs, strict=False)):
            return False
        last = next((i for i, sign in enumerate(signs) if sign == "~"), len(steps) - 1)
        return self.same(steps[last], gold) or (last < len(steps) - 1 and self.same(steps[-1], gold))

    def _equations(self, a: Shape, g: Shape) -> bool:
        """The same name and value, or the same equation up to a factor."""
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
        return self._texts(" = ".join(a.parts), " = ".join(g.parts))

    def _single(self, answer: str, gold: str) -> bool:
        """One expression each, with what is left of units."""
        a, given = without_unit(answer)
        g, wanted = without_unit(gold)
        if given and wanted and self.policy.units != "ignored":
            left, right = read_unit(given), read_unit(wanted)
            if left.measures != right.measures:
                return False
            if left.factor != right.factor:
                ratio = left.factor / right.factor
                a = rf"\frac{{{ratio.numerator}}}{{{ratio.denominator}}} \cdot ({a})"
        if self.policy.units == "required" and wanted and not given:
            return False
        left_number, right_number = number_in(a), number_in(g)
        if left_number and right_number:
            return numbers_equal(left_number, right_number, self.policy)
        left_node, right_node = tree_of(a, self.policy.log), tree_of(g, self.policy.log)
        if left_node and right_node:
            return self._nodes(left_node, right_node)
        return self._texts(a, g)

    def _nodes(self, answer: Node, gold: Node) -> bool:
        return bool(same_value(answer, gold, self.policy, self.ask.trees))

    def _texts(self, answer: str, gold: str) -> bool:
        """The last layer, for sums, integrals, limits, matrices and inequalities that no layer before could read."""
        if not (wants_worker(answer) or wants_worker(gold)) or too_costly(answer) or too_costly(gold):
            return False
        return bool(self.ask.texts(answer, gold))


def _consistent(left: float | None, right: float | None, written: str, sign: str) -> bool:
    """Whether two neighbours of a chain agree: exactly for =, to the digits written for an approximation."""
    if left is None or right is None:
        return True
    digits = len(written.partition(".")[2]) if re.fullmatch(r"-?\d+\.?\d*", written) else 9
    if sign == "~":
        return abs(left - right) <= 0.5000001 * 10.0**-digits
    return abs(left - right) <= 1e-9 * max(1.0, abs(left))
