"""Benchmarks of speed: the turn of an environment, and the generation and training of a team.

    python benchmarks/throughput.py
    python benchmarks/throughput.py turns --json turns.json
    python benchmarks/throughput.py engine --quick
    python benchmarks/throughput.py engine --allow-wheel --episodes 16 --agents 2 --prompts short
    python benchmarks/throughput.py engine --allow-wheel --repetitions 1 --json engine.json --resume
    python benchmarks/throughput.py rounds --allow-wheel --repetitions 1

turns (the default): the raw game, ``OrderEnforcing``, PettingZoo's wrappers and the batch runner, in microseconds per
turn (benchmarks/speed/turns.py).

engine: generated tokens per second and seconds per PPO update of a team of LoRA adapters on one base model, ordinary
and activated, beside a reference style of the same work (benchmarks/speed/reference_style.py), the continuous batching
of transformers, and the limit of the machine (benchmarks/speed/machine_limits.py). Other software runs in environments
of its own, which docs/results.md describes: --llama-cpp and --vllm generate with the same adapters, --trl makes a step
of GRPO, which is a generation and an update. All sides use the same number of threads, OMP_NUM_THREADS if it is set. A
side that fails has the reason in its line.

rounds: seconds of a rollout of several rounds whose turns begin from the keys and values of earlier ones, beside one in
which every turn reads its prompt (benchmarks/speed/rounds.py).

In the table of engine, "of limit" is the share of the machine's limit, "x ref." the ratio to the reference style,
between bests, and "paired" the median of the ratios within each repetition. The whole grid takes hours on a few cores:
stderr shows about how long it still takes, --json writes the file after every cell, and --resume continues it.

Exit code 1: a side of this project failed. Exit code 2: a wrong option. A missed goal does not change the exit code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from baselines.command_line import MODEL_OPTIONS, add_model_options, run_command
from benchmarks.speed import turns
from benchmarks.speed.comparison import GENERATION_SIDES, UPDATE_SIDES

SUBJECTS = ("turns", "engine", "rounds")
SIZES = {
    "model": "smollm2-135m", "episodes": (1, 16, 64), "agents": (2, 4, 8), "prompts": ("short", "long"),
    "new_tokens": 64, "repetitions": 3,
}  # fmt: skip
QUICK_SIZES = {
    "model": "tiny", "episodes": (1, 4), "agents": (2,), "prompts": ("short",), "new_tokens": 8, "repetitions": 2
}  # fmt: skip
OTHER_SOFTWARE = {"llama_cpp": "llama-cpp-python", "vllm": "vLLM", "trl": "TRL, peft and datasets"}
"""The options that take the Python of an environment of its own, and what that environment has."""
SKIPPABLE = (*sorted(GENERATION_SIDES), *sorted(UPDATE_SIDES), "memory")


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
    of_engine = subjects.add_parser("engine", help="generation and training of a team")
    _add_engine_options(of_engine)
    of_rounds = subjects.add_parser("rounds", help="rollouts of several rounds, with and without stored turns")
    _add_rounds_options(of_rounds)
    for subject in (of_turns, of_engine, of_rounds):
        subject.add_argument("--json", type=Path, metavar="FILE", help="write every repetition to this file")
    options = parser.parse_args(words)
    if options.subject == "engine":
        if options.quick:
            options.skip = [*options.skip, "memory"]
        for name, value in (QUICK_SIZES if options.quick else SIZES).items():
            if getattr(options, name) is None:
                setattr(options, name, value)
        for name, package in OTHER_SOFTWARE.items():
            python = getattr(options, name)
            if python and not python.is_file():
                parser.error(
                    f"--{name.replace('_', '-')}={python}: expected the Python of an environment with {package}"
                )
        if options.resume and not options.json:
            parser.error("--resume: expected --json FILE, the file to resume")
        if options.activated and not options.peak:
            parser.error("--activated: expected --peak AGENTS, whose mode it is; without it both modes are measured")
        for name in ("new_tokens", "peak"):
            if getattr(options, name) is not None and getattr(options, name) < 1:
                parser.error(f"--{name.replace('_', '-')}={getattr(options, name)}: expected at least 1")
    for name in (
        "repetitions",
        *(("episodes", "agents", "rounds", "new_tokens") if options.subject == "rounds" else ()),
    ):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')}={getattr(options, name)}: expected at least 1")
    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json={options.json}: expected a file in an existing folder")
    return options


def _add_engine_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_model_options(parser, {"device": "cpu", "dtype": "auto"}, set_defaults=True)
    add("--model", help=f"{MODEL_OPTIONS['model']} (default: {SIZES['model']})")
    add("--episodes", type=_numbers, metavar="LIST", help="episodes of a batch (default: 1,16,64)")
    add("--agents", type=_numbers, metavar="LIST", help="agents of a team (default: 2,4,8)")
    add("--prompts", type=_prompts, metavar="LIST", help="short, long or both (default: short,long)")
    add("--new-tokens", type=int, help="tokens of every action (default: 64)")
    add("--repetitions", type=int, help="repetitions of every side, after one to warm up (default: 3)")
    add(
        "--quick",
        action="store_true",
        help="use small defaults: the tiny model, few tokens and no peak memory, in under a minute",
    )
    add("--skip", nargs="+", choices=SKIPPABLE, default=[], metavar="SIDE",
        help=f"leave out sides: {', '.join(SKIPPABLE)}")  # fmt: skip
    for name, package in OTHER_SOFTWARE.items():
        add(f"--{name.replace('_', '-')}", type=Path, metavar="PYTHON",
            help=f"also measure other software: the Python of an environment with {package}")  # fmt: skip
    add("--resume", action="store_true", help="measure only what the file of --json lacks, and print all of it")
    add("--peak", type=int, metavar="AGENTS",
        help="measure the memory of a team of this size in this process, and print it in bytes")  # fmt: skip
    add("--activated", action="store_true", help="with --peak: measure activated adapters")


def _add_rounds_options(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser, {"device": "cpu", "dtype": "auto"}, set_defaults=True)
    parser.add_argument("--model", default="smollm2-135m", help=f"{MODEL_OPTIONS['model']} (default: %(default)s)")
    for name, default, what in (
        ("episodes", 16, "episodes that are played at a time"), ("agents", 2, "agents of the team"),
        ("rounds", 3, "rounds of an episode"), ("new-tokens", 32, "tokens of every action"),
        ("repetitions", 3, "repetitions of every way, after one to warm up"),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{what} (default: {default})")


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a list such as "1,16,64"."""
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r}: expected positive integers, such as 1,16,64")
    return tuple(int(part) for part in parts)


def _prompts(text: str) -> tuple[str, ...]:
    """Return the kinds of prompts of a list such as "short,long"."""
    parts = tuple(text.split(","))
    if not set(parts) <= {"short", "long"}:
        raise argparse.ArgumentTypeError(f"{text!r}: expected short, long or short,long")
    return parts


def run(options: argparse.Namespace) -> None:
    """Measure the subject that the command line names."""
    if options.subject == "turns":
        turns.run(options)
        return
    from benchmarks.speed import engine, rounds  # import torch, which --help and the turns do without

    (engine if options.subject == "engine" else rounds).run(options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of throughput.py and return its exit code."""
    options = parse(arguments)
    return run_command("throughput", lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
