"""Equality of choices, times, ratios, numerals in a base, and words.

The gold decides how a pair is read: the answer "C" is a choice if the gold is one, else a variable.
"""

from __future__ import annotations

from itertools import pairwise

from marft_envs.mathematics.grader import special_answers
from marft_envs.mathematics.grader.congruences import read_congruence, same_congruence
from marft_envs.mathematics.grader.decision import EQUAL, Decision, Pairs, all_equal, decision, different
from marft_envs.mathematics.grader.named_ratios import in_order, read_named_ratio
from marft_envs.mathematics.grader.named_values import is_phrase
from marft_envs.mathematics.grader.normalization import comparison_key, unwrap_text
from marft_envs.mathematics.grader.parse_answer import number_in, tree_of, without_unit
from marft_envs.mathematics.grader.real_intervals import read_intervals
from marft_envs.mathematics.grader.shape import shape_of


def compare_special(pairs: Pairs, answer: str, gold: str) -> Decision | None:
    """Compare choices, times, ratios, numerals and words; None if the gold is none of these."""
    if "mod" in gold and (congruence := read_congruence(gold)) is not None:
        found = read_congruence(answer)
        same = found is not None and same_congruence(found, congruence)
        return decision(same, "the congruences are different")
    if "=" in answer or "=" in gold:
        named = _compare_named_ratios(pairs, answer, gold)
        if named is not None:
            return named
    choice = special_answers.read_choice(gold)
    if choice and choice[0] in gold:  # a capital letter; (a) is more likely a variable in parentheses
        return _compare_choices(pairs, answer, choice)
    gold_time = special_answers.read_time(gold)
    if gold_time:
        answer_time = special_answers.read_time(answer)
        return decision(
            answer_time is not None and special_answers.same_time(answer_time, gold_time), "the times are different"
        )
    gold_numeral = special_answers.read_numeral(gold)
    if gold_numeral:
        answer_numeral = special_answers.read_numeral(answer)
        digits = answer_numeral is None and pairs.policy.bases == "optional" and answer.lstrip("0").upper()
        same = answer_numeral == gold_numeral if answer_numeral else digits == gold_numeral.digits
        return decision(same, "the numerals are different")
    # Braces mean LaTeX, in which a colon belongs to a set or a function, as in \{x : x > 3\}.
    ratio = special_answers.read_ratio(gold) if "{" not in gold or r"\text" in gold else None
    if ratio:
        return _compare_ratios(pairs, answer, ratio)
    value = number_in(gold) if ":" in answer and pairs.policy.ratios == "reduced" else None
    if value is not None and not value.unit:
        terms = special_answers.read_ratio(answer)
        same = terms is not None and special_answers.ratio_value(terms) == value.value
        return decision(same, "the ratio has another value")
    return _compare_words(pairs, answer, gold)


def _compare_choices(pairs: Pairs, answer: str, gold: tuple[str, str]) -> Decision | None:
    """Compare an answer with a choice (letter, text of the option).

    The letters must be equal, and so must the wording of the options if both are present. A gold that is a letter
    alone may also be a variable or a point; if the answer is not a choice, a later layer decides.
    """
    choice = special_answers.read_choice(answer)
    if choice is None:
        return None if not gold[1] and len(answer) > 1 else different("the answer is not a choice")
    if choice[0] != gold[0]:
        return different("the choices are different")
    return pairs.same(choice[1], gold[1]) if choice[1] and gold[1] else EQUAL


def _compare_ratios(pairs: Pairs, answer: str, gold: list[str]) -> Decision:
    """Compare an answer, a ratio or a number, with the terms of a gold ratio."""
    terms = special_answers.read_ratio(answer)
    if pairs.policy.ratios == "written":
        same = terms is not None and [comparison_key(x) for x in terms] == [comparison_key(x) for x in gold]
        return decision(same, "the terms of the ratios are different")
    if terms is None:
        number = number_in(answer)  # an integer does not answer 10 to 1
        fraction = number is not None and not number.unit and number.value.denominator != 1
        same = number is not None and fraction and number.value == special_answers.ratio_value(gold)
        return decision(same, "the ratio has another value")
    equal = special_answers.same_ratio(terms, gold)
    if equal is None and len(terms) == len(gold):  # a term is an expression
        return all_equal(map(pairs.same, terms, gold))
    return decision(bool(equal), "the ratios are different")


def _compare_named_ratios(pairs: Pairs, answer: str, gold: str) -> Decision | None:
    """Compare two ratios of which at least one names its terms; None if neither is written with a colon."""
    a, g = read_named_ratio(answer), read_named_ratio(gold)
    if ":" not in answer + gold or (a is None and g is None):
        return None
    value = answer
    if a is not None:
        links = all_equal(_compare_values(pairs, right, left) for left, right in pairwise(a.values))
        if not links.equal:
            return links
        ordered = in_order(a, g.names if g else a.names)
        if ordered is None:
            return different("the names of the ratios are different")
        value = ordered
    return _compare_values(pairs, value, g.values[-1] if g else gold)


def _compare_values(pairs: Pairs, answer: str, gold: str) -> Decision:
    """Compare the values of two ratios. They are no times of day: 18:28 equals 9:14."""
    terms = special_answers.read_ratio(gold)
    return _compare_ratios(pairs, answer, terms) if terms else pairs.same(answer, gold)


def _compare_words(pairs: Pairs, answer: str, gold: str) -> Decision | None:
    """Compare words, or lists of words; None if the gold is mathematics.

    This layer comes before expressions because single letters multiply: "seat" and "east" are equal as products.
    """
    other_words = "the words are different"
    if "=" in gold and is_phrase(gold.partition("=")[0]):  # Area = 12
        return None
    gold_key = special_answers.word_key(gold)
    if gold_key in ("∅", "undefined") or special_answers.word_key(answer) == "∅":
        return decision(special_answers.word_key(answer) == gold_key, other_words)
    if not special_answers.words_of(gold) or read_intervals(gold) or tree_of(without_unit(gold)[0]):
        return None
    if any(c in gold for c in "=<>\\^_") and not gold.startswith(r"\text"):
        return None
    if special_answers.word_key(answer) == gold_key:
        return EQUAL
    a, g = shape_of(unwrap_text(answer).strip()), shape_of(unwrap_text(gold).strip())
    if g.kind != "list" or a.kind != "list":
        return None if g.kind == "list" and a.kind == "set" else different(other_words)
    keys = [[special_answers.word_key(part) for part in shape.parts] for shape in (a, g)]
    unordered = pairs.policy.lists == "unordered"
    return decision(keys[0] == keys[1] or (unordered and sorted(keys[0]) == sorted(keys[1])), other_words)
