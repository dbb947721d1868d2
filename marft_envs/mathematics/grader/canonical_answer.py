"""The answer that a reply gives, in a form in which equal answers are equal strings: what agents agree about."""

from __future__ import annotations

from marft_envs.mathematics.grader.answer_extraction import extract, final_part
from marft_envs.mathematics.grader.number import parse_number


def canonical_answer(reply: str) -> str | None:
    """The reply's marked answer, or the reply itself where it is one number; None without one.

    Numbers come in lowest terms with percent sign and unit ("0.50" and "1/2" are both "1/2"), other answers with their
    spaces made single: agreement is by exact value or by the letter, not by symbolic equality.
    """
    candidate = extract(reply)[0]
    if not candidate:
        text = final_part(reply).strip()
        candidate = text if parse_number(text) is not None else ""
    if not candidate:
        return None
    number = parse_number(candidate)
    if number is None:
        return " ".join(candidate.split())
    return f"{number.value}{'%' if number.percent else ''} {number.unit}".strip()
