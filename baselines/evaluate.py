"""Evaluate a trained team, an untrained one, or a model behind an endpoint, on held-out problems.

    python -m baselines.evaluate runs/relay                                  # as the run itself was evaluated
    python -m baselines.evaluate runs/words --dataset gsm8k --path DATA --items 100
    python -m baselines.evaluate --model smollm2-135m --dataset gsm8k --path DATA --items 100   # no training
    python -m baselines.evaluate --model tiny --dataset relay --show 3

Prints the accuracy with a Wilson interval over items, the shares of answers and items without a verdict, the tokens per
second and, with --show, transcripts. Writes nothing unless --out FILE.jsonl is given: one row of kind "eval" per data
set (docs/reference/rows.md).

With --suite, --samples or --endpoint an evaluation has a folder, with a record of each problem and a table of results
(docs/evaluation.md). The same command resumes it:

    python -m baselines.evaluate runs/words --suite math --path DATA --out evaluations/words
    python -m baselines.evaluate --suite all --endpoint http://localhost:8000/v1 --endpoint-model NAME --team trio \\
      --rounds 2 --samples 8 --out evaluations/trio

Exit codes: 0, success; 1, a data set of the suite was not found, a problem has no result because of a fault, or the
endpoint is down; 2, a wrong option or folder; 130 and 143, stopped by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from baselines.command_line import MODEL_OPTIONS, add_model_options, exit_on_signal, require_packages, run_command

WITHOUT_RUN = ("model",)
WITHOUT_RUN_OR_SUITE = ("temperature", "max_new_tokens")
WITHOUT_ENDPOINT = ("run", "model", "device", "dtype", "quantization", "allow_wheel", "max_prompt_tokens")
FOR_ENDPOINT = ("endpoint_key_env", "endpoint_arg", "no_system_role", "concurrency", "attempts", "timeout_s")
FOR_SUITE = ("pass_at", "seed", "max_prompt_tokens")


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
    _add_problem_options(parser)
    _add_suite_options(parser)
    options = parser.parse_args(arguments)
    _check_options(parser, options)
    return options


def _add_problem_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of data, team and decoding."""
    add = parser.add_argument
    add("--env", help="environment, such as math_v0 or my_tasks:coins_v0 (default: that of the run, or math_v0)")
    add("--dataset", nargs="+", help="one or more data sets (default: that of the run; without a run gsm8k, or none if "
        "the environment has none; with --suite: all of the suite)")  # fmt: skip
    add("--path", help="file or folder of the data (default: the variable MARFT_DATA, then the hub)")
    add("--team", help="a ready-made team or a .yaml file (default: that of the run; without a run panel_8 for the "
        "report, duo for the relay, for the tiny models and in an evaluation with a folder, else duo_guided; without a "
        "data set that of the environment)")  # fmt: skip
    add("--dependency", metavar="D", help="who reads whose messages: none, chain, star, tree, layers, full, or a list "
        "of edges (default: that of the run or the team)")  # fmt: skip
    add("--rounds", type=int, help="rounds of an episode (default: those of the run, or 1)")
    add("--env-arg", action="append", default=[], metavar="KEY=VALUE", help="argument of the environment; repeatable")
    add("--items", type=int, help="number of problems (default: as many as the run evaluates, or 100; with a folder: "
        "all, or 200 of generated problems)")  # fmt: skip
    add("--mode", choices=["greedy", "sampled"], help="decoding (default: greedy; sampled with --samples)")
    add("--temperature", type=float, help="without RUN, or with --suite: temperature of sampled decoding (default: "
        "that of the run, or 0.7; 1.0 for the tiny models)")  # fmt: skip
    add("--max-new-tokens", type=int, help="without RUN, or with --suite: longest reply in tokens (default: that of "
        "the run, or 64; 1024 in an evaluation with a folder)")  # fmt: skip
    add("--level", type=int, help="difficulty of a generated data set")
    add("--show", type=int, default=0, metavar="N", help="print the first N transcripts (default: 0)")
    add("--out", type=Path, help="append a row for each data set to this file; with --suite, --samples or --endpoint: "
        "the folder of the evaluation")  # fmt: skip


def _add_suite_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of an evaluation with a folder, and of endpoints."""
    add = parser.add_argument_group("evaluations with a folder (docs/evaluation.md)").add_argument
    add("--suite", choices=["math", "code", "all"], help="evaluate on all data sets of a suite; --dataset selects some")
    add("--samples", type=int, metavar="K", help="samples of each problem, for pass@k, avg@K and maj@K (default: 1)")
    add("--pass-at", type=int, nargs="+", metavar="k", help="numbers k of pass@k (default: 1, 2, 4, ... and K)")
    add("--seed", type=int, help="seed of sampling and of generated problems (default: that of the run, or 0)")
    add("--max-prompt-tokens", type=int, help="longest prompt of a local model (default: that of the run, or 8192)")
    add = parser.add_argument_group("OpenAI-compatible endpoints").add_argument
    add("--endpoint", metavar="URL", help="URL of the API, such as http://localhost:8000/v1")
    add("--endpoint-model", metavar="NAME", help="name of the model, as the endpoint knows it")
    add("--endpoint-key-env", metavar="VARIABLE", help="variable with the API key (default: OPENAI_API_KEY, if it is "
        "set)")  # fmt: skip
    add("--endpoint-arg", action="append", default=[], metavar="KEY=VALUE", help="entry of each request, such as "
        "top_p=0.95, or max_tokens=None to send none; repeatable")  # fmt: skip
    add("--no-system-role", action="store_true", help="send instructions in the first user message")
    add("--concurrency", type=int, default=8, help="largest number of requests at a time (default: 8)")
    add("--attempts", type=int, default=6, help="times that a request is sent before it is a fault (default: 6)")
    add("--timeout-s", type=float, default=600.0, help="seconds to wait for a reply (default: 600)")


def with_folder(options: argparse.Namespace) -> bool:
    """Return whether the evaluation has a folder."""
    return options.suite is not None or options.samples is not None or options.endpoint is not None


def _check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Report options that exclude each other, and set the defaults that depend on others."""
    folder, run = with_folder(options), options.run is not None
    _refuse(parser, options, WITHOUT_RUN, "no RUN with it", run)
    _refuse(parser, options, WITHOUT_RUN_OR_SUITE, "no RUN with it", run and not folder)
    _refuse(parser, options, ("update",), "a RUN with it", not run)
    _refuse(parser, options, ("env", "level"), "no --suite with it", options.suite is not None)
    _refuse(parser, options, FOR_SUITE, "--suite, --samples or --endpoint with it", not folder)
    _refuse(parser, options, WITHOUT_ENDPOINT, "no --endpoint with it", options.endpoint is not None)
    _refuse(parser, options, ("endpoint_model", *FOR_ENDPOINT), "--endpoint with it", options.endpoint is None)
    if options.endpoint is not None and options.endpoint_model is None:
        parser.error("--endpoint: expected --endpoint-model NAME with it")
    if folder and options.out is None:
        parser.error("--out: expected the folder of the evaluation")
    options.samples = 1 if options.samples is None else options.samples
    for name in ("samples", "items", "rounds", "concurrency", "attempts", "max_new_tokens", "max_prompt_tokens"):
        value = getattr(options, name)
        if folder and value is not None and value < 1:
            parser.error(f"{_flag(name)} {value}: expected at least 1")
    if options.samples > 1 and options.mode == "greedy":
        parser.error(f"--samples {options.samples}: expected --mode sampled; greedy samples are all the same")
    options.mode = options.mode or ("sampled" if options.samples > 1 else "greedy")
    options.folder = folder


def _refuse(
    parser: argparse.ArgumentParser, options: argparse.Namespace, names: Sequence[str], expected: str, wrong: bool
) -> None:
    """Report the first of some options that was given, if it must not be given."""
    for name in names if wrong else ():
        if not _is_default(parser, name, getattr(options, name)):
            parser.error(f"{'RUN' if name == 'run' else _flag(name)}: expected {expected}")


def _is_default(parser: argparse.ArgumentParser, name: str, value: Any) -> bool:
    return bool(value == parser.get_default(name))


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m baselines.evaluate`` and return its exit code."""
    options = parse(arguments)
    if code := run_command("evaluate", require_packages):
        return code
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # a warning per retry; records count them
    command = import_module("baselines.runs.evaluate_command")  # loads torch, ``exit_on_signal`` still in force
    work, advice = command.evaluate_all, ""
    if options.folder:
        work = import_module("baselines.runs.suite_command").evaluate_suite
        advice = "the same command resumes the evaluation"
    return run_command("evaluate", lambda: work(options), advice=advice, usage_errors=(command.CheckpointError,))


if __name__ == "__main__":
    exit_on_signal("evaluate: stopped before the evaluation began")
    sys.exit(main())
