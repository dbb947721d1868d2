"""Right answers, wrong answers, and tasks whose gold is swapped or whose grader breaks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from marft_envs.task import Problem, Task
from marft_envs.testing.checking import NotChecked, fail
from marft_envs.verdict import Verdict

GARBAGE = (
    "", " ", "\n\n\t", "\x00", "?!", "\\boxed{", "\\boxed{}", "}}}}{{{{", "<answer>", "####", "answer:",
    "Ceci n'est pas une réponse", "日本語の文", "\U0001f600" * 9, "\u202egnihton\u202c", "\ud800", "a\udfff b",
    "%s {0} %(x)s", "' OR 1=1 --", "blah " * 40_000,
)  # fmt: skip
"""Replies that are a right answer to nothing: empty, broken markup, other scripts, lone surrogates, far too long."""

_SEARCH = 50


def right_answer(task: Task, problem: Problem, prefix: str = "") -> str:
    """A reply (to follow ``prefix``) that ``task.grade`` calls CORRECT. ConformanceError names what was tried."""
    tried = _candidates(task, problem)
    verdicts = {text: verdict_of(task, prefix + text, problem) for text in tried}
    for text, verdict in verdicts.items():
        if verdict.score == 1.0:
            return text
    outcomes = "; ".join(f"{prefix + text!r:.80} is {verdict!r:.120}" for text, verdict in verdicts.items())
    fail(
        f"no way of writing the gold {problem.gold!r:.80} of problem {problem.index} is a right answer ({outcomes}); "
        "expected score 1, or give the task a method reference_answer(problem) -> str"
    )


def verdict_of(task: Task, text: str, problem: Problem) -> Verdict:
    """What ``task.grade`` says of a reply. ConformanceError where that is no Verdict."""
    verdict = task.grade(text, problem)
    if not isinstance(verdict, Verdict):
        fail(
            f"{type(task).__name__}.grade returned {verdict!r:.60} for the reply {text!r:.60}; expected a Verdict, as "
            "Verdict.correct() or Verdict.wrong('why')"
        )
    return verdict


def _candidates(task: Task, problem: Problem) -> list[str]:
    reference = getattr(task, "reference_answer", None)
    if callable(reference):
        return [reference(problem)]
    gold = str(problem.gold)
    return [gold, f" {gold}", f"\\boxed{{{gold}}}", f" \\boxed{{{gold}}}"]


def right_answers(game: Any) -> dict[str, str]:
    """A right answer for each answering agent of a game that has been reset."""
    problem, answering = game.problem, game.team.answering
    several = isinstance(problem.gold, Mapping) and set(answering) <= set(problem.gold)
    return {
        agent: right_answer(
            game.task,
            replace(problem, gold=problem.gold[agent]) if several else problem,
            game.team.roles[agent].reply_prefix,
        )
        for agent in answering
    }


def other_gold(task: Task, problem: Problem) -> Any:
    """A gold of the same kind that is not this problem's: another problem's. NotChecked where there is none."""
    last = _SEARCH if task.size is None else min(task.size, _SEARCH)
    for index in range(last):
        gold = task.problem(index).gold
        if gold != problem.gold:
            return gold
    if isinstance(problem.gold, str):
        return problem.gold + "0"
    raise NotChecked(f"the first {last} problems all have the gold {problem.gold!r:.80}, so it cannot be swapped")


def with_swapped_gold(task: Task) -> Task:
    """The same task with every problem's gold replaced by another one."""

    def problem(index: int) -> Problem:
        item = task.problem(index)
        return replace(item, gold=other_gold(task, item))

    return _with(task, "problem", problem)


def with_broken_grader(task: Task) -> Task:
    """The same task with a grader that raises OSError."""

    def grade(answer: str, problem: Problem) -> Any:
        raise OSError("the check broke the grader on purpose")

    return _with(task, "grade", grade)


def _with(task: Task, method: str, function: Callable[..., Any]) -> Task:
    twin = copy.copy(task)
    try:
        object.__setattr__(twin, method, function)
    except AttributeError as fault:
        raise NotChecked(f"{type(task).__name__} has __slots__, so its {method} cannot be replaced") from fault
    return twin
