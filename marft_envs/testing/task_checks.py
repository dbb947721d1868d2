"""``check_task``: run all checks of a task."""

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
from marft_envs.testing.checking import CheckReport, ConformanceError, NotChecked, expect, run_checks
from marft_envs.testing.episodes import first_difference, strings_in, to_plain
from marft_envs.testing.leaks import MIN_PROBLEMS, gold_in_text
from marft_envs.testing.processes import in_fresh_process
from marft_envs.testing.task_variants import GARBAGE, correct_reply, last_index, problem_of, verdict_of
from marft_envs.transcript import Turn
from marft_envs.verdict import Outcome, Verdict

TaskFn = Callable[..., Task]
HUGE = tuple(
    piece * (2_000_000 // len(piece)) for piece in ("{", "}", "\\boxed{", "((", "9", "<answer>", "1+", "\\frac{1}")
)
HUGE_SECONDS = 10.0
"""The time limit for each reply of ``HUGE``. To read two megabytes in linear time takes well under a second."""
_SEED_ITEMS = 200
_SPLIT_ITEMS, _SPLIT_ITEMS_UNLIMITED = 10_000, 500
"""How many problems of each split are compared: for a task with a size, and for an unlimited generator."""
_AGENT = re.compile(r"[A-Za-z_]+_\d+")


@dataclass(frozen=True)
class TaskCase:
    """A task to check.

    Attributes:
        task: The task.
        make: Makes the task; None if only the task itself was passed.
        indices: The problems that are checked.
    """

    task: Task
    make: TaskFn | None
    indices: tuple[int, ...]

    def problems(self) -> list[Problem]:
        """Return the problems that are checked."""
        return [problem_of(self.task, index) for index in self.indices]


def check_task(
    task: Task | TaskFn, *, problems: int = 20, only: Iterable[str] | None = None, skip: Iterable[str] = ()
) -> CheckReport:
    """Check that a task conforms to the interface that environments need.

    Args:
        task: The Task class or another function that makes the task without arguments, or a Task. With a Task, it
            cannot be made again in another process, and the seeds and splits cannot be compared.
        problems: How many problems are checked.
        only: The names of the checks to run (of ``TASK_CHECKS``); None for all.
        skip: The names of the checks to skip.

    Returns:
        The checks that passed, and those that could not run.

    Raises:
        ConformanceError: A check failed; the message describes what is wrong and what was expected.
        TypeError: ``task`` is not a Task and does not make one.
        ValueError: A name in ``only`` or ``skip`` is unknown.
    """
    made = task if isinstance(task, Task) else task()
    if not isinstance(made, Task):
        raise TypeError(f"task={task!r:.80}: got {type(made).__name__}, expected a Task or a function that makes one")
    count = problems if made.size is None else min(problems, made.size)
    case = TaskCase(made, None if isinstance(task, Task) else task, tuple(range(count)))
    return run_checks(TASK_CHECKS, case, f"task {getattr(made, 'name', type(made).__name__)!r}", only, skip)


def _values(problem: Problem) -> Any:
    return to_plain({field.name: getattr(problem, field.name) for field in fields(problem)})


def _graded_problems(case: TaskCase) -> list[Problem]:
    """Return the problems as the grader receives them: one for each agent if the gold is a mapping from agents."""
    found = []
    for problem in case.problems():
        gold_per_agent = isinstance(problem.gold, Mapping) and all(_AGENT.fullmatch(str(key)) for key in problem.gold)
        found += [replace(problem, gold=gold) for gold in problem.gold.values()] if gold_per_agent else [problem]
    return found


def attributes(case: TaskCase) -> None:
    """name is an identifier, version an integer of at least 0, size None or at least 1."""
    name, version, size = (getattr(case.task, key, "missing") for key in ("name", "version", "size"))
    expect(isinstance(name, str) and name.isidentifier(), f"name is {name!r}; expected an identifier such as 'math'")
    expect(type(version) is int and version >= 0, f"version is {version!r}; expected an int of at least 0")
    expect(size is None or (type(size) is int and size > 0), f"size is {size!r}; expected None or an int of at least 1")


def problem_types(case: TaskCase) -> None:
    """Each problem is a Problem with its own index, and UTF-8 can encode all of its strings."""
    for index in case.indices:
        problem = problem_of(case.task, index)
        expect(isinstance(problem, Problem), f"problem({index}) is a {type(problem).__name__}; expected a Problem")
        expect(problem.index == index, f"problem({index}).index is {problem.index!r}; expected {index}")
        _expect_text(problem.prompt, f"problem({index}).prompt")
        for part in ("private", "notes"):
            value = getattr(problem, part)
            expect(isinstance(value, Mapping), f"problem({index}).{part} is {value!r:.60}; expected a mapping")
        for agent, text in problem.private.items():
            _expect_text(text, f"problem({index}).private[{agent!r}]")
        has_text = problem.prompt or any(problem.private.values())
        expect(has_text, f"problem({index}) has neither a prompt nor a private part; expected a text for the agents")


def _expect_text(value: Any, name: str) -> None:
    expect(isinstance(value, str), f"{name} is a {type(value).__name__}; expected str")
    expect(is_utf8(value), f"{name} contains lone surrogates; expected a string that UTF-8 can encode")


def pure_problem(case: TaskCase) -> None:
    """Problem i depends on i only: it is the same twice, in any order, after pickling, and for a NumPy integer."""
    first = [_values(problem) for problem in case.problems()]
    twin = pickle.loads(pickle.dumps(case.task))
    # In reverse order, so that a task with one random stream for all problems is found.
    for i, before in reversed(list(zip(case.indices, first, strict=True))):
        others = {"a second time": problem_of(case.task, i), "of a pickled copy": problem_of(twin, i)}
        others["for a NumPy integer"] = problem_of(case.task, np.int64(i))  # type: ignore[arg-type]
        for how, problem in others.items():
            found = first_difference(before, _values(problem))
            expect(not found, f"problem({i}) {how} differs at {found}; expected the same item")


def other_process(case: TaskCase) -> None:
    """The problems are the same in another process with another PYTHONHASHSEED."""
    here = _problems(case.make or case.task, case.indices)
    found = first_difference(here, in_fresh_process(_problems, case.make or case.task, case.indices))
    expect(not found, f"the problems differ in another process at {found}; expected the same")


def _problems(task: Task | TaskFn, indices: tuple[int, ...]) -> list[Any]:
    made = task if isinstance(task, Task) else task()
    return [_values(problem_of(made, i)) for i in indices]


def index_errors(case: TaskCase) -> None:
    """The last index has a problem, and problem(size) raises IndexError. (``reset`` rejects negative indices.)"""
    size = case.task.size
    problem_of(case.task, last_index(case.task))
    if size is None:
        raise NotChecked("the task has size None")
    try:
        problem = case.task.problem(size)
    except IndexError:
        return
    expect(False, f"problem({size}) of a task of size {size} is {problem!r:.100}; expected an IndexError")


def gold_is_correct(case: TaskCase) -> None:
    """The gold answer is graded as CORRECT."""
    for problem in _graded_problems(case):
        verdict = verdict_of(case.task, correct_reply(case.task, problem), problem)
        correct = verdict.outcome is Outcome.CORRECT
        expect(correct, f"the gold of problem {problem.index} is {verdict!r:.120}; expected Verdict.correct()")


def garbage_is_not_correct(case: TaskCase) -> None:
    """Garbage is graded as WRONG, NO_ANSWER or PARTIAL, without an exception, and the same way twice."""
    for problem in _graded_problems(case)[:3]:
        for text in (*GARBAGE, "⟦1⟧"):
            verdict = _grade_garbage(case.task, text, problem)
            expect(text.strip() or verdict.score == 0, f"an empty reply scores {verdict.score}; expected 0")
            second = _grade_garbage(case.task, text, problem)
            expect(
                second == verdict,
                f"the reply {text!r:.60} is {verdict!r:.90}, then {second!r:.90}; expected the same verdict",
            )


def _grade_garbage(task: Task, text: str, problem: Problem) -> Verdict:
    """Return the verdict of a reply that cannot be correct. Raise unless it is a verdict on a wrong answer."""
    where = f"the reply {text!r:.60} to problem {problem.index}"
    try:
        verdict = verdict_of(task, text, problem)
    except ConformanceError:
        raise
    except Exception as fault:  # a grader must not raise, whatever the exception
        raise AssertionError(f"{where} raises {type(fault).__name__}: {fault}") from fault
    allowed = (Outcome.WRONG, Outcome.NO_ANSWER, Outcome.PARTIAL)
    expect(verdict.outcome in allowed, f"{where} is {verdict!r:.100}; expected wrong, no answer or partial")
    return verdict


def huge_replies(case: TaskCase) -> None:
    """Two megabytes of braces, brackets or digits are graded in linear time."""
    problem = _graded_problems(case)[0]
    for text in HUGE:
        start = time.perf_counter()
        _grade_garbage(case.task, text, problem)
        spent = time.perf_counter() - start
        sample = f"{len(text):,} characters of {text[:9]!r}"
        expect(spent < HUGE_SECONDS, f"{sample} took {spent:.1f} s; expected under {HUGE_SECONDS} s, in linear time")


def seeds_differ(case: TaskCase) -> None:
    """Seeds s and s + 1 share no more items than unrelated seeds: the seed is mixed with the index, not added to it."""
    make = _make_with(case, "seed")
    count = _SEED_ITEMS if case.task.size is None else min(_SEED_ITEMS, case.task.size)

    def items(seed: int) -> set[str]:
        task = make(seed=seed)
        return {repr(_values(replace(problem_of(task, i), index=0))) for i in range(count)}

    if case.task.size is not None and items(0) == items(1):
        return  # a data set, whose seed only shuffles the items
    neighbours = len(items(0) & items(1))
    chance = max(len(items(0) & items(seed)) for seed in (1_000_003, 2_000_003, 3_000_017))
    # The number of items that two seeds share by chance has a standard deviation below sqrt(count).
    most = chance + 3 * count**0.5
    expect(
        neighbours <= most,
        f"seeds 0 and 1 share {neighbours} of {count} items, unrelated seeds at most {chance}; expected no more than "
        "chance; mix seed and index, for example with default_rng([seed, index])",
    )


def _make_with(case: TaskCase, parameter: str) -> TaskFn:
    """Return the function that makes the task. Raise NotChecked unless it has this parameter."""
    if case.make is None:
        raise NotChecked(f"it needs the Task class, or a function that makes the task with {parameter}=, not a Task")
    if parameter not in inspect.signature(case.make).parameters:
        raise NotChecked(f"{callable_name(case.make)} has no parameter {parameter}")
    return case.make


def splits_apart(case: TaskCase) -> None:
    """No problem (prompt, private parts and gold) is in two splits."""
    make = _make_with(case, "split")
    found: dict[Any, tuple[str, int]] = {}
    for name in choices_of(make).get("split", ("train", "test")):
        task = make(split=name)
        for index in range(_SPLIT_ITEMS_UNLIMITED if task.size is None else min(_SPLIT_ITEMS, task.size)):
            problem = problem_of(task, index)
            content = repr(to_plain([problem.prompt, dict(problem.private), problem.gold]))
            other, other_index = found.setdefault(content, (name, index))
            expect(
                other == name,
                f"problem {index} of split={name!r} is problem {other_index} of split={other!r}, "
                f"{problem.prompt!r:.80}; expected no problem in two splits",
            )


def no_gold_in_public(case: TaskCase) -> None:
    """``problem.public`` has no gold and no notes, and no string of it contains the gold (see ``leaks.py``)."""
    for problem in case.problems():
        exposed = [name for name in ("gold", "notes") if hasattr(problem.public, name)]
        expect(
            not exposed, f"problem({problem.index}).public has {', '.join(exposed)}; expected only what agents may read"
        )
    problems = _graded_problems(case)
    if len(problems) < MIN_PROBLEMS:
        raise NotChecked(f"fewer than {MIN_PROBLEMS} problems")
    leak = gold_in_text(problems)
    expect(not leak, f"{leak}; expected a hidden gold (skip this check if the task is to copy the gold)")


def progress_before_turns(case: TaskCase) -> None:
    """``progress`` is None, or one integer for each turn that depends on earlier turns only."""
    for problem in case.problems()[:3]:
        turns = _turns_on(problem)
        progress = case.task.progress(problem, turns)
        if progress is None:
            continue
        where = f"progress of {len(turns)} turns on problem {problem.index}"
        integers = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in progress)
        expect(
            integers and len(progress) == len(turns), f"{where} is {progress!r:.90}; expected one integer for each turn"
        )
        for k, turn in enumerate(turns):
            before = case.task.progress(problem, [*turns[:k], turn._replace(text="another text")])
            expect(
                before is not None and list(before) == list(progress[: k + 1]),
                f"{where} begins with {list(progress[: k + 1])!r:.90}, but is {before!r:.90} if turn {k} is the last "
                "and has another text; expected numbers that depend on earlier turns only",
            )


def _turns_on(problem: Problem) -> list[Turn]:
    """Return at least two rounds of turns, with correct and wrong replies, and a tool call at the end.

    The agents are those that the problem names; the correct replies come from its gold and notes.
    """
    golds = problem.gold if isinstance(problem.gold, Mapping) else {}
    named = dict.fromkeys(str(key) for key in (*problem.private, *golds) if _AGENT.fullmatch(str(key)))
    agents = tuple(named) or ("agent_0", "agent_1")
    texts = [*strings_in(to_plain([dict(problem.notes), problem.gold]))[:8], "", "?!", "⟦1⟧"]
    texts += ["0"] * max(0, 2 * len(agents) - len(texts))
    turns = [Turn(i // len(agents), agents[i % len(agents)], text) for i, text in enumerate(texts)]
    return [
        *turns,
        Turn(len(texts) // len(agents), agents[len(texts) % len(agents)], "<tool_call>{}</tool_call>", "call"),
    ]


TASK_CHECKS: dict[str, Callable[[TaskCase], None]] = {
    check.__name__: check
    for check in (
        attributes, problem_types, pure_problem, other_process, index_errors, gold_is_correct, garbage_is_not_correct,
        huge_replies, seeds_differ, splits_apart, no_gold_in_public,
        progress_before_turns,
    )
}  # fmt: skip
"""All checks by name, in the order in which they run."""
