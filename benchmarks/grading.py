"""Is the grader right, and how quick is it?

    python benchmarks/grading.py cases FILE.jsonl   a line for each wrong verdict, then the counts
    python benchmarks/grading.py speed              ours, math-verify with its own defaults, and equality of strings
    python benchmarks/grading.py programs           our sandbox at each level, and what others do

The last line of ``cases`` is ``cases=N errors=E policy=P worst_s=S``. `grading.py cases --help` says what stands in
a case file.

speed: one run, the same inputs for all three. Integers are answers to GSM8K, golds those of MATH, as they are, in
another notation, and changed; both from ``--data`` (a folder with gsm8k/ and math/) or, without one, from the
generators and a list in benchmarks/graders/inputs.py. Hostile replies are made to hang or to fill the memory;
math-verify runs in a process of its own, is killed after ``--hang-s``, and such a reply counts as failed.

programs: see benchmarks/graders/programs.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
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
from marft_envs.mathematics import grade
from marft_envs.mathematics.grader.symbolic import WorkerFault, shared_pool

CASE_FORMAT = """\
A case file is JSONL, an object a line. Its fields tell which kind a case is:

  mathematics   gold, answer (a whole reply), expected: true or false, whether the answer is correct
  code          kind (stdin, call, assert), program (bare), tests (a list, as docs/grading.md has them),
                expected: "pass", "fail", or "any" for any verdict but not graded;
                if wanted: checker (for stdin and call), time_limit (CPU seconds of a test, 5),
                category ("hostile": judged in a private mount namespace)
  both          if wanted: id (else its number), policy (true where reasonable people differ: a wrong verdict
                counts in P, not in E)

The last line of the output is "cases=N errors=E policy=P worst_s=S". Other fields are not read.
"""


class BadCases(ValueError):
    """A case file that cannot be used; the message names file and line."""


@dataclass(frozen=True)
class Outcome:
    """What became of one case. wrong: "" or what is wrong with the verdict, for people."""

    wrong: str
    seconds: float


@dataclass(frozen=True)
class Kind:
    """A kind of case: the fields that tell it, how it is judged, and what may be ``expected`` (empty: not looked at).
    Another grader is another entry of KINDS."""

    name: str
    fields: frozenset[str]
    judge: Callable[[dict[str, Any]], Outcome]
    expected: tuple[Any, ...] = ()


def judge_mathematics(case: dict[str, Any]) -> Outcome:
    """One mathematics case; a fault of the grader is a wrong verdict."""
    started = time.perf_counter()
    verdict = grade(case["answer"], case["gold"])
    seconds = time.perf_counter() - started
    if verdict.graded and (verdict.score == 1.0) == case["expected"]:
        return Outcome("", seconds)
    wanted = "correct" if case["expected"] else "not correct"
    texts = f"gold={_short(case['gold'])} answer={_short(case['answer'])}"
    return Outcome(f"expected {wanted}, got {verdict.outcome}: {texts} ({verdict.reason})", seconds)


def judge_program(case: dict[str, Any]) -> Outcome:
    """One code case; hostile programs are judged in a private mount namespace (benchmarks/graders/programs.py)."""
    return Outcome(*judge_code(case))


KINDS = (
    Kind("mathematics", frozenset(("gold", "answer", "expected")), judge_mathematics, (True, False)),
    Kind("code", FIELDS, judge_program, ("pass", "fail", "any")),
)


def run_cases(path: Path, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Judge a case file; returns what the last line says."""
    cases = list(read_cases(path))
    if any(kind is KINDS[0] for kind, _ in cases):
        with contextlib.suppress(WorkerFault):  # the first case that needs the worker says why
            shared_pool().warm_up()  # its start is no part of a verdict's time
    errors = policy = 0
    worst = 0.0
    for number, (kind, case) in enumerate(cases):
        name = case.get("id", number + 1)
        try:
            outcome = kind.judge(case)
        except ValueError as fault:  # its tests are at fault
            raise BadCases(f"{path}, case {name}: {fault}") from fault
        worst = max(worst, outcome.seconds)
        if outcome.wrong:
            differs = bool(case.get("policy"))
            policy, errors = policy + differs, errors + (not differs)
            say(f"{'policy' if differs else 'error'} {name} {kind.name}: {outcome.wrong}")
    summary = {"cases": len(cases), "errors": errors, "policy": policy, "worst_s": worst}
    say(f"cases={len(cases)} errors={errors} policy={policy} worst_s={worst:.3f}")
    return summary


def read_cases(path: Path) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """Each case with its kind. BadCases names the line that is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadCases(f"{path}: cannot be read ({error}), expected a JSONL file of cases") from error
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
            raise BadCases(f"{path}, line {number}: fields {has}, expected those of a known kind of case ({known})")
        if kind.expected and case["expected"] not in kind.expected:
            wanted = " or ".join(map(json.dumps, kind.expected))
            raise BadCases(f"{path}, line {number}: expected={case['expected']!r} of a {kind.name} case, not {wanted}")
        yield kind, case


def run_speed(data: Path | None, size: int, hang_s: float, say: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """The rows of the table: one for each group of inputs and grader."""
    try:
        say(f"symbolic worker: {shared_pool().warm_up()}")
    except WorkerFault as fault:
        say(f"symbolic worker: none ({fault})")
    rows = []
    with MathVerify(hang_s) as rival:
        for group, items in groups_of_items(data, size):
            for name, grader in (("ours", ours), ("math-verify", rival.judge), ("strings", strings)):
                print(f"{group}: {name}, {len(items)} answers", file=sys.stderr)
                rows.append({"group": group, "grader": name, **measure(grader, items)})
    say(table(rows))
    return rows


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="grading.py", description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    cases = commands.add_parser(
        "cases",
        help="judge a case file",
        description=CASE_FORMAT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cases.add_argument("file", type=Path, help="JSONL, one case a line")
    speed = commands.add_parser("speed", help="compare with math-verify and string equality")
    speed.add_argument("--data", type=Path, help="folder with gsm8k/ and math/ (default: the variable MARFT_DATA)")
    speed.add_argument("--size", type=_positive, default=500, help="answers in each group (default 500)")
    speed.add_argument("--hang-s", type=float, default=12.0, help="seconds after which math-verify is killed")
    add_options(commands.add_parser("programs", help="compare our sandbox with other ways to run programs"))
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """0, or 2 where the input cannot be used."""
    arguments = parse(words)
    try:
        if arguments.command == "cases":
            run_cases(arguments.file)
        elif arguments.command == "programs":
            run_programs(arguments.seconds, arguments.load)
        else:
            run_speed(arguments.data, arguments.size, arguments.hang_s)
    except (BadCases, FileNotFoundError, ImportError) as error:
        print(f"grading.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("grading.py: stopped", file=sys.stderr)
        return 130
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected at least 1")
    return value


def _short(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:77] + "...")


if __name__ == "__main__":
    sys.exit(main())
