r"""Which gold answers can be used: ``check_gold`` runs over a task, rows or texts, and lists those that cannot.

A gold is unusable when it is empty, when it is not equal to itself inside a box, when it is beyond the cost gate, when
its number has no value (such as 1/0), or when no layer reads it, so that only a letter-for-letter copy would be right.
Only the cheap layers are asked, so that the answer does not depend on what is installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from marft_envs.mathematics.grader import special_answers
from marft_envs.mathematics.grader.answer_extraction import extract
from marft_envs.mathematics.grader.equality import MAX_CHARS
from marft_envs.mathematics.grader.input_limits import too_costly, wants_worker
from marft_envs.mathematics.grader.normalization import comparison_key, normalize
from marft_envs.mathematics.grader.parse_answer import has_value, is_readable
from marft_envs.task import Problem, Task


@dataclass(frozen=True, slots=True)
class BadGold:
    """index: of the problem or row. gold: as given. reason: why it cannot be used."""

    index: int
    gold: Any
    reason: str


def check_gold(source: Task | Iterable[Any], *, limit: int | None = None) -> list[BadGold]:
    """The golds of a task, or of problems, mappings with "gold" or "answer", or texts, that cannot be used.

    limit: look at so many problems at most; needed for a task without end.
    """
    found = []
    for index, gold in enumerate(_golds(source, limit)):
        if limit is not None and index >= limit:
            break
        reason = why_unusable(gold)
        if reason:
            found.append(BadGold(index, gold, reason))
    return found


def why_unusable(gold: Any) -> str:
    """The reason, "" for a usable gold."""
    if not isinstance(gold, str):
        return f"the gold answer is of type {type(gold).__name__}, not a text"
    if not gold.strip():
        return "the gold answer is empty"
    if len(gold) > MAX_CHARS:
        return f"the gold answer is longer than {MAX_CHARS} characters"
    candidate, why_not = extract(rf"\boxed{{{gold}}}")
    if comparison_key(candidate) != comparison_key(gold):
        return f"the gold answer is not equal to itself in a box{f' ({why_not})' if why_not else ''}"
    cleaned = normalize(gold)
    if not cleaned:
        return "the gold answer is empty"
    if not is_readable(cleaned):
        if not wants_worker(cleaned):
            return "no layer reads the gold answer"
        cost = too_costly(cleaned)
        return f"the gold answer is too costly: {cost}" if cost else ""
    return "" if has_value(cleaned) or special_answers.words_of(cleaned) else "the gold answer has no value"


def _golds(source: Task | Iterable[Any], limit: int | None) -> Iterable[Any]:
    if isinstance(source, Task):
        size = source.size if limit is None else limit if source.size is None else min(limit, source.size)
        if size is None:
            raise ValueError(f"limit=None: expected a number, because {source.name} has no end")
        for index in range(size):
            gold = source.problem(index).gold
            yield from gold.values() if isinstance(gold, dict) else (gold,)
        return
    for row in source:
        if isinstance(row, Problem):
            yield row.gold
        elif isinstance(row, dict):
            yield row["gold"] if "gold" in row else row.get("answer")
        else:
            yield row
