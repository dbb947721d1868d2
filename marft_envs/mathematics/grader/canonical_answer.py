"""The answer of a reply in a canonical form, for agreement between agents."""

from __future__ import annotations

from marft_envs.mathematics.grader.answer_extraction import extract, final_part
from marft_envs.mathematics.grader.number import parse_number


def canonical_answer(reply: str) -> str | None:
    """Return the answer of a reply as a string that is the same for equal numbers.

    A number is written in lowest terms with its percent sign and unit ("0.50" and "1/2" are both "1/2"). Of any other
    answer only the white space is normalized, so two such answers agree only if they are spelled alike.

    Args:
        reply: A whole reply. Without a marked answer, the reply itself is the answer if it is one number.

    Returns:
        The canonical answer, or None if the reply has none.
    """
    candidate = extract(reply)[0]
    if not candidate:
        whole = final_part(reply).strip()
        candidate = whole if parse_number(whole) is not None else ""
    if not candidate:
        return None
    number = parse_number(candidate)
    if number is None:
        return " ".join(candidate.split())
    return f"{number.value}{'%' if number.percent else ''} {number.unit}".strip()
