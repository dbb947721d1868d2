"""A programming problem as a ``Problem``, graded by running the reply's program; feedback from public tests only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from marft_envs.coding.grader.program_extraction import extract_program, fenced
from marft_envs.coding.grader.run_tests import Scoring, TestOutcome, run_tests
from marft_envs.coding.grader.test_format import check_tests
from marft_envs.sandbox import ExternalSandbox, Limits, LocalSandbox, Sandbox
from marft_envs.task import Problem, Task
from marft_envs.verdict import Verdict

FeedbackKind = Literal["tests", "counts", "none"]
_LONGEST = 300


@dataclass(frozen=True)
class CodeItem:
    """A problem before it has a number.

    prompt: what the agents read, public tests included where they should see them. kind, checker: see ``grading``.
    public, hidden: tests; the hidden ones are the gold. before: code that stands before every program, such as helpers
    that the prompt gives. prelude: whether the customary imports are there. solution: a reference solution, "" where
    none is known. memory_mib, time_limit_s: of each test, 0 for the task's own.
    """

    prompt: str
    kind: str
    public: Sequence[Mapping[str, Any]]
    hidden: Sequence[Mapping[str, Any]]
    solution: str = ""
    checker: Any = "exact"
    before: str = ""
    prelude: bool = False
    time_limit_s: float = 0.0
    memory_mib: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)

    def problem(self, index: int) -> Problem:
        """As problem number ``index``: hidden tests and solution are the gold, what may be told is in the notes.
        ValueError for tests that are at fault, see ``check_tests``."""
        check_tests([*self.public, *self.hidden], self.kind)
        gold = {"kind": self.kind, "hidden": list(self.hidden), "solution": self.solution}
        form = {
            "kind": self.kind,
            "public": list(self.public),
            "checker": self.checker,
            "before": self.before,
            "prelude": self.prelude,
            "time_limit_s": self.time_limit_s,
            "memory_mib": self.memory_mib,
        }
        return Problem(index, self.prompt, gold, notes={**self.notes, **form})


class CodeTask(Task):
    """Problems whose answer is a program.

    scoring: "all" tests or nothing, or the "fraction" of passed ones. feedback: what the team is told between rounds of
    its program on the public tests: the "tests" that failed, "counts" only, or "none". time_limit_s: CPU seconds of
    each test, where the problem has no limit of its own. memory_mib: likewise. allow_unsafe: run programs even
    where no wall holds; warns each time. sandbox: another than this process's own: an object, or the words of a
    command, see ``marft_envs.sandbox.ExternalSandbox``.
    """

    def __init__(
        self,
        *,
        scoring: Scoring = "all",
        feedback: FeedbackKind = "tests",
        time_limit_s: float = 5.0,
        memory_mib: int = 1024,
        allow_unsafe: bool = False,
        sandbox: Sandbox | Sequence[str] | None = None,
    ) -> None:
        for name, value, allowed in (("scoring", scoring, Scoring), ("feedback", feedback, FeedbackKind)):
            if value not in get_args(allowed):
                raise ValueError(f"{name}={value!r}: expected one of {', '.join(get_args(allowed))}")
        self.limits = Limits(cpu_s=time_limit_s, memory_mib=memory_mib)
        self.scoring, self.feedback_kind = scoring, feedback
        self.allow_unsafe = allow_unsafe
        self._sandbox = ExternalSandbox(sandbox) if isinstance(sandbox, Sequence) else sandbox

    def grade(self, answer: str, problem: Problem) -> Verdict:
        program = extract_program(answer)
        if program is None:
            return Verdict.no_answer("no complete ```python block")
        tests = [*self._own_public(problem), *problem.gold["hidden"]]
        report = self._run(program, tests, problem, stop_early=self.scoring == "all")
        return report.verdict(self.scoring)

    def feedback(self, answer: str, problem: Problem) -> str:
        tests = problem.notes["public"]
        if self.feedback_kind == "none" or not tests:
            return ""
        program = extract_program(answer)
        if program is None:
            return "Feedback: the reply held no complete ```python block."
        report = self._run(program, tests, problem, stop_early=False)
        lines = [f"Feedback: the program passed {report.passed} of {report.total} public tests."]
        if self.feedback_kind == "tests":
            for number, (test, result) in enumerate(zip(tests, report.results, strict=True), 1):
                if result.outcome is not TestOutcome.PASS:
                    lines.append(f"Test {number}: {_told(test)}{result.outcome}: {_cut(result.detail)}")
        return "\n".join(lines)

    def answer_of(self, text: str) -> str | None:
        program = extract_program(text)
        return None if program is None else program.strip()

    def reference_answer(self, problem: Problem) -> str:
        """A reply with the reference solution; ValueError where none is known."""
        if not problem.gold["solution"]:
            raise ValueError(f"problem {problem.index} of {self.name} has no reference solution")
        return fenced(problem.gold["solution"])

    def _own_public(self, problem: Problem) -> list[Mapping[str, Any]]:
        """The public tests; a gold of another kind cannot be run together with them."""
        return problem.notes["public"] if problem.notes["kind"] == problem.gold["kind"] else []

    def _run(self, program: str, tests: Sequence[Mapping[str, Any]], problem: Problem, *, stop_early: bool) -> Any:
        notes = problem.notes
        limits = Limits(
            cpu_s=notes["time_limit_s"] or self.limits.cpu_s, memory_mib=notes["memory_mib"] or self.limits.memory_mib
        )
        return run_tests(
            notes["before"] + program,
            tests,
            notes["kind"],
            checker=notes["checker"],
            limits=limits,
            prelude=notes["prelude"],
            sandbox=self._place(),
            stop_early=stop_early,
        )

    def _place(self) -> Sandbox | None:
        """None is the one of the process, shared by all tasks; a task that is pickled carries no running one."""
        if self._sandbox is None and self.allow_unsafe:
            return _unsafe_sandbox()
        return self._sandbox


def _unsafe_sandbox() -> LocalSandbox:
    global _UNSAFE
    _UNSAFE = _UNSAFE or LocalSandbox(allow_unsafe=True)
    return _UNSAFE


_UNSAFE: LocalSandbox | None = None


def _told(test: Mapping[str, Any]) -> str:
    if "input" in test:
        return f"input {_cut(ascii(test['input']))}, "
    if "args" in test:
        return f"arguments {_cut(ascii(test['args']))}, "
    return f"{_cut(test['test_code'].strip().splitlines()[-1])}: "


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
