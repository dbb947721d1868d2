"""Correct replies, garbage replies, and copies of a task with another gold or a broken grader."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from marft_envs.task import UNLIMITED, Problem, Task
from marft_envs.testing.checking import NotChecked, fail
from marft_envs.verdict import Verdict

GARBAGE = (
    "", " ", "\n\n\t", "\x00", "?!", "\\boxed{", "\\boxed{}", "}}}}{{{{", "<answer>", "####", "answer:",
    "Ceci n'est pas une réponse", "日本語の文", "\U0001f600" * 9, "\u202egnihton\u202c", "\ud800", "a\udfff b",
    "%s {0} %(x)s", "' OR 1=1 --", "blah " * 40_000,
)  # fmt: skip
"""Replies that are correct for no problem: empty, broken markup, other scripts, lone surrogates, very long."""

_SEARCHED_PROBLEMS = 50


def correct_reply(task: Task, problem: Problem, prefix: str = "") -> str:
    """Return a reply that ``task.grade`` grades as CORRECT.

    Args:
        task: The task.
        problem: The problem.
        prefix: The role's reply prefix, which the environment writes before the reply.

    Raises:
        ConformanceError: None of the candidates is correct; the message has the verdict on the first.
    """
    verdicts = {text: verdict_of(task, prefix + text, problem) for text in _candidates(task, problem)}
    for text, verdict in verdicts.items():
        if verdict.score == 1.0:
            return text
    first, verdict = next(iter(verdicts.items()))
    gold = f"the gold {problem.gold!r:.80} of problem {problem.index}"
    graded = f"{prefix + first!r:.80} is {verdict.outcome}"
    if isinstance(problem.gold, (int, float)):
        kind = type(problem.gold).__name__
        fail(
            f"{gold} is of type {kind}, and the reply {graded}; expected a string as gold, or a grade() that compares "
            f"the reply with str(gold)"
        )
    fail(
        f"no form of {gold} is a correct reply ({graded}); expected score 1, or a method "
        "reference_answer(problem) -> str of the task"
    )


def problem_of(task: Task, index: int) -> Problem:
    """Return ``task.problem(index)``. Raise ConformanceError with the index and the size if it raises."""
    try:
        return task.problem(index)
    except Exception as fault:  # a task may raise anything
        sentence = f"problem({index}) raised {type(fault).__name__}: {fault!s:.200}"
        if task.size is None:
            fail(
                f"{sentence}; size is None, which means unlimited; expected a Problem for every index (if the task has "
                "a limited number of problems, set size to it)"
            )
        fail(f"{sentence}; size is {task.size!r}; expected a Problem for every index below size")


def last_index(task: Task) -> int:
    """Return the index of the last problem."""
    return (UNLIMITED if task.size is None else task.size) - 1


def verdict_of(task: Task, text: str, problem: Problem) -> Verdict:
    """Return the verdict of ``task.grade`` for a reply. Raise ConformanceError if it is not a Verdict."""
    verdict = task.grade(text, problem)
    if not isinstance(verdict, Verdict):
        fail(
            f"{type(task).__name__}.grade returned {verdict!r:.60} for the reply {text!r:.60}; expected a Verdict, "
            "such as Verdict.correct() or Verdict.wrong('why')"
        )
    return verdict


def _candidates(task: Task, problem: Problem) -> list[str]:
    reference = getattr(task, "reference_answer", None)
    if callable(reference):
        return [reference(problem)]
    gold = str(problem.gold)
    return [gold, f" {gold}", f"\\boxed{{{gold}}}", f" \\boxed{{{gold}}}"]


def correct_replies(game: Any) -> dict[str, str]:
    """Return a correct reply for each answering agent of a game that has been reset."""
    problem, answering = game.problem, game.team.answering
    gold_per_agent = isinstance(problem.gold, Mapping) and set(answering) <= set(problem.gold)
    return {
        agent: correct_reply(
            game.task,
            replace(problem, gold=problem.gold[agent]) if gold_per_agent else problem,
            game.team.roles[agent].reply_prefix,
        )
        for agent in answering
    }


def other_gold(task: Task, problem: Problem) -> Any:
    """Return the gold of another problem of the task that differs from this problem's gold.

    Raises:
        NotChecked: There is none.
    """
    count = _SEARCHED_PROBLEMS if task.size is None else min(task.size, _SEARCHED_PROBLEMS)
    for index in range(count):
        gold = problem_of(task, index).gold
        if gold != problem.gold:
            return gold
    if isinstance(problem.gold, str):
        return problem.gold + "0"
    raise NotChecked(f"the first {count} problems all have the gold {problem.gold!r:.80}, so it cannot be swapped")


def with_swapped_gold(task: Task) -> Task:
    """Return a copy of the task in which every problem has another gold."""

    def problem(index: int) -> Problem:
        item = task.problem(index)
        return replace(item, gold=other_gold(task, item))

    return _with_method(task, "problem", problem)


def with_broken_grader(task: Task) -> Task:
    """Return a copy of the task whose grader raises OSError."""

    def grade(answer: str, problem: Problem) -> Any:
        raise OSError("the check broke the grader on purpose")

    return _with_method(task, "grade", grade)


def _with_method(task: Task, method: str, function: Callable[..., Any]) -> Task:
    twin = copy.copy(task)
    try:
        object.__setattr__(twin, method, function)
    except AttributeError as fault:
        raise NotChecked(f"{type(task).__name__} has __slots__, so its {method} cannot be replaced") from fault
    return twin
