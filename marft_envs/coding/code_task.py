"""Programming problems as a ``Task``: the program of a reply is run on tests; feedback comes from public tests only."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeVar, get_args

from marft_envs.arguments import expected_one_of
from marft_envs.coding.grader.check_tests import check_tests
from marft_envs.coding.grader.outcomes import Scoring, TestOutcome, TestReport
from marft_envs.coding.grader.program_extraction import extract_program, fenced
from marft_envs.coding.grader.run_tests import run_tests
from marft_envs.sandbox import ExternalSandbox, Limits, LocalSandbox, Sandbox
from marft_envs.task import Problem, Task
from marft_envs.verdict import Verdict

FeedbackKind = Literal["tests", "counts", "none"]
_MAX_FEEDBACK_CHARS = 300  # of each value that feedback quotes
_FAILURES = {
    TestOutcome.WRONG: "wrong answer",
    TestOutcome.RUNTIME_ERROR: "runtime error",
    TestOutcome.TIMEOUT: "time limit exceeded",
    TestOutcome.MEMORY: "memory limit exceeded",
    TestOutcome.OUTPUT_LIMIT: "output limit exceeded",
    TestOutcome.FAULT: "not run, because the sandbox failed",
}


@dataclass(frozen=True)
class CodeOptions:
    """Settings for running and scoring programs, the same for every programming task.

    Attributes:
        scoring: "all" gives score 1 if all tests pass, else 0; "fraction" gives the fraction of passed tests.
        feedback: What the team reads between rounds about its program on the public tests: the "tests" that failed, the
            "counts" of passed tests only, or "none".
        time_limit_s: CPU time of each test, in seconds, if the problem has no limit of its own.
        memory_mib: Memory of each test, in MiB, if the problem has no limit of its own.
        allow_unsafe: Whether to run programs even where they cannot be isolated. Each run then warns.
        sandbox: Where programs run: a sandbox, or the words of a command for ``marft_envs.sandbox.ExternalSandbox``.
            None for this process's own sandbox.

    Raises:
        ValueError: A setting has a value that is not allowed.
        TypeError: ``sandbox`` is not a sandbox.
    """

    scoring: Scoring = "all"
    feedback: FeedbackKind = "tests"
    time_limit_s: float = 5.0
    memory_mib: int = 1024
    allow_unsafe: bool = False
    sandbox: Sandbox | Sequence[str] | None = None

    def __post_init__(self) -> None:
        for name, value, allowed in (("scoring", self.scoring, Scoring), ("feedback", self.feedback, FeedbackKind)):
            if value not in get_args(allowed):
                raise ValueError(expected_one_of(name, value, get_args(allowed)))
        if not (self.sandbox is None or isinstance(self.sandbox, Sequence) or hasattr(self.sandbox, "run")):
            raise TypeError(
                f"sandbox={self.sandbox!r:.80}: got {type(self.sandbox).__name__}, expected None, the words of a "
                "command or an object with the method run, see marft_envs.sandbox.Sandbox"
            )
        try:
            self.limits  # noqa: B018
        except ValueError as fault:
            raise ValueError(str(fault).replace("cpu_s", "time_limit_s")) from None

    @property
    def limits(self) -> Limits:
        """Limits of each test of a problem without limits of its own."""
        return Limits(cpu_s=self.time_limit_s, memory_mib=self.memory_mib)


FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def with_code_options(function: FunctionT) -> FunctionT:
    """Decorate ``f(..., **options)`` so that its signature lists the fields of ``CodeOptions``.

    ``help()``, editors and the check of the arguments of ``env()`` read the signature.
    """
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    options = [
        parameter.replace(kind=parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(CodeOptions).parameters.values()
    ]
    function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return function


@dataclass(frozen=True)
class CodeItem:
    """A programming problem before it has an index.

    Attributes:
        prompt: What the agents read, including the public tests that they are to see.
        kind: Kind of the tests: "stdin", "call" or "assert"; see ``marft_envs.coding.grader.run_tests``.
        public: Tests that feedback may quote.
        hidden: Tests that only the grader reads.
        solution: Reference solution; "" if none is known.
        checker: How outputs are compared; see ``marft_envs.coding.grader.output_checkers``.
        before: Code to run before every program, such as helper functions that the prompt defines.
        prelude: Whether programs may use common imports without importing them.
        time_limit_s: CPU time of each test, in seconds; 0 for the task's limit.
        memory_mib: Memory of each test, in MiB; 0 for the task's limit.
        notes: Facts for people and filters, such as level and id.
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
        """Return the item as problem ``index``.

        The gold holds the hidden tests and the solution. Everything else, which feedback may use, is in the notes.

        Raises:
            ValueError: A test is malformed; see ``check_tests``.
        """
        check_tests([*self.public, *self.hidden], self.kind)
        gold = {"kind": self.kind, "hidden": list(self.hidden), "solution": self.solution}
        public = {
            "kind": self.kind,
            "public": list(self.public),
            "checker": self.checker,
            "before": self.before,
            "prelude": self.prelude,
            "time_limit_s": self.time_limit_s,
            "memory_mib": self.memory_mib,
        }
        return Problem(index, self.prompt, gold, notes={**self.notes, **public})


class CodeTask(Task):
    """Problems whose answer is a Python program.

    A subclass implements ``problem``, usually with ``CodeItem(...).problem(index)``.

    Args:
        options: The fields of ``CodeOptions``.
    """

    @with_code_options
    def __init__(self, **options: Any) -> None:
        self.options = CodeOptions(**options)
        sandbox = self.options.sandbox
        self._sandbox = ExternalSandbox(sandbox) if isinstance(sandbox, Sequence) else sandbox

    def grade(self, answer: str, problem: Problem) -> Verdict:
        """Run the program of a reply on all tests. A reply without a complete code block gives NO_ANSWER."""
        program = extract_program(answer)
        if program is None:
            return Verdict.no_answer("no complete ```python block")
        scoring = self.options.scoring
        tests = [*_public_tests(problem), *problem.gold["hidden"]]
        return self._run(program, tests, problem, stop_early=scoring == "all").verdict(scoring)

    def feedback(self, answer: str, problem: Problem) -> str:
        """Run the program of a reply on the public tests, and describe the result for the next round."""
        tests = problem.notes["public"]
        if self.options.feedback == "none" or not tests:
            return ""
        program = extract_program(answer)
        if program is None:
            return "Feedback: the reply contains no complete ```python code block."
        report = self._run(program, tests, problem, stop_early=False)
        lines = [f"Feedback: the program passed {report.passed} of {report.total} public tests."]
        if self.options.feedback == "tests":
            for number, (test, result) in enumerate(zip(tests, report.results, strict=True), 1):
                if result.outcome is not TestOutcome.PASS:
                    failure, detail = _FAILURES[result.outcome], _truncate(result.detail)
                    lines.append(f"Test {number} failed on {_input_of(test)}: {failure}{detail and f' ({detail})'}")
        return "\n".join(lines)

    def answer_of(self, text: str) -> str | None:
        """Return the program of a reply, without white space around it."""
        program = extract_program(text)
        return None if program is None else program.strip()

    def reference_answer(self, problem: Problem) -> str:
        """Return a reply with the reference solution.

        Raises:
            ValueError: No reference solution is known.
        """
        if not problem.gold["solution"]:
            raise ValueError(f"problem {problem.index} of {self.name} has no reference solution")
        return fenced(problem.gold["solution"])

    def _run(
        self, program: str, tests: Sequence[Mapping[str, Any]], problem: Problem, *, stop_early: bool
    ) -> TestReport:
        notes = problem.notes
        return run_tests(
            notes["before"] + program,
            tests,
            notes["kind"],
            checker=notes["checker"],
            limits=Limits(
                cpu_s=notes["time_limit_s"] or self.options.time_limit_s,
                memory_mib=notes["memory_mib"] or self.options.memory_mib,
            ),
            prelude=notes["prelude"],
            sandbox=_unsafe_sandbox() if self._sandbox is None and self.options.allow_unsafe else self._sandbox,
            stop_early=stop_early,
        )


@cache
def _unsafe_sandbox() -> LocalSandbox:
    """Return the sandbox that all tasks with ``allow_unsafe`` share; no task holds it, so that tasks can be pickled."""
    return LocalSandbox(allow_unsafe=True)


def _public_tests(problem: Problem) -> list[Mapping[str, Any]]:
    """Return the public tests, or none if the gold was replaced by tests of another kind, which run separately."""
    return problem.notes["public"] if problem.notes["kind"] == problem.gold["kind"] else []


def _input_of(test: Mapping[str, Any]) -> str:
    """Return the part of a public test that describes its input, for the feedback."""
    if "input" in test:
        return f"input {_truncate(ascii(test['input']))}"
    if "args" in test:
        return f"arguments {_truncate(ascii(test['args']))}"
    return f"`{_truncate(test['test_code'].strip().splitlines()[-1])}`"


def _truncate(text: str) -> str:
    return text if len(text) <= _MAX_FEEDBACK_CHARS else text[: _MAX_FEEDBACK_CHARS - 3] + "..."
