r"""Grading of mathematical replies: ``grade(reply, gold) -> Verdict``.

>>> from marft_envs.mathematics import grade
>>> grade(r"So \boxed{1{,}000}.", "1000").score
1.0
"""

from __future__ import annotations

from typing import Literal

from marft_envs.mathematics.answer import extract, final_part
from marft_envs.mathematics.equality import equal
from marft_envs.mathematics.number import parse_number
from marft_envs.verdict import Verdict

Unmarked = Literal["none", "whole"]

__all__ = ["Unmarked", "grade", "is_number"]


def grade(reply: str, gold: str, *, unmarked: Unmarked = "none") -> Verdict:
    r"""CORRECT, WRONG or NO_ANSWER for a whole reply; never NOT_GRADED, never a partial score.

    gold: the answer itself, without \boxed. unmarked: "none": an answer needs a mark (\boxed, <answer>, ####, "answer
    is"); "whole": a reply that as a whole is one number, with or without a full stop, counts too.
    """
    if not isinstance(gold, str):
        raise TypeError(f"gold: got {type(gold).__name__}, expected str")
    if not gold.strip():
        raise ValueError(f"gold={gold!r}: expected an answer, not an empty text")
    if unmarked not in ("none", "whole"):
        raise ValueError(f"unmarked={unmarked!r}: expected 'none' or 'whole'")
    candidate, why_not = extract(reply)
    if not candidate and unmarked == "whole":
        candidate = _whole_number(reply)
    if not candidate:
        return Verdict.no_answer(why_not)
    if equal(candidate, gold):
        return Verdict.correct()
    fault = "is not a number" if is_number(gold) and not is_number(candidate) else "is not equal to the gold answer"
    return Verdict.wrong(f"answer {_short(candidate)} {fault}")


def is_number(gold: str) -> bool:
    """Whether the exact comparison of numbers decides about ``gold``."""
    return parse_number(gold) is not None


def _whole_number(reply: str) -> str:
    """The reply when all of it is one number without a unit, else ""."""
    text = final_part(reply).strip()
    number = parse_number(text)
    return text if number is not None and not number.unit else ""


def _short(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:57] + "...")
