"""``check_task``: what a task owes to the environment that plays it."""

from __future__ import annotations

import inspect
import pickle
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from marft_envs.arguments import callable_name
from marft_envs.game.spaces import is_utf8
from marft_envs.registry.env_arguments import choices_of
from marft_envs.task import Problem, Task
from marft_envs.testing.answers import GARBAGE, right_answer, verdict_of
from marft_envs.testing.checking import ConformanceError, NotChecked, Report, expect, run_checks
from marft_envs.testing.leaks import gold_in_text
from marft_envs.testing.playing import difference, plain, texts
from marft_envs.testing.processes import in_fresh_process
from marft_envs.transcript import Turn
from marft_envs.verdict import Outcome, Verdict

TaskFn = Callable[..., Task]
HUGE = tuple(
    piece * (2_000_000 // len(piece)) for piece in ("{", "}", "\\boxed{", "((", "9", "<answer>", "1+", "\\frac{1}")
)
HUGE_SECONDS = 10.0
"""For each of the replies of ``HUGE``: two megabytes read in linear time take well under a second."""
_SEED_ITEMS = 200
_SPLIT_ITEMS, _SPLIT_DRAWN = 10_000, 500
"""How many problems of each split are compared: of a task with a size, and of a generator without end."""
_AGENT = re.compile(r"[A-Za-z_]+_\d+")


@dataclass(frozen=True)
class Case:
    """What the checks work on. make: makes the task anew, None where only the task itself is known."""

    task: Task
    make: TaskFn | None
    indices: tuple[int, ...]


def check_task(
    task: Task | TaskFn, *, problems: int = 20, only: Iterable[str] | None = None, skip: Iterable[str] = ()
) -> Report:
    """Check a task against the contract; ConformanceError says what is wrong.

    task: a Task, or better what makes one without arguments, its class for instance: only then is it made anew in
    another process, and only then can a generator's seeds be compared (it must take ``seed=``). problems: how many of
    its problems are looked at. only, skip: names of ``TASK_CHECKS``.
    """
    made = task if isinstance(task, Task) else task()
    if not isinstance(made, Task):
        raise TypeError(f"task={task!r:.80}: got {type(made).__name__}, expected a Task or what makes one")
    count = problems if made.size is None else min(problems, made.size)
    case = Case(made, None if isinstance(task, Task) else task, tuple(range(count)))
    return run_checks(TASK_CHECKS, case, f"task {getattr(made, 'name', type(made).__name__)!r}", only, skip)


def _values(problem: Problem) -> Any:
    return plain({field.name: getattr(problem, field.name) for field in fields(problem)})


def _answered(case: Case) -> list[Problem]:
    """The problems as the grader gets them: one for each agent where the gold is a mapping from agents."""
    found = []
    for problem in map(case.task.problem, case.indices):
        several = isinstance(problem.gold, Mapping) and all(_AGENT.fullmatch(str(key)) for key in problem.gold)
        found += [replace(problem, gold=gold) for gold in problem.gold.values()] if several else [problem]
    return found


def attributes(case: Case) -> None:
    """name is a word, version a whole number, size None or at least 1."""
    name, version, size = (getattr(case.task, key, "missing") for key in ("name", "version", "size"))
    expect(isinstance(name, str) and name.isidentifier(), f"name is {name!r}; expected a word such as 'math'")
    expect(type(version) is int and version >= 0, f"version is {version!r}; expected an int of at least 0")
    expect(size is None or (type(size) is int and size > 0), f"size is {size!r}; expected None or an int of at least 1")


def problem_types(case: Case) -> None:
    """Each problem is a Problem with its own index and with texts that UTF-8 can hold."""
    for index in case.indices:
        problem = case.task.problem(index)
        expect(isinstance(problem, Problem), f"problem({index}) is a {type(problem).__name__}; expected a Problem")
        expect(problem.index == index, f"problem({index}).index is {problem.index!r}; expected {index}")
        _expect_text(problem.prompt, f"problem({index}).prompt")
        for part in ("private", "notes"):
            value = getattr(problem, part)
            expect(isinstance(value, Mapping), f"problem({index}).{part} is no mapping but {value!r:.60}")
        for agent, text in problem.private.items():
            _expect_text(text, f"problem({index}).private[{agent!r}]")
        shown = problem.prompt or any(problem.private.values())
        expect(shown, f"problem({index}) has neither a prompt nor a private part; expected something to read")


def _expect_text(value: Any, place: str) -> None:
    expect(isinstance(value, str), f"{place} is a {type(value).__name__}; expected str")
    expect(is_utf8(value), f"{place} holds lone surrogates; expected a text that UTF-8 can hold")


def pure_problem(case: Case) -> None:
    """Problem i is a function of i alone: the same twice, in any order, after pickle, and for a NumPy integer."""
    first = [_values(case.task.problem(i)) for i in case.indices]
    twin = pickle.loads(pickle.dumps(case.task))
    for i, before in reversed(list(zip(case.indices, first, strict=True))):
        others = {"again": case.task.problem(i), "of a pickled copy": twin.problem(i)}
        others["for a NumPy integer"] = case.task.problem(np.int64(i))  # type: ignore[arg-type]
        for what, problem in others.items():
            found = difference(before, _values(problem))
            expect(not found, f"problem({i}) {what} differs at {found}; expected the same item")


def other_process(case: Case) -> None:
    """The problems are the same in another process with another PYTHONHASHSEED."""
    here = _problems(case.make or case.task, case.indices)
    found = difference(here, in_fresh_process(_problems, case.make or case.task, case.indices))
    expect(not found, f"the problems differ in another process at {found}; expected the same")


def _problems(task: Task | TaskFn, indices: tuple[int, ...]) -> list[Any]:
    made = task if isinstance(task, Task) else task()
    return [_values(made.problem(i)) for i in indices]


def index_errors(case: Case) -> None:
    """problem(size) is an IndexError, so that ``size`` is true. (``reset`` refuses what is below 0.)"""
    size = case.task.size
    if size is None:
        raise NotChecked("the task has no size")
    try:
        problem = case.task.problem(size)
    except IndexError:
        return
    expect(False, f"problem({size}) of a task of size {size} is {problem!r:.100}; expected an IndexError")


def gold_is_correct(case: Case) -> None:
    """The gold answer is CORRECT."""
    for problem in _answered(case):
        verdict = verdict_of(case.task, right_answer(case.task, problem), problem)
        correct = verdict.outcome is Outcome.CORRECT
        expect(correct, f"the gold of problem {problem.index} is {verdict!r:.120}; expected Verdict.correct()")


def garbage_is_not_correct(case: Case) -> None:
    """Garbage is WRONG, NO_ANSWER or PARTIAL: never CORRECT, never an exception, never a fault; twice the same."""
    for problem in _answered(case)[:3]:
        for text in (*GARBAGE, "⟦1⟧"):
            verdict = _graded(case.task, text, problem)
            expect(text.strip() or verdict.score == 0, f"an empty reply scores {verdict.score}; expected 0")
            again = _graded(case.task, text, problem)
            expect(
                again == verdict, f"the reply {text!r:.60} is {verdict!r:.90}, then {again!r:.90}; expected the same"
            )


def _graded(task: Task, text: str, problem: Problem) -> Verdict:
    where = f"the reply {text!r:.60} to problem {problem.index}"
    try:
        verdict = verdict_of(task, text, problem)
    except ConformanceError:
        raise
    except Exception as fault:  # any exception of a grader is what this check looks for
        raise AssertionError(f"{where} raises {type(fault).__name__}: {fault}") from fault
    allowed = (Outcome.WRONG, Outcome.NO_ANSWER, Outcome.PARTIAL)
    expect(verdict.outcome in allowed, f"{where} is {verdict!r:.100}; expected wrong, no answer or partial")
    return verdict


def huge_replies(case: Case) -> None:
    """Megabytes of braces, brackets and digits are graded in linear time."""
    problem = _answered(case)[0]
    for text in HUGE:
        start = time.perf_counter()
        _graded(case.task, text, problem)
        spent = time.perf_counter() - start
        sample = f"{len(text):,} characters of {text[:9]!r}"
        expect(spent < HUGE_SECONDS, f"{sample} took {spent:.1f} s; expected under {HUGE_SECONDS} s, in linear time")


def seeds_differ(case: Case) -> None:
    """Seeds s and s + 1 share no more items than two unrelated seeds: the seed is mixed with the index, not added."""
    if case.make is None:
        raise NotChecked("it needs what makes the task with seed=, its class for instance, not the finished task")
    if "seed" not in _parameters(case.make):
        raise NotChecked(f"{callable_name(case.make)} takes no seed=")
    count = _SEED_ITEMS if case.task.size is None else min(_SEED_ITEMS, case.task.size)

    def items(seed: int) -> set[str]:
        task = case.make(seed=seed)  # type: ignore[misc]
        return {repr(_values(replace(task.problem(i), index=0))) for i in range(count)}

    if case.task.size is not None and items(0) == items(1):
        return  # a data set: the seed only shuffles its items
    neighbours = len(items(0) & items(1))
    chance = max(len(items(0) & items(seed)) for seed in (1_000_003, 2_000_003, 3_000_017))
    most = chance + 3 * count**0.5
    expect(
        neighbours <= most,
        f"seeds 0 and 1 share {neighbours} of {count} items, unrelated seeds at most {chance}; expected no more than "
        "chance: mix seed and index, default_rng([seed, index])",
    )


def _parameters(function: TaskFn) -> Mapping[str, Any]:
    return inspect.signature(function).parameters


def splits_apart(case: Case) -> None:
    """No problem of one split is in another: the same prompt, private parts and gold."""
    names = _splits(case)
    if case.make is None or not names:
        raise NotChecked("it needs what makes the task with split=, its class for instance, not the finished task")
    found: dict[Any, tuple[str, int]] = {}
    for name in names:
        task = case.make(split=name)
        for index in range(_SPLIT_DRAWN if task.size is None else min(_SPLIT_ITEMS, task.size)):
            problem = task.problem(index)
            content = repr(plain([problem.prompt, dict(problem.private), problem.gold]))
            other, place = found.setdefault(content, (name, index))
            expect(
                other == name,
                f"problem {index} of split={name!r} is problem {place} of split={other!r}, {problem.prompt!r:.80}; "
                "expected no problem in two splits",
            )


def _splits(case: Case) -> tuple[str, ...]:
    """The values of the argument ``split``: those of its ``Literal``, else "train" and "test"; () without one."""
    if case.make is None or "split" not in _parameters(case.make):
        return ()
    return choices_of(case.make).get("split", ("train", "test"))


def no_gold_in_public(case: Case) -> None:
    """``problem.public`` has neither gold nor notes, and no text gives the gold away (see ``leaks.py``)."""
    for problem in map(case.task.problem, case.indices):
        held = [name for name in ("gold", "notes") if hasattr(problem.public, name)]
        expect(not held, f"problem({problem.index}).public has {', '.join(held)}; expected only what agents may read")
    leak = gold_in_text(_answered(case))
    expect(not leak, f"{leak}; expected it hidden (or skip this check where to pass the gold on is the task)")


def progress_before_turns(case: Case) -> None:
    """``progress`` is None, or one whole number for each turn, which this turn's text and later turns do not change."""
    for problem in map(case.task.problem, case.indices[:3]):
        turns = _turns_on(problem)
        known = case.task.progress(problem, turns)
        if known is None:
            continue
        where = f"progress of {len(turns)} turns on problem {problem.index}"
        whole = all(isinstance(number, (int, np.integer)) and not isinstance(number, bool) for number in known)
        expect(whole and len(known) == len(turns), f"{where} is {known!r:.90}; expected one whole number each")
        for k, turn in enumerate(turns):
            before = case.task.progress(problem, [*turns[:k], turn._replace(text="another text")])
            expect(
                before is not None and list(before) == list(known[: k + 1]),
                f"{where} begins with {list(known[: k + 1])!r:.90}, but is {before!r:.90} when turn {k} is the last "
                "and has another text; expected what is known before each turn",
            )


def _turns_on(problem: Problem) -> list[Turn]:
    """Two rounds or more by whoever the problem names: right texts, as far as gold and notes hold them, and wrong ones,
    with a call of a tool at the end."""
    golds = problem.gold if isinstance(problem.gold, Mapping) else {}
    named = dict.fromkeys(str(key) for key in (*problem.private, *golds) if _AGENT.fullmatch(str(key)))
    agents = tuple(named) or ("agent_0", "agent_1")
    said = [*texts(plain([dict(problem.notes), problem.gold]))[:8], "", "?!", "⟦1⟧"]
    said += ["0"] * max(0, 2 * len(agents) - len(said))
    turns = [Turn(i // len(agents), agents[i % len(agents)], text) for i, text in enumerate(said)]
    return [
        *turns,
        Turn(len(said) // len(agents), agents[len(said) % len(agents)], "<tool_call>{}</tool_call>", "call"),
    ]


TASK_CHECKS: dict[str, Callable[[Case], None]] = {
    check.__name__: check
    for check in (
        attributes, problem_types, pure_problem, other_process, index_errors, gold_is_correct, garbage_is_not_correct,
        huge_replies, seeds_differ, splits_apart, no_gold_in_public,
        progress_before_turns,
    )
}  # fmt: skip
"""Every check by name, in the order in which they run."""
