"""Benchmark of the graders: correctness on case files, and speed.

    python benchmarks/grading.py cases FILE.jsonl   a line for each wrong verdict, then the counts
    python benchmarks/grading.py speed              our grader, math-verify with its defaults, and string equality
    python benchmarks/grading.py programs           our sandbox at each level, and alternatives
    python benchmarks/grading.py twins              reference solutions of data sets, and wrong twins of them

cases: ``grading.py cases --help`` describes a case file. The last line is ``cases=N errors=E policy=P worst_s=S``. Exit
codes: 0, no errors; 1, E > 0; 2, the file cannot be used or has no cases.

speed: all three graders get the same inputs in one run. Integers are answers to GSM8K; golds are those of MATH,
unchanged, in another notation and changed. Both come from ``--data`` (a folder with gsm8k/ and math/) or, without it,
from the generators and the list in benchmarks/graders/inputs.py. Hostile replies try to hang or to fill the memory.
math-verify runs in a process of its own, which is killed after ``--hang-s``; that reply then counts as failed.

programs, twins: see benchmarks/graders/programs.py and benchmarks/graders/twins.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.graders.inputs import groups_of_items
from benchmarks.graders.programs import FIELDS, add_options, judge_code
from benchmarks.graders.programs import run_speed as run_programs
from benchmarks.graders.rivals import MathVerify, measure, ours, strings
from benchmarks.graders.speed_table import table
from benchmarks.graders.twins import run_twins
from marft_envs.mathematics import grade
from marft_envs.mathematics.grader.symbolic import WorkerFault, shared_pool

CASE_FORMAT = """\
A case file is JSONL: one object per line. The fields determine the kind of a case:

  mathematics   gold, answer (a whole reply), expected: true or false (whether the answer is correct)
  code          kind (stdin, call, assert), program (source without a code fence), tests (a list, see
                docs/grading.md), expected: "pass", "fail", or "any" (any verdict except not graded);
                optional: checker (for stdin and call), time_limit (CPU seconds per test, default 5),
                prelude (whether the program has the customary imports; default: true for call, else false),
                category ("hostile": judged in a private mount namespace)
  both          optional: id (default: the number of the line), policy (true if the right verdict is debatable:
                a wrong verdict counts in P, not in E)

The last line of the output is "cases=N errors=E policy=P worst_s=S". Other fields are ignored.
Exit codes: 0, no errors; 1, E > 0; 2, the file cannot be used or has no cases.
"""


class BadCases(ValueError):
    """A case file that cannot be used. The message names the file and the line."""


@dataclass(frozen=True)
class Judgement:
    """Result of one case.

    Attributes:
        mistake: What is wrong with the verdict; empty if it is correct.
        seconds: Time of the verdict.
    """

    mistake: str
    seconds: float


@dataclass(frozen=True)
class Kind:
    """A kind of case. To support another grader, add an entry to KINDS.

    Attributes:
        name: Name of the kind.
        fields: Fields by which a case of this kind is recognised.
        judge: Judges a case.
        expected: Allowed values of the field "expected"; empty: any value.
    """

    name: str
    fields: frozenset[str]
    judge: Callable[[dict[str, Any]], Judgement]
    expected: tuple[Any, ...] = ()


def judge_mathematics(case: dict[str, Any]) -> Judgement:
    """Judge a mathematics case. A fault of the grader counts as a wrong verdict."""
    started = time.perf_counter()
    verdict = grade(case["answer"], case["gold"])
    seconds = time.perf_counter() - started
    if verdict.graded and (verdict.score == 1.0) == case["expected"]:
        return Judgement("", seconds)
    wanted = "correct" if case["expected"] else "not correct"
    values = f"gold={_short(case['gold'])} answer={_short(case['answer'])}"
    return Judgement(f"expected {wanted}, got {verdict.outcome}: {values} ({verdict.reason})", seconds)


def judge_program(case: dict[str, Any]) -> Judgement:
    """Judge a code case; a hostile program in a private mount namespace (benchmarks/graders/programs.py)."""
    return Judgement(*judge_code(case))


KINDS = (
    Kind("mathematics", frozenset(("gold", "answer", "expected")), judge_mathematics, (True, False)),
    Kind("code", FIELDS, judge_program, ("pass", "fail", "any")),
)


def run_cases(path: Path, write: Callable[[str], None] = print) -> dict[str, Any]:
    """Judge a case file.

    Args:
        path: The file.
        write: Prints a line.

    Returns:
        The counts of the last line: "cases", "errors", "policy" and "worst_s".

    Raises:
        BadCases: The file cannot be used.
    """
    cases = list(read_cases(path))
    if not cases:
        raise BadCases(f"{path}: no cases; expected a JSONL file with one case per line")
    if any(kind is KINDS[0] for kind, _ in cases):
        # The worker's start is not part of a verdict's time. If it fails, the first case that needs it reports why.
        with contextlib.suppress(WorkerFault):
            shared_pool().warm_up()
    errors = policy = 0
    worst = 0.0
    for number, (kind, case) in enumerate(cases):
        name = case.get("id", number + 1)
        try:
            outcome = kind.judge(case)
        except ValueError as error:  # the tests of the case are malformed
            raise BadCases(f"{path}, case {name}: {error}") from error
        worst = max(worst, outcome.seconds)
        if outcome.mistake:
            debatable = bool(case.get("policy"))
            policy, errors = policy + debatable, errors + (not debatable)
            write(f"{'policy' if debatable else 'error'} {name} {kind.name}: {outcome.mistake}")
    summary = {"cases": len(cases), "errors": errors, "policy": policy, "worst_s": worst}
    write(f"cases={len(cases)} errors={errors} policy={policy} worst_s={worst:.3f}")
    return summary


def read_cases(path: Path) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """Yield each case with its kind.

    Raises:
        BadCases: The file cannot be read, or a line is not a case.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadCases(f"{path}: cannot be read ({error}); expected a JSONL file of cases") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
        except ValueError as error:
            raise BadCases(f"{path}, line {number}: not valid JSON ({error})") from error
        kind = next((kind for kind in KINDS if isinstance(case, dict) and kind.fields <= case.keys()), None)
        if kind is None:
            has = ", ".join(case) if isinstance(case, dict) else type(case).__name__
            known = "; ".join(f"{kind.name}: {', '.join(sorted(kind.fields))}" for kind in KINDS)
            raise BadCases(f"{path}, line {number}: fields {has}; expected those of a known kind of case ({known})")
        if kind.expected and case["expected"] not in kind.expected:
            wanted = " or ".join(map(json.dumps, kind.expected))
            raise BadCases(
                f"{path}, line {number}: expected={case['expected']!r} in a {kind.name} case; must be {wanted}"
            )
        yield kind, case


def run_speed(
    data: Path | None, size: int, hang_s: float, write: Callable[[str], None] = print
) -> list[dict[str, Any]]:
    """Time all graders on all groups of inputs, and print a Markdown table.

    Args:
        data: Folder with gsm8k/ and math/; see ``inputs.groups_of_items``.
        size: Answers per group.
        hang_s: Seconds after which math-verify is killed.
        write: Prints a line.

    Returns:
        A row for each group and grader.
    """
    try:
        write(f"symbolic worker: {shared_pool().warm_up()}")
    except WorkerFault as error:
        write(f"symbolic worker: none ({error})")
    rows = []
    with MathVerify(hang_s) as rival:
        for group, items in groups_of_items(data, size):
            for name, grader in (("ours", ours), ("math-verify", rival.judge), ("strings", strings)):
                print(f"{group}: {name}, {len(items)} answers", file=sys.stderr)
                rows.append({"group": group, "grader": name, **measure(grader, items)})
    write(table(rows))
    return rows


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="grading.py", description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    cases = commands.add_parser(
        "cases",
        help="judge a case file",
        description=CASE_FORMAT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cases.add_argument("file", type=Path, help="JSONL file with one case per line")
    speed = commands.add_parser("speed", help="compare our grader with math-verify and string equality")
    speed.add_argument("--data", type=Path, help="folder with gsm8k/ and math/ (default: the variable MARFT_DATA)")
    speed.add_argument("--size", type=_positive, default=500, help="answers per group (default: 500)")
    speed.add_argument(
        "--hang-s", type=float, default=12.0, help="seconds after which math-verify is killed (default: 12)"
    )
    add_options(commands.add_parser("programs", help="compare our sandbox with other ways of running programs"))
    twins = commands.add_parser("twins", help="grade reference solutions of data sets, and wrong twins of them")
    twins.add_argument("--data", type=Path, help="folder with the data sets (default: the variable MARFT_DATA)")
    twins.add_argument("--size", type=_positive, default=40, help="problems of each data set (default: 40)")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line of grading.py and return its exit code.

    Returns:
        0; 1 if a verdict on a case file or on a twin is wrong and not debatable; 2 for an input that cannot be used.
    """
    arguments = parse(words)
    try:
        if arguments.command == "cases":
            return 1 if run_cases(arguments.file)["errors"] else 0
        if arguments.command == "programs":
            run_programs(arguments.seconds, arguments.load)
        elif arguments.command == "twins":
            return 1 if run_twins(_folder(arguments.data), arguments.size) else 0
        else:
            run_speed(arguments.data, arguments.size, arguments.hang_s)
    except (BadCases, FileNotFoundError, ImportError) as error:
        print(f"grading.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("grading.py: stopped", file=sys.stderr)
        return 130
    return 0


def _folder(data: Path | None) -> Path:
    """Return the folder with the data sets. Raises FileNotFoundError if none is named."""
    named = data or os.environ.get("MARFT_DATA")
    if not named:
        raise FileNotFoundError("no data sets: --data or the variable MARFT_DATA must name a folder")
    return Path(named)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected at least 1")
    return value


def _short(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:77] + "...")


if __name__ == "__main__":
    sys.exit(main())
