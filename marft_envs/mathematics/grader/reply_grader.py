r"""Grading of whole replies: find the answer, compare it with the gold, and separate faults from wrong answers."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, get_args

from marft_envs.mathematics.grader.answer_extraction import extract, final_part
from marft_envs.mathematics.grader.decision import unknown
from marft_envs.mathematics.grader.equality import compare
from marft_envs.mathematics.grader.grading_policy import DEFAULT_POLICY, GradingPolicy
from marft_envs.mathematics.grader.number import parse_number
from marft_envs.mathematics.grader.sample_points import Point
from marft_envs.mathematics.grader.symbolic.worker_pool import Comparison, WorkerFault, WorkerPool, shared_pool
from marft_envs.mathematics.grader.tree_value import Node
from marft_envs.verdict import Verdict

Unmarked = Literal["none", "whole"]

_OPERATION = re.compile(r"[\d)}\]]\s*(?:[-+*/^×·÷−–]|\\(?:times|cdot|div|pm)(?![a-z]))\s*[\d({\[\\]")
"""An operator between two operands."""
_faults: Counter[str] = Counter()
_faults_lock = threading.Lock()


class _NeedsWorker(Exception):
    """The comparison needs the symbolic worker and is postponed."""


class _LimitExceeded(Exception):
    """The answer exceeded the worker's time or memory."""


def grade(reply: str, gold: str, *, unmarked: Unmarked = "none", policy: GradingPolicy = DEFAULT_POLICY) -> Verdict:
    r"""Grade a whole reply against the gold answer. Safe to call from any thread, process or event loop.

    Args:
        reply: The whole reply. See ``answer_extraction`` for the marks of an answer.
        gold: The gold answer itself, without \boxed.
        unmarked: "none": an answer needs a mark (\boxed, <answer>, ####, "answer is"). "whole": a reply that is one
            number and nothing else, optionally with a full stop, is an answer, too.
        policy: The rules for when an answer counts as equal to the gold.

    Returns:
        A verdict with the outcome CORRECT, WRONG, NO_ANSWER or NOT_GRADED; never a partial score. An answer that
        exceeds the worker's time or memory is WRONG. NOT_GRADED reports a fault, which ``fault_counts`` counts: the
        gold alone exceeds the worker's time or memory, the comparison needs math-verify and it is not installed, the
        worker failed, or the machine is too busy for a comparison.

    Raises:
        TypeError: ``reply`` or ``gold`` is not a string.
        ValueError: ``gold`` is blank, or ``unmarked`` has a value that is not allowed.
    """
    _check_arguments(gold, unmarked)
    answer = _find_answer(reply, unmarked)
    return answer if isinstance(answer, Verdict) else _compare(answer, gold, policy, _UsesWorker(shared_pool()))


def grade_many(
    pairs: Iterable[tuple[str, str]], *, unmarked: Unmarked = "none", policy: GradingPolicy = DEFAULT_POLICY
) -> list[Verdict]:
    """Grade (reply, gold) pairs; comparisons that need the symbolic worker run in parallel.

    Args:
        pairs: Pairs of a whole reply and its gold answer.
        unmarked: See ``grade``.
        policy: See ``grade``.

    Returns:
        The verdicts, in the order of the pairs; each equals that of ``grade``.

    Raises:
        TypeError: A reply or gold is not a string.
        ValueError: A gold is blank, or ``unmarked`` has a value that is not allowed.
    """
    items = list(pairs)
    for _, gold in items:
        _check_arguments(gold, unmarked)
    verdicts: list[Verdict | None] = []
    postponed: list[tuple[int, str, str]] = []
    for index, (reply, gold) in enumerate(items):
        answer = _find_answer(reply, unmarked)
        try:
            verdicts.append(answer if isinstance(answer, Verdict) else _compare(answer, gold, policy, _Postpones()))
        except _NeedsWorker:
            verdicts.append(None)
            postponed.append((index, str(answer), gold))
    if postponed:
        with ThreadPoolExecutor(min(len(postponed), shared_pool().size)) as threads:
            graded = threads.map(lambda item: _compare(item[1], item[2], policy, _UsesWorker(shared_pool())), postponed)
            for (index, _, _), verdict in zip(postponed, graded, strict=True):
                verdicts[index] = verdict
    return [verdict for verdict in verdicts if verdict is not None]


def fault_counts() -> dict[str, int]:
    """Return how many verdicts of this process rest on no proof, by reason.

    These are the NOT_GRADED verdicts, and the WRONG ones of answers that no layer could compare with the gold, whose
    reasons begin with "nothing could decide".
    """
    with _faults_lock:
        return dict(_faults)


def is_number(gold: str) -> bool:
    """Return whether a gold answer is a number that is compared exactly, without the symbolic worker."""
    return parse_number(gold) is not None


class _Postpones:
    """A ``SymbolicComparer`` that postpones every comparison."""

    isolation = ""

    def trees(self, answer: Node, gold: Node, points: list[Point], digits: int) -> bool | None:
        raise _NeedsWorker

    def latex(self, answer: str, gold: str) -> bool | None:
        raise _NeedsWorker


class _UsesWorker:
    """A ``SymbolicComparer`` that uses the pool, with one time budget for all comparisons of a reply."""

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool
        self.remaining_s = pool.limit_s
        self.isolation = ""

    def trees(self, answer: Node, gold: Node, points: list[Point], digits: int) -> bool | None:
        return self._result(self.pool.compare_trees(answer, gold, points, digits, self.remaining_s))

    def latex(self, answer: str, gold: str) -> bool | None:
        return self._result(self.pool.compare_latex(answer, gold, self.remaining_s))

    def _result(self, comparison: Comparison) -> bool | None:
        self.isolation = comparison.isolation
        # A list can need several comparisons. Without a common budget, its length would multiply the time limit.
        used_before = self.remaining_s < self.pool.limit_s
        self.remaining_s = max(0.01, self.remaining_s - comparison.seconds)
        if comparison.status == "ok":
            return comparison.result
        if comparison.status == "starved":
            raise WorkerFault("the machine was too busy: the symbolic worker got too little CPU time to compare")
        effect = {
            "timeout": "needs more time than the symbolic worker has",
            "memory": "needs more memory than the symbolic worker has",
            "crashed": "crashes the symbolic worker",
        }[comparison.status]
        if comparison.phase == "gold" and not used_before:
            raise WorkerFault(f"the gold answer {effect}")
        # Not a fault: otherwise a policy could avoid a zero by writing an answer that cannot be evaluated.
        raise _LimitExceeded(f"the answer {effect}")


def _compare(answer: str, gold: str, policy: GradingPolicy, comparer: _UsesWorker | _Postpones) -> Verdict:
    try:
        found = compare(answer, gold, policy, comparer)
    except _LimitExceeded as error:
        _count(str(error))
        return Verdict.wrong(str(error), isolation=comparer.isolation)
    except _NeedsWorker:
        raise
    except WorkerFault as fault:
        _count(str(fault))
        return Verdict.not_graded(str(fault), isolation=comparer.isolation)
    except Exception as error:  # a fault of ours that an answer has found; NOT_GRADED would let it avoid a zero
        found = unknown(f"an internal error, {type(error).__name__}")
    if found.equal and policy.arithmetic == "evaluated" and is_number(gold) and _is_unevaluated(answer):
        return Verdict.wrong(f"the answer {_shortened(answer)} is not evaluated", isolation=comparer.isolation)
    if found.equal:
        return Verdict.correct(isolation=comparer.isolation)
    if found.equal is None:
        undecided = f"nothing could decide: {found.reason}"
        _count(undecided)
        reason = f"the answer {_shortened(answer)} is not shown to be equal to the gold; {undecided}"
        return Verdict.wrong(reason, isolation=comparer.isolation)
    reason = f"the answer {_shortened(answer)} is not equal to the gold: {found.reason}"
    return Verdict.wrong(reason, isolation=comparer.isolation)


def _count(fault: str) -> None:
    with _faults_lock:
        _faults[fault] += 1


def _is_unevaluated(answer: str) -> bool:
    """Return whether the last side of an answer, as in 3 + 9 or in x = 3 + 9, has an operation between two operands."""
    side = answer.rsplit("=", 1)[-1]
    return parse_number(side) is None and _OPERATION.search(side) is not None


def _find_answer(reply: str, unmarked: Unmarked) -> str | Verdict:
    """Return the answer of a reply, or the verdict NO_ANSWER."""
    answer, why_not = extract(reply)
    if not answer and unmarked == "whole":
        answer = _whole_number(reply)
    return answer or Verdict.no_answer(why_not)


def _check_arguments(gold: str, unmarked: str) -> None:
    if not isinstance(gold, str):
        raise TypeError(f"gold: got {type(gold).__name__}, expected str")
    if not gold.strip():
        raise ValueError(f"gold={gold!r}: expected an answer, got a blank string")
    if unmarked not in get_args(Unmarked):
        raise ValueError(f"unmarked={unmarked!r}: expected {' or '.join(map(repr, get_args(Unmarked)))}")


def _whole_number(reply: str) -> str:
    """Return the reply if it is one number without a unit, else ""."""
    text = final_part(reply).strip()
    number = parse_number(text)
    return text if number is not None and not number.unit else ""


def _shortened(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:57] + "...")


__all__ = ["Unmarked", "fault_counts", "grade", "grade_many", "is_number"]
