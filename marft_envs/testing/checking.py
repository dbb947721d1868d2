"""How checks fail, and how a list of checks is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeVar


class ConformanceError(AssertionError):
    """A check has failed. The message is a sentence: what is wrong, where, and what was expected."""


class NotChecked(Exception):
    """A check cannot run; the message gives the reason."""


@dataclass(frozen=True)
class CheckReport:
    """The result of ``check_env`` or ``check_task``.

    Attributes:
        passed: The names of the checks that passed, in the order in which they ran.
        not_checked: The reason for each check that could not run or was skipped, by name.
    """

    passed: tuple[str, ...]
    not_checked: Mapping[str, str]

    def __str__(self) -> str:
        lines = [f"{len(self.passed)} checks passed: {', '.join(self.passed)}"]
        lines += [f"{name} was not checked: {reason}" for name, reason in self.not_checked.items()]
        return "\n".join(lines)


CaseT = TypeVar("CaseT")
Checks = Mapping[str, Callable[[CaseT], None]]


def fail(sentence: str) -> NoReturn:
    """Raise ConformanceError. ``run_checks`` prepends the names of the environment or task and of the check."""
    raise ConformanceError(sentence)


def expect(condition: object, sentence: str) -> None:
    """Raise ConformanceError with ``sentence`` unless ``condition`` is true."""
    if not condition:
        fail(sentence)


def run_checks(
    checks: Checks[CaseT], case: CaseT, subject: str, only: Iterable[str] | None, skip: Iterable[str]
) -> CheckReport:
    """Run checks in their listed order. An exception in a check is a failure of that check.

    Args:
        checks: All checks, by name.
        case: The argument of each check.
        subject: The environment or task in error messages.
        only: The names of the checks to run; None for all.
        skip: The names of the checks to skip.

    Raises:
        ConformanceError: A check failed.
        ValueError: ``only`` or ``skip`` has an unknown name.
    """
    only, skip = None if only is None else list(only), list(skip)
    for argument, names in (("only", only or ()), ("skip", skip)):
        unknown = sorted(set(names) - set(checks))
        if unknown:
            raise ValueError(f"{argument}={unknown}: expected some of {', '.join(checks)}")
    passed: list[str] = []
    not_checked = dict.fromkeys(skip, "skipped on request")
    for name, check in checks.items():
        if name in skip or (only is not None and name not in only):
            continue
        try:
            check(case)
        except NotChecked as reason:
            not_checked[name] = str(reason)
        except ConformanceError as failure:
            raise ConformanceError(f"{subject} fails the check {name!r}: {failure}") from failure
        except Exception as fault:
            raised = f"{type(fault).__name__}: {fault}"
            raise ConformanceError(f"{subject} fails the check {name!r}: it raised {raised:.500}") from fault
        else:
            passed.append(name)
    return CheckReport(tuple(passed), not_checked)
