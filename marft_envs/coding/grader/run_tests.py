"""``grade(program, tests, kind) -> Verdict``, and ``run_tests``, which says it of each test.

A test is a mapping, as data sets have it:

| kind | a test | right when |
|---|---|---|
| stdin | input, output | the program, run on the input, ends with exit code 0 and an output that the checker accepts |
| call | fn, args, expected | fn of a new Solution, or of the module, returns the expected value |
| assert | test_code; entry_point for ``check(entry_point)`` | no assertion fails; the tests run in another process |

In "assert" tests a name that they do not define, and that is no builtin, is the program's; ``builtins`` lists builtins
that are the program's as well (MBPP asks for a function ``sum``).

The expected output never enters a process that runs the program, and that process never says more than values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Literal, get_args

from marft_envs.coding.grader.output_checkers import Checker, as_checker, is_right
from marft_envs.coding.grader.returned_values import is_same
from marft_envs.coding.grader.test_format import check_tests
from marft_envs.sandbox import DEFAULT_LIMITS, Asserts, Call, Ending, Limits, LocalSandbox, Run, Sandbox, Stdin, Test
from marft_envs.sandbox.inside import values
from marft_envs.verdict import Verdict

Kind = Literal["stdin", "call", "assert"]
Scoring = Literal["all", "fraction"]
Tests = Sequence[Mapping[str, Any]] | Mapping[str, Any]
CheckerSpec = str | Mapping[str, Any] | Checker | None


class TestOutcome(StrEnum):
    """What came of one test."""

    __test__ = False  # no test of pytest's

    PASS = "pass"
    WRONG = "wrong"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT_LIMIT = "output_limit"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test: its outcome, one line for people, what the program wrote, and its times."""

    __test__ = False

    outcome: TestOutcome
    detail: str = ""
    output: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TestReport:
    """The results in the order of the tests, without those left out; total: how many tests there are."""

    __test__ = False

    results: tuple[TestResult, ...]
    total: int
    isolation: str

    @property
    def passed(self) -> int:
        """How many tests were passed."""
        return sum(result.outcome is TestOutcome.PASS for result in self.results)

    def verdict(self, scoring: Scoring = "all") -> Verdict:
        """All tests or nothing, or the fraction. A fault is NOT_GRADED, unless another test has decided already."""
        failed = [n for n, r in enumerate(self.results) if r.outcome not in (TestOutcome.PASS, TestOutcome.FAULT)]
        faults = [n for n, r in enumerate(self.results) if r.outcome is TestOutcome.FAULT]
        level = self.isolation
        if faults and not (failed and scoring == "all"):
            return Verdict.not_graded(self._line(faults[0]), isolation=level)
        if not failed:
            return Verdict.correct(f"passed {self.total} of {self.total} tests", isolation=level)
        reason = f"passed {self.passed} of {self.total} tests" if scoring == "fraction" else "failed"
        reason = f"{reason}; {self._line(failed[0])}"
        if scoring == "fraction" and self.passed:
            return Verdict.partial(self.passed / self.total, reason, isolation=level)
        return Verdict.wrong(reason, isolation=level)

    def _line(self, number: int) -> str:
        result = self.results[number]
        return f"test {number + 1} of {self.total}: {result.outcome}" + (f" ({result.detail})" if result.detail else "")


def grade(
    program: str,
    tests: Tests,
    kind: Kind = "stdin",
    *,
    checker: CheckerSpec = None,
    limits: Limits = DEFAULT_LIMITS,
    scoring: Scoring = "all",
    prelude: bool = False,
    sandbox: Sandbox | None = None,
) -> Verdict:
    """The verdict on a program: its bare text. ``extract_program`` takes that out of a reply with a ``` fence.

    tests: a sequence of tests, see the table above; for "assert" a single one will do. checker: for "stdin" and "call",
    see ``checkers``. limits: of each test. scoring: "all" tests or nothing (the first failure ends it), or the
    "fraction". prelude: whether the customary imports are there. sandbox: another than this process's own.
    Raises SandboxUnavailable where programs cannot be run safely, and ValueError for tests that are at fault
    themselves: without their fields, or with a test_code that does not compile.
    """
    if scoring not in get_args(Scoring):
        raise ValueError(f"scoring={scoring!r}: expected one of {', '.join(get_args(Scoring))}")
    report = run_tests(
        program,
        tests,
        kind,
        checker=checker,
        limits=limits,
        prelude=prelude,
        sandbox=sandbox,
        stop_early=scoring == "all",
    )
    return report.verdict(scoring)


def run_tests(
    program: str,
    tests: Tests,
    kind: Kind = "stdin",
    *,
    checker: CheckerSpec = None,
    limits: Limits = DEFAULT_LIMITS,
    prelude: bool = False,
    sandbox: Sandbox | None = None,
    stop_early: bool = False,
) -> TestReport:
    """What came of each test; arguments as ``grade``. stop_early: leave out the tests after the first failure."""
    listed = [tests] if isinstance(tests, Mapping) else list(tests)
    check_tests(listed, kind)
    how, place = as_checker(checker), sandbox or default_sandbox()
    results: list[TestResult] = []
    isolation = ""
    for test in listed:
        result = place.run(program, [_sandbox_test(test, kind)], limits, prelude=prelude)
        isolation = result.isolation
        results.append(_judge(result.runs[0], test, kind, how, place))
        if stop_early and results[-1].outcome not in (TestOutcome.PASS, TestOutcome.FAULT):
            break
    return TestReport(tuple(results), len(listed), isolation)


@cache
def default_sandbox() -> LocalSandbox:
    """The one of this process, at the strongest level that holds."""
    return LocalSandbox()


def _sandbox_test(test: Mapping[str, Any], kind: str) -> Test:
    """What of a test the sandbox gets: never what is expected, except for the tester of "assert"."""
    if kind == "stdin":
        return Stdin(test["input"])
    if kind == "call":
        return Call(test["fn"], values.dumps(list(test["args"])))
    return Asserts(test["test_code"], test.get("entry_point") or "", tuple(test.get("builtins") or ()))


def _judge(run: Run, test: Mapping[str, Any], kind: str, checker: Checker, sandbox: Sandbox) -> TestResult:
    outcome, detail = TestOutcome.PASS, run.detail
    if run.ending is not Ending.DONE:
        outcome = TestOutcome(run.ending.value)
    elif kind == "stdin" and checker.name == "custom":
        outcome, detail = _judge_custom(run.stdout, test, checker, sandbox)
    elif kind == "stdin" and not is_right(run.stdout, test["output"], checker):
        outcome, detail = TestOutcome.WRONG, f"output {_short(run.stdout)}, expected {_short(test['output'])}"
    elif kind == "call" and not is_same(run.value, test["expected"], checker):
        outcome, detail = TestOutcome.WRONG, f"returned {_short(run.value)}, expected {_short(test['expected'])}"
    return TestResult(outcome, detail, run.stdout, run.cpu_s, run.wall_s)


def _judge_custom(output: str, test: Mapping[str, Any], checker: Checker, sandbox: Sandbox) -> tuple[TestOutcome, str]:
    """The checker's own code, in a locked process which the program never entered.

    A checker that fails on this output but accepts the expected one cannot read the output: that is a wrong output, or
    programs would escape a verdict with it. One that fails on both is at fault.
    """
    run = _run_checker(output, test, checker, sandbox)
    if _said(run):
        return (TestOutcome.PASS, "") if run.value == "true" else (TestOutcome.WRONG, f"output {_short(output)}")
    fault = f"the checker: {run.ending} {run.detail or run.value}"[:300]
    if run.ending is not Ending.FAULT and _run_checker(test["output"], test, checker, sandbox).value == "true":
        return TestOutcome.WRONG, f"output {_short(output)} ({fault})"
    return TestOutcome.FAULT, fault


def _run_checker(output: str, test: Mapping[str, Any], checker: Checker, sandbox: Sandbox) -> Run:
    call = Call("check", values.dumps([test["input"], output, test["output"]]))
    return sandbox.run(checker.code, [call], DEFAULT_LIMITS, prelude=True).runs[0]


def _said(run: Run) -> bool:
    return run.ending is Ending.DONE and run.value in ("true", "false")


def _short(value: Any) -> str:
    text = ascii(value) if not isinstance(value, str) or len(value) < 200 else ascii(value[:60])
    return text if len(text) <= 60 else text[:57] + "..."
