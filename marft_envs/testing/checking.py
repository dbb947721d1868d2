"""What a check is, how it fails, and how a list of checks is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeVar


class ConformanceError(AssertionError):
    """A check has failed. The message is a sentence: what is wrong, where, and what was expected."""


class NotChecked(Exception):
    """A check cannot run here; the message says why."""


@dataclass(frozen=True)
class Report:
    """passed: the checks that ran, in order. not_checked: check to the reason why it could not run."""

    passed: tuple[str, ...]
    not_checked: Mapping[str, str]

    def __str__(self) -> str:
        lines = [f"{len(self.passed)} checks passed: {', '.join(self.passed)}"]
        lines += [f"{name} was not checked: {reason}" for name, reason in self.not_checked.items()]
        return "\n".join(lines)


CaseT = TypeVar("CaseT")
Checks = Mapping[str, Callable[[CaseT], None]]


def fail(sentence: str) -> NoReturn:
    """Raise ConformanceError; ``run_checks`` puts the subject and the name of the check before the sentence."""
    raise ConformanceError(sentence)


def expect(condition: object, sentence: str) -> None:
    """``fail`` unless the condition holds."""
    if not condition:
        fail(sentence)


def run_checks(
    checks: Checks[CaseT], case: CaseT, subject: str, only: Iterable[str] | None, skip: Iterable[str]
) -> Report:
    """Run the chosen checks in their listed order. An exception within a check is a failure of that check."""
    only, skip = None if only is None else list(only), list(skip)
    for argument, names in (("only", only or ()), ("skip", skip)):
        unknown = sorted(set(names) - set(checks))
        if unknown:
            raise ValueError(f"{argument}={unknown}: expected some of {', '.join(checks)}")
    passed: list[str] = []
    not_checked = dict.fromkeys(skip, "left out on request")
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
    return Report(tuple(passed), not_checked)
