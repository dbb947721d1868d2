r"""From a whole reply to a verdict: find the answer, compare it, and keep faults apart from wrong answers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from marft_envs.mathematics.grader.answer_extraction import extract, final_part
from marft_envs.mathematics.grader.equality import equal
from marft_envs.mathematics.grader.grading_policy import DEFAULT_POLICY, GradingPolicy
from marft_envs.mathematics.grader.number import parse_number
from marft_envs.mathematics.grader.symbolic.pool import Answer, Symbolic, WorkerFault, shared_pool
from marft_envs.mathematics.grader.tree_value import Node
from marft_envs.verdict import Verdict

Unmarked = Literal["none", "whole"]

_faults: Counter[str] = Counter()
_faults_lock = threading.Lock()


class _Open(Exception):
    """Raised by an ``Ask`` that leaves the question for later."""


class _Wasteful(Exception):
    """The answer took all the time or memory that it was given."""


def grade(reply: str, gold: str, *, unmarked: Unmarked = "none", policy: GradingPolicy = DEFAULT_POLICY) -> Verdict:
    r"""CORRECT, WRONG, NO_ANSWER, or NOT_GRADED after a fault; never a partial score. From any thread or process.

    gold: the answer itself, without \boxed. unmarked: "none": an answer needs a mark (\boxed, <answer>, ####, "answer
    is"); "whole": a reply that as a whole is one number, with or without a full stop, counts too. policy: what counts
    as equal. An answer that uses up its time or memory is WRONG; a gold that does, a missing math-verify where it is
    needed, a broken worker and a machine too busy to compare are faults: NOT_GRADED, counted in ``fault_counts()``.
    """
    _check(gold, unmarked)
    found = _find(reply, unmarked)
    return found if isinstance(found, Verdict) else _verdict(found, gold, policy, _Worked(shared_pool()))


def grade_many(
    pairs: Iterable[tuple[str, str]], *, unmarked: Unmarked = "none", policy: GradingPolicy = DEFAULT_POLICY
) -> list[Verdict]:
    """The verdicts on (reply, gold) pairs, in order. What needs the symbolic worker is compared side by side."""
    items = list(pairs)
    for _, gold in items:
        _check(gold, unmarked)
    verdicts: list[Verdict | None] = []
    later: list[tuple[int, str, str]] = []
    for number, (reply, gold) in enumerate(items):
        found = _find(reply, unmarked)
        try:
            verdicts.append(found if isinstance(found, Verdict) else _verdict(found, gold, policy, _Later()))
        except _Open:
            verdicts.append(None)
            later.append((number, str(found), gold))
    if later:
        with ThreadPoolExecutor(min(len(later), shared_pool().size)) as threads:
            answered = threads.map(lambda item: _verdict(item[1], item[2], policy, _Worked(shared_pool())), later)
            for (number, _, _), verdict in zip(later, answered, strict=True):
                verdicts[number] = verdict
    return [verdict for verdict in verdicts if verdict is not None]


def fault_counts() -> dict[str, int]:
    """Reason -> NOT_GRADED verdicts that this process has given for it."""
    with _faults_lock:
        return dict(_faults)


def is_number(gold: str) -> bool:
    """Whether the exact comparison of numbers decides about ``gold``."""
    return parse_number(gold) is not None


class _Later:
    """An ``Ask`` that postpones."""

    isolation = ""

    def trees(self, answer: Node, gold: Node) -> bool | None:
        raise _Open

    def texts(self, answer: str, gold: str) -> bool | None:
        raise _Open


class _Worked:
    """An ``Ask`` that goes to the workers, with one budget of time for all questions about one reply."""

    def __init__(self, pool: Symbolic) -> None:
        self.pool = pool
        self.left_s = pool.limit_s
        self.isolation = ""

    def trees(self, answer: Node, gold: Node) -> bool | None:
        return self._judge(self.pool.ask("trees", answer, gold, self.left_s))

    def texts(self, answer: str, gold: str) -> bool | None:
        return self._judge(self.pool.ask("texts", answer, gold, self.left_s))

    def _judge(self, answer: Answer) -> bool | None:
        self.isolation = answer.isolation
        self.left_s = max(0.01, self.left_s - answer.seconds)
        if answer.status == "ok":
            return answer.result
        if answer.status == "starved":
            raise WorkerFault("the machine was too busy: the symbolic worker got too little CPU time to compare")
        spent = "time" if answer.status == "timeout" else "memory"
        if answer.phase == "gold":
            raise WorkerFault(f"the gold answer needs more {spent} than the symbolic worker has")
        raise _Wasteful(f"the answer needs more {spent} than the symbolic worker has")


def _verdict(candidate: str, gold: str, policy: GradingPolicy, ask: _Worked | _Later) -> Verdict:
    try:
        same = equal(candidate, gold, policy, ask)
    except _Wasteful as waste:
        return Verdict.wrong(str(waste), isolation=ask.isolation)
    except WorkerFault as fault:
        with _faults_lock:
            _faults[str(fault)] += 1
        return Verdict.not_graded(str(fault), isolation=ask.isolation)
    if same:
        return Verdict.correct(isolation=ask.isolation)
    return Verdict.wrong(f"answer {_short(candidate)} is not equal to the gold answer", isolation=ask.isolation)


def _find(reply: str, unmarked: Unmarked) -> str | Verdict:
    """The candidate answer, or NO_ANSWER."""
    candidate, why_not = extract(reply)
    if not candidate and unmarked == "whole":
        candidate = _whole_number(reply)
    return candidate or Verdict.no_answer(why_not)


def _check(gold: str, unmarked: str) -> None:
    if not isinstance(gold, str):
        raise TypeError(f"gold: got {type(gold).__name__}, expected str")
    if not gold.strip():
        raise ValueError(f"gold={gold!r}: expected an answer, not an empty text")
    if unmarked not in ("none", "whole"):
        raise ValueError(f"unmarked={unmarked!r}: expected 'none' or 'whole'")


def _whole_number(reply: str) -> str:
    """The reply when all of it is one number without a unit, else ""."""
    text = final_part(reply).strip()
    number = parse_number(text)
    return text if number is not None and not number.unit else ""


def _short(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:57] + "...")


__all__ = ["Unmarked", "fault_counts", "grade", "grade_many", "is_number"]
