"""Results of the tests of one program, and the verdict that follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from marft_envs.verdict import Verdict

Scoring = Literal["all", "fraction"]


class TestOutcome(StrEnum):
    """Outcome of one test.

    Attributes:
        PASS: The output is correct.
        WRONG: The program ended normally, but its output is not correct.
        RUNTIME_ERROR: The program raised an exception or returned a non-zero exit code.
        TIMEOUT: The program exceeded its time limit.
        MEMORY: The program exceeded its memory limit.
        OUTPUT_LIMIT: The program wrote too much.
        FAULT: The sandbox or the checker failed; the program is not to blame.
    """

    __test__ = False  # pytest collects classes called Test*

    PASS = "pass"
    WRONG = "wrong"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT_LIMIT = "output_limit"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class TestResult:
    """Result of one test.

    Attributes:
        outcome: Its outcome.
        detail: Reason for another outcome than PASS, in one line.
        output: What the program wrote to standard output.
        cpu_s: CPU time in seconds.
        wall_s: Elapsed time in seconds.
    """

    __test__ = False

    outcome: TestOutcome
    detail: str = ""
    output: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TestReport:
    """Results of the tests of one program.

    Attributes:
        results: In the order of the tests; without the tests after the first failure if ``stop_early`` was set.
        total: Number of tests, including those that were not run.
        isolation: Level at which the sandbox isolated the program.
    """

    __test__ = False

    results: tuple[TestResult, ...]
    total: int
    isolation: str

    @property
    def passed(self) -> int:
        """Number of passed tests."""
        return sum(result.outcome is TestOutcome.PASS for result in self.results)

    def verdict(self, scoring: Scoring = "all") -> Verdict:
        """Return the verdict on the program.

        Args:
            scoring: "all" gives score 1 if all tests pass, else 0; "fraction" gives the fraction of passed tests.

        Returns:
            NOT_GRADED if a test ended with a fault. Exception: with "all", a program that failed another test is wrong
            whatever the outcome of the faulty test would have been.
        """
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
