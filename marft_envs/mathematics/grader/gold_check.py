r"""Validation of gold answers: ``check_gold`` lists those of a task, or of rows, that cannot be graded.

A gold is unusable if it is not a string, is empty or too long, is not equal to itself inside a box, exceeds the
limits of the symbolic worker, has no value (1/0, for example), or if no layer of the grader can read it, so that only
an identical string would be correct. The symbolic worker itself is not used, so the result does not depend on the
installed packages.
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
    """A gold answer that cannot be graded.

    Attributes:
        index: The index of the problem or row.
        gold: The gold answer.
        reason: Why it cannot be graded.
    """

    index: int
    gold: Any
    reason: str


def check_gold(source: Task | Iterable[Any], *, limit: int | None = None) -> list[BadGold]:
    """Return the gold answers that cannot be graded.

    Args:
        source: A task, or an iterable of problems, of mappings with the key "gold" or "answer", or of gold answers.
        limit: The largest number of problems to check; None for all. Required for a task without a size.

    Raises:
        ValueError: ``limit`` is None and the task has no size.
    """
    bad = []
    for index, gold in enumerate(_golds(source, limit)):
        if limit is not None and index >= limit:
            break
        reason = why_unusable(gold)
        if reason:
            bad.append(BadGold(index, gold, reason))
    return bad


def why_unusable(gold: Any) -> str:
    """Return the reason why a gold answer cannot be graded, or "" if it can."""
    if not isinstance(gold, str):
        return f"the gold answer is of type {type(gold).__name__}, expected a string"
    if not gold.strip():
        return "the gold answer is empty"
    if len(gold) > MAX_CHARS:
        return f"the gold answer is longer than {MAX_CHARS} characters"
    candidate, why_not = extract(rf"\boxed{{{gold}}}")
    if comparison_key(candidate) != comparison_key(gold):
        return f"the gold answer is not equal to itself in a box{f' ({why_not})' if why_not else ''}"
    normalized = normalize(gold)
    if not normalized:
        return "the gold answer is empty"
    if not is_readable(normalized):
        if not wants_worker(normalized):
            return "the grader cannot read the gold answer"
        cost = too_costly(normalized)
        return f"the gold answer is too costly: {cost}" if cost else ""
    return "" if has_value(normalized) or special_answers.words_of(normalized) else "the gold answer has no value"


def _golds(source: Task | Iterable[Any], limit: int | None) -> Iterable[Any]:
    if isinstance(source, Task):
        size = source.size if limit is None else limit if source.size is None else min(limit, source.size)
        if size is None:
            raise ValueError(f"limit=None: expected an integer, because the task {source.name} has no size")
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
