"""``python -m marft_envs validate``: check environments before anybody trains on them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marft_envs.testing import ValidationReport, validate


def run(
    names: Sequence[str],
    arguments: Mapping[str, Any],
    *,
    datasets: Sequence[str] = (),
    problems: int = 20,
    json_file: Path | None = None,
) -> int:
    """Validate environments and print a report of each. Return the exit code, 1 if a check failed.

    Args:
        names: The names of the environments.
        arguments: Arguments of every environment.
        datasets: Data sets, each of which is validated with every environment; empty for the default one.
        problems: How many problems each policy plays.
        json_file: File for the reports as JSON, which ``docs`` can show; None writes none.
    """
    reports: list[ValidationReport] = []
    for name in names:
        for dataset in datasets or (None,):
            chosen = {} if dataset is None else {"dataset": dataset}
            reports.append(validate(name, problems=problems, arguments={**arguments, **chosen}))
            print("\n".join(reports[-1].lines()), flush=True)
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(json.dumps([report.to_json() for report in reports], indent=1) + "\n", encoding="utf-8")
    return 1 if any(report.failures for report in reports) else 0


def section(json_file: Path) -> str:
    """Return the section of a doc page that shows stored reports; "" if the file does not exist."""
    if not json_file.is_file():
        return ""
    reports = json.loads(json_file.read_text(encoding="utf-8"))
    return "\n".join([_SECTION, *map(_row, reports), ""])


_SECTION = """
## Validation

Written by `python -m marft_envs validate` (20 problems for each policy). The *oracle* replies correctly. The *floor* is
the best of the policies that must earn nothing: empty, random and repeated replies, the prompt as a reply, orders to
the grader, and the right answer beside a wrong one. The *constant* is the best answer that does not depend on the
problem.

| setting | checks passed | failed | not checked | oracle | floor | constant | repeated problems | characters |
|---|---|---|---|---|---|---|---|---|"""


def _row(report: Mapping[str, Any]) -> str:
    """Return a report as a row of the table."""
    states = [check["status"] for check in report["checks"]]
    counts = " | ".join(str(states.count(status)) for status in ("passed", "failed", "not checked"))
    oracle, *floor, constant = (policy["mean"] for policy in report["policies"])
    found = report["problems"]
    low, _, high = found["prompt_chars"]
    name = ", ".join(f"{key}={value}" for key, value in report["arguments"].items()) or "default"
    return (
        f"| {name} | {counts} | {oracle:.2f} | {max(floor):.2f} | {constant:.2f} | "
        f"{found['duplicates']} of {found['read']} | {low}–{high} |"
    )
