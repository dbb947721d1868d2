"""Running the tests of a program: ``grade`` returns a verdict, ``run_tests`` the result of each test.

A test is a mapping, as data sets have it:

| kind | fields of a test | it passes if |
|---|---|---|
| stdin | input, output | the program reads the input, ends with exit code 0, and the checker accepts its output |
| call | fn, args, expected | the function fn, of a new Solution or of the module, returns the expected value |
| assert | test_code, optional entry_point | no assertion fails; with entry_point, ``check(entry_point)`` is called |

In "assert" tests, a name that the test code does not define and that is not a builtin or a module of the standard
library refers to the program's. The optional field ``builtins`` lists builtins that also refer to the program's: MBPP
asks for a function ``sum``. The optional field ``classes`` lists the program's classes whose objects the tests compare
with their own data. The assertions run in another process than the program.

The expected output never enters a process that runs the program, and what that process returns is read as plain
values, never as objects. So a program can neither read the expected output nor replace the comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args

from marft_envs.arguments import expected_one_of
from marft_envs.coding.grader.check_tests import check_tests
from marft_envs.coding.grader.outcomes import Scoring, TestOutcome, TestReport, TestResult
from marft_envs.coding.grader.output_checkers import Checker, as_checker, is_correct
from marft_envs.coding.grader.returned_values import is_same
from marft_envs.sandbox import (
    DEFAULT_LIMITS,
    Asserts,
    Call,
    Limits,
    LocalSandbox,
    ProgramRun,
    RunStatus,
    Sandbox,
    Stdin,
    Test,
)
from marft_envs.sandbox.inside import values
from marft_envs.verdict import Verdict

Kind = Literal["stdin", "call", "assert"]
Tests = Sequence[Mapping[str, Any]] | Mapping[str, Any]
CheckerSpec = str | Mapping[str, Any] | Checker | None
_MAX_DETAIL_CHARS = 60


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
    """Run a program on its tests and return the verdict.

    Args:
        program: Python source, without a ``` fence; ``extract_program`` returns it from a reply.
        tests: The tests, see the table above; for "assert" a single one is accepted.
        kind: Kind of all tests: "stdin", "call" or "assert".
        checker: How outputs of "stdin" and returned values of "call" are compared, see ``output_checkers``: a name, a
            mapping with type and parameters, or a ``Checker``. None compares exactly.
        limits: Time, memory and output limits of each test.
        scoring: "all" gives score 1 if all tests pass, else 0, and stops at the first failure; "fraction" gives the
            fraction of passed tests.
        prelude: Whether the program may use common imports (math, collections ...) without importing them.
        sandbox: Where programs run; None for this process's own ``LocalSandbox``.

    Returns:
        The verdict. A fault of the sandbox or of a custom checker is NOT_GRADED, never a wrong answer.

    Raises:
        SandboxUnavailable: Programs cannot be isolated on this machine.
        ValueError: An argument is not allowed, or a test is malformed: a field is missing or its code does not compile.
    """
    if scoring not in get_args(Scoring):
        raise ValueError(expected_one_of("scoring", scoring, get_args(Scoring)))
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
    """Run a program on its tests and return the result of each test.

    Args:
        program: Python source, without a ``` fence.
        tests: The tests, see the table above.
        kind: Kind of all tests.
        checker: As in ``grade``.
        limits: Limits of each test.
        prelude: As in ``grade``.
        sandbox: As in ``grade``.
        stop_early: Whether to skip the tests after the first failure.

    Returns:
        The results, in the order of the tests.

    Raises:
        SandboxUnavailable: Programs cannot be isolated on this machine.
        ValueError: An argument is not allowed, or a test is malformed.
    """
    listed = [tests] if isinstance(tests, Mapping) else list(tests)
    check_tests(listed, kind)
    comparison, sandbox = as_checker(checker), sandbox or default_sandbox()
    results: list[TestResult] = []
    isolation = ""
    for test in listed:
        # One call for each test: with stop_early, the tests after a failure must not run at all.
        result = sandbox.run(program, [_sandbox_test(test, kind)], limits, prelude=prelude)
        isolation = result.isolation
        results.append(_judge(result.runs[0], test, kind, comparison, sandbox))
        if stop_early and results[-1].outcome not in (TestOutcome.PASS, TestOutcome.FAULT):
            break
    return TestReport(tuple(results), len(listed), isolation)


@cache
def default_sandbox() -> LocalSandbox:
    """Return the sandbox of this process, at the strongest isolation level that is available."""
    return LocalSandbox()


def _sandbox_test(test: Mapping[str, Any], kind: str) -> Test:
    """Return the part of a test that the sandbox receives.

    The expected output is not in it, except in the code of "assert" tests, which runs in another process.
    """
    if kind == "stdin":
        return Stdin(test["input"])
    if kind == "call":
        return Call(test["fn"], values.dumps(list(test["args"])))
    classes = None if test.get("classes") is None else tuple(test["classes"])
    return Asserts(test["test_code"], test.get("entry_point") or "", tuple(test.get("builtins") or ()), classes)


def _judge(run: ProgramRun, test: Mapping[str, Any], kind: str, checker: Checker, sandbox: Sandbox) -> TestResult:
    """Compare what a run returned with what the test expects."""
    outcome, detail = TestOutcome.PASS, run.detail
    if run.status is not RunStatus.DONE:
        outcome = TestOutcome(run.status.value)
    elif kind == "stdin" and checker.name == "custom":
        outcome, detail = _judge_custom(run.stdout, test, checker, sandbox)
    elif kind == "stdin" and not is_correct(run.stdout, test["output"], checker):
        outcome, detail = TestOutcome.WRONG, f"output {_shorten(run.stdout)}, expected {_shorten(test['output'])}"
    elif kind == "call" and not is_same(run.value, test["expected"], checker):
        outcome, detail = TestOutcome.WRONG, f"returned {_shorten(run.value)}, expected {_shorten(test['expected'])}"
    return TestResult(outcome, detail, run.stdout, run.cpu_s, run.wall_s)


def _judge_custom(output: str, test: Mapping[str, Any], checker: Checker, sandbox: Sandbox) -> tuple[TestOutcome, str]:
    """Run the checker's own code on an output, in a process that the program never entered.

    A checker may raise because the output is malformed. If it accepts the expected output, then it works, and the
    program's output is wrong: otherwise a program could avoid a verdict by breaking the checker. If it fails on the
    expected output too, the checker is at fault.
    """
    run = _run_checker(output, test, checker, sandbox)
    if run.status is RunStatus.DONE and run.value in ("true", "false"):
        return (TestOutcome.PASS, "") if run.value == "true" else (TestOutcome.WRONG, f"output {_shorten(output)}")
    fault = f"the checker: {run.status} {run.detail or run.value}"[:300]
    if run.status is not RunStatus.FAULT and _run_checker(test["output"], test, checker, sandbox).value == "true":
        return TestOutcome.WRONG, f"output {_shorten(output)} ({fault})"
    return TestOutcome.FAULT, fault


def _run_checker(output: str, test: Mapping[str, Any], checker: Checker, sandbox: Sandbox) -> ProgramRun:
    call = Call("check", values.dumps([test["input"], output, test["output"]]))
    return sandbox.run(checker.code, [call], DEFAULT_LIMITS, prelude=True).runs[0]


def _shorten(value: Any) -> str:
    """Return a value in ASCII with at most ``_MAX_DETAIL_CHARS`` characters; a long string is shortened first."""
    limit = _MAX_DETAIL_CHARS
    text = ascii(value) if not isinstance(value, str) or len(value) < 200 else ascii(value[:limit])
    return text if len(text) <= limit else text[: limit - 3] + "..."
