"""The report of ``validate``: its checks, what each policy earned, and what the problems look like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from marft_envs.testing.problem_statistics import ProblemStatistics

Status = Literal["passed", "failed", "not checked"]


@dataclass(frozen=True)
class CheckResult:
    """The result of one check.

    Attributes:
        name: The name of the check.
        status: "passed", "failed" or "not checked".
        detail: Why it failed or could not run; "" if it passed.
    """

    name: str
    status: Status
    detail: str = ""


@dataclass(frozen=True)
class PolicyResult:
    """What a policy earned.

    Attributes:
        name: The policy.
        mean: Mean team score over its graded episodes; nan if there is none.
        best: Its largest team score.
        episodes: Number of graded episodes.
        not_graded: Number of episodes that could not be graded.
    """

    name: str
    mean: float
    best: float
    episodes: int
    not_graded: int


@dataclass(frozen=True)
class ValidationReport:
    """The result of ``validate``.

    Attributes:
        environment: Its name.
        arguments: The arguments it was made with.
        checks: All checks, in the order in which they ran.
        policies: What each policy earned, the oracle first.
        problems: Statistics of the problems; None if they could not be read.
    """

    environment: str
    arguments: Mapping[str, Any]
    checks: tuple[CheckResult, ...]
    policies: tuple[PolicyResult, ...] = ()
    problems: ProblemStatistics | None = None

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.status == "failed")

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "arguments": {k: str(v) for k, v in self.arguments.items()}}

    def lines(self) -> Iterator[str]:
        """Yield the report as text, the failures first."""
        arguments = "".join(f" {name}={value}" for name, value in self.arguments.items())
        passed = sum(check.status == "passed" for check in self.checks)
        yield f"{self.environment}{arguments}: {passed} checks passed, {len(self.failures)} failed"
        for status in ("failed", "not checked"):
            yield from (f"  {status}: {c.name}: {c.detail}" for c in self.checks if c.status == status)
        for policy in self.policies:
            faults = f", {policy.not_graded} not graded" if policy.not_graded else ""
            yield f"  policy {policy.name}: mean score {policy.mean:.3f} of {policy.episodes} episodes{faults}"
        if self.problems is not None:
            yield from (f"  {line}" for line in self.problems.lines())
