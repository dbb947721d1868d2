"""Benchmarks of speed: the turn of an environment.

    python benchmarks/throughput.py
    python benchmarks/throughput.py turns --json turns.json

turns (the default): the raw game, ``OrderEnforcing``, PettingZoo's wrappers and the batch runner, in microseconds per
turn (benchmarks/speed/turns.py).

Exit code 2: a wrong option. A missed goal does not change the exit code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from baselines.command_line import run_command
from benchmarks.speed import turns

SUBJECTS = ("turns",)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. Without a subject it is that of "turns"."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] not in (*SUBJECTS, "-h", "--help"):
        words.insert(0, "turns")
    parser = argparse.ArgumentParser(
        prog="benchmarks/throughput.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    subjects = parser.add_subparsers(dest="subject", metavar="SUBJECT", required=True)
    of_turns = subjects.add_parser("turns", help="the cost of a turn of an environment")
    of_turns.add_argument(
        "--repetitions", type=int, default=60, help="repetitions of every subject, after one to warm up (default: 60)"
    )
    of_turns.add_argument("--json", type=Path, metavar="FILE", help="write every repetition to this file")
    options = parser.parse_args(words)
    if options.repetitions < 1:
        parser.error(f"--repetitions={options.repetitions}: expected at least 1")
    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json={options.json}: expected a file in an existing folder")
    return options


def run(options: argparse.Namespace) -> None:
    """Measure the subject that the command line names."""
    turns.run(options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of throughput.py and return its exit code."""
    options = parse(arguments)
    return run_command("throughput", lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
