r"""Functions that are defined by cases: the rows of \begin{cases} in any order, each a value and its condition."""

from __future__ import annotations

import re

from marft_envs.mathematics.grader.decision import Decision, Pairs, all_equal, different, unknown
from marft_envs.mathematics.grader.named_values import is_label
from marft_envs.mathematics.grader.normalization import normalize

_CASES = re.compile(
    r"(?:(?P<name>[^=]{1,40})=\s?)?\\begin\s?\{cases\}(?P<body>(?:(?!\\begin).)*)\\end\s?\{cases\}", re.DOTALL
)
_ROW_END = re.compile(r"\\cr(?![A-Za-z])")
_IF = re.compile(r"\\text\s?\{\s?,?\s?(?:if|when|for|where)\s?\}\s?|(?:if|when|for|where)\s")
_OTHERWISE = re.compile(r"(?:\\text\s?\{)?\s?(?:otherwise|else|elsewhere|in other cases)\.?\s?\}?")


def compare_piecewise(pairs: Pairs, answer: str, gold: str) -> Decision | None:
    """Compare two functions that are defined by cases; None if one of the strings is not one."""
    a, g = _read(answer), _read(gold)
    if a is None or g is None:
        return None
    if len(a) != len(g):
        return unknown("the numbers of cases are different")
    left = list(a)
    undecided = None
    for value, condition in g:
        for index, (other_value, other_condition) in enumerate(left):
            same = _compare_conditions(pairs, other_condition, condition)
            if same.equal:
                same = pairs.same(other_value, value)
                if not same.equal:
                    return same
                left.pop(index)
                break
            undecided = same if same.equal is None else undecided
        else:
            return undecided or different("a condition of the gold is not in the answer")
    return all_equal(())


def _compare_conditions(pairs: Pairs, answer: str, gold: str) -> Decision:
    if not answer or not gold:
        return all_equal(()) if answer == gold else unknown("the remaining cases are compared with a condition")
    return pairs.same(answer, gold)


def _read(text: str) -> list[tuple[str, str]] | None:
    """Return the pairs (value, condition); the condition of the remaining cases is ""."""
    match = _CASES.fullmatch(text.strip())
    if match is None or (match["name"] and not is_label(match["name"])):
        return None
    rows = [row.split("&") for row in _ROW_END.split(match["body"]) if row.strip()]
    if not rows or any(len(row) != 2 for row in rows):
        return None
    return [(normalize(value), _condition(condition)) for value, condition in rows]


def _condition(text: str) -> str:
    text = normalize(text)
    return "" if _OTHERWISE.fullmatch(text) else normalize(_IF.sub("", text, count=1))
