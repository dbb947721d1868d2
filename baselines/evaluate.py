"""Evaluate a trained team, or an untrained one, on held-out problems.

    python -m baselines.evaluate runs/relay                                  # as the run itself was evaluated
    python -m baselines.evaluate runs/words --dataset gsm8k --path DATA --items 100
    python -m baselines.evaluate --model smollm2-135m --dataset gsm8k --path DATA --items 100   # no training
    python -m baselines.evaluate --model tiny --dataset relay --show 3

Prints the accuracy with a Wilson interval over items, the shares of answers and items without a verdict, the tokens per
second and, with --show, transcripts. Writes nothing unless --out FILE.jsonl is given: one row of kind "eval" per data
set (docs/reference/rows.md).

Exit codes: 0, success; 2, a wrong option or folder; 130 and 143, stopped by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from baselines.command_line import MODEL_OPTIONS, add_model_options, exit_on_signal, require_packages, run_command


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m baselines.evaluate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("run", nargs="?", type=Path, metavar="RUN",
        help="folder of a run, of one of its checkpoints, or of an export; without it an untrained team")  # fmt: skip
    add("--update", type=int, help="with RUN: use the checkpoint of this update (default: the newest)")
    defaults = {"model": "smollm2-135m", "device": "auto", "dtype": "that of the run, or auto",
                "quantization": "that of the run, or none"}  # fmt: skip
    assert set(defaults) == set(MODEL_OPTIONS)
    add_model_options(parser, defaults)
    add("--env", help="environment, such as math_v0 or my_tasks:coins_v0 (default: that of the run, or math_v0)")
    add("--dataset", nargs="+", help="one or more data sets (default: that of the run; without a run gsm8k, or none if "
        "the environment has none)")  # fmt: skip
    add("--path", help="file or folder of the data (default: the variable MARFT_DATA, then the hub)")
    add("--team", help="a ready-made team (default: that of the run; without a run panel_8 for the report, duo for the "
        "relay and for the tiny models, else duo_guided; without a data set that of the environment)")  # fmt: skip
    add("--env-arg", action="append", default=[], metavar="KEY=VALUE", help="argument of the environment; repeatable")
    add("--items", type=int, help="number of problems (default: as many as the run evaluates, or 100)")
    add("--mode", choices=["greedy", "sampled"], default="greedy", help="decoding (default: greedy)")
    add("--temperature", type=float, help="without RUN: temperature of sampled decoding (default: 0.7; 1.0 for the "
        "tiny models)")  # fmt: skip
    add("--max-new-tokens", type=int, help="without RUN: longest reply in tokens (default: 64)")
    add("--level", type=int, help="difficulty of a generated data set")
    add("--show", type=int, default=0, metavar="N", help="print the first N transcripts (default: 0)")
    add("--out", type=Path, help="append a row for each data set to this file")
    options = parser.parse_args(arguments)
    wrong = ("model", "temperature", "max_new_tokens") if options.run is not None else ("update",)
    for name in wrong:
        if getattr(options, name) is not None:
            flag = "--" + name.replace("_", "-")
            parser.error(f"{flag}: expected {'no RUN with it' if options.run is not None else 'a RUN with it'}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m baselines.evaluate`` and return its exit code."""
    options = parse(arguments)
    if code := run_command("evaluate", require_packages):
        return code
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    command = import_module("baselines.runs.evaluate_command")  # loads torch, ``exit_on_signal`` still in force
    return run_command("evaluate", lambda: command.evaluate_all(options), usage_errors=(command.CheckpointError,))


if __name__ == "__main__":
    exit_on_signal("evaluate: stopped before the evaluation began")
    sys.exit(main())
