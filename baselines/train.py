"""Train a team from the command line.

    python -m baselines.train --arm marft --env math_v0 --env-arg dataset=relay --updates 5 --out runs/relay
    python -m baselines.train --config run.toml --set learner.learning_rate=3e-4 --out runs/slow
    python -m baselines.train --resume --out runs/relay
    python -m baselines.train --dry-run --arm marft --env-arg dataset=relay --model 7B   # print its memory plan

The folder holds rows.jsonl, transcripts and checkpoints. After Ctrl-C or a kill, --resume continues the run with the
numbers it would have had without the stop. Exit codes: 0, success; 1, the disk, a tracker or the training failed; 2, a
wrong option; 130 and 143, stopped by Ctrl-C or SIGTERM.

In Python, call baselines.train(baselines.RunConfig(...), folder=...).
"""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from baselines.command_line import (
    MODEL_OPTIONS,
    add_model_options,
    exit_on_signal,
    interpreter,
    require_packages,
    run_command,
)
from baselines.runs.tracking import TRACKERS, Tracker, choose_tracker, make_tracker

if TYPE_CHECKING:
    from baselines.runs.run import Run, train
    from baselines.runs.run_config import RunConfig
    from marft_envs.batch import Episode

__all__ = ["Run", "RunConfig", "main", "parse", "train"]

_LAZY = {"Run": "baselines.runs.run", "train": "baselines.runs.run", "RunConfig": "baselines.runs.run_config"}


def __getattr__(name: str) -> Any:
    """Import the names that need torch when they are first used, so that --help does not load it."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _CallableModule(ModuleType):
    """Let ``baselines.train`` be both the module that ``python -m`` runs and the function that a user calls."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Run:
        """Call ``baselines.runs.run.train``."""
        return import_module("baselines.runs.run").train(*arguments, **keywords)


if __name__ != "__main__":
    sys.modules[__name__].__class__ = _CallableModule


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m baselines.train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, help="folder of the run; needed except with --dry-run")
    add("--dry-run", action="store_true", help="print the memory plan of the run and exit; loads no weights. --model "
        "may also be a size of Qwen2.5: 0.5B, 1.5B, 3B, 7B, 14B, 32B, 72B (docs/memory.md)")  # fmt: skip
    add("--resume", action="store_true", help="resume the run in --out; its settings need not be repeated")
    add_settings(parser)
    add("--updates", type=int, help="number of batches to train on (default: 30)")
    add("--episodes", type=int, help="episodes per batch (default: 128)")
    add(
        "--cooperation",
        action="store_true",
        help="in each evaluation, also score with each speaker's messages shuffled",
    )
    add(
        "--track",
        choices=TRACKERS,
        help="also log to this tracker (default: tensorboard if it is installed, else none)",
    )
    options = parser.parse_args(arguments)
    if options.out is None and not options.dry_run:
        parser.error("the following arguments are required: --out")
    return options


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Declare the options that every command with a run's settings has; ``config_of`` reads them."""
    add = parser.add_argument
    add("--config", type=Path, help="read settings from a .toml, .yaml or .json file; flags override it")
    add("--arm", help="algorithm: ippo, mappo, ..., marft (the names in baselines.ARMS)")
    add("--env", dest="environment", help="environment, such as math_v0 or my_tasks:coins_v0 (default: math_v0)")
    add("--env-arg", action="append", default=[], metavar="KEY=VALUE", help="argument of the environment; repeatable")
    add_model_options(parser, {"model": "tiny", "device": "auto", "dtype": "auto", "quantization": "none"})
    add("--seed", type=int, help="seed of problems, sampling, adapters and critic (default: 0)")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set any other setting, such as learner.clip=0.1, memory_gib=40 or decoding.rows=64; repeatable",
    )


def config_of(options: argparse.Namespace, defaults: Mapping[str, Any] | None = None) -> RunConfig:
    """Merge the defaults, the settings of the resumed run, the file, the flags and --set; later ones override earlier.

    Args:
        options: The parsed command line.
        defaults: Settings of a command whose defaults are not those of ``RunConfig``.

    Raises:
        ValueError: No arm is given, a key is unknown, or a value is invalid.
    """
    from baselines.runs.config_files import build, read_settings
    from baselines.runs.run_folder import CONFIG
    from marft_envs.cli.key_values import parse_key_values

    layers: list[Mapping[str, Any]] = [defaults or {}]
    if options.resume and options.out and (options.out / CONFIG).is_file():
        layers.append(read_settings(options.out / CONFIG))
    if options.config:
        layers.append(read_settings(options.config))
    names = ("arm", "environment", "updates", "episodes", "seed", *MODEL_OPTIONS)
    flags = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    flags |= {name: True for name in ("allow_wheel", "cooperation") if getattr(options, name)}
    if options.env_arg:
        flags["environment_arguments"] = parse_key_values("--env-arg", options.env_arg)
    settings = parse_key_values("--set", options.set)
    if not any("arm" in layer for layer in (*layers, flags, settings)):
        if options.resume:
            raise ValueError(f"nothing to resume in {options.out} (it has no {CONFIG}): expected the folder of a run, "
                             "or the settings of a new one, such as --arm marft")  # fmt: skip
        raise ValueError("no arm in --arm or --config: expected --arm NAME, such as --arm marft")
    return build([*layers, flags], settings)


def print_memory_plan(options: argparse.Namespace) -> None:
    """Print the memory plan of the run (docs/memory.md)."""
    from baselines.runs.device_memory import free_memory
    from baselines.runs.dry_run import plan_without_weights
    from baselines.runs.memory_table import describe_plan

    plan = plan_without_weights(config_of(options))
    print(describe_plan(plan, free_memory(plan.device)))


def run(options: argparse.Namespace) -> None:
    """Train, and send every row to the progress bar and the tracker."""
    from baselines.runs.progress import RunProgress
    from baselines.runs.run import train

    config = config_of(options)
    service = choose_tracker(options.track)
    progress = RunProgress(config.updates, sys.stdout)
    tracker: Tracker | None = None

    def on_samples(update: int, episodes: Sequence[Episode]) -> None:
        if tracker is not None:  # a sampled evaluation comes after a greedy one, whose row opened the tracker
            tracker.samples(update, episodes)

    def on_row(row: Mapping[str, Any]) -> None:
        nonlocal tracker
        if tracker is None:  # the first row: the settings were valid and this process holds the folder's lock
            progress.line(f"{config.task}: {config.arm} on {config.model}, seed {config.seed}, {config.updates} "
                          f"updates of {config.episodes} episodes; folder {options.out}")  # fmt: skip
            tracker = make_tracker(service, config, options.out, resumed=options.resume)
        progress.row(row)
        tracker.row(row)

    try:
        train(config, on_row, folder=options.out, resume=options.resume, on_samples=on_samples)
    finally:
        progress.close()
        if tracker:
            tracker.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m baselines.train`` and return its exit code."""
    options = parse(arguments)
    if code := run_command("train", require_packages):
        return code
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("baselines").setLevel(logging.INFO)
    import_module("baselines.runs.run")  # loads torch while ``exit_on_signal`` is still in force
    if options.dry_run:
        return run_command("train", lambda: print_memory_plan(options))
    resume = shlex.join([interpreter(), "-m", "baselines.train", "--resume", "--out", str(options.out)])
    code = run_command("train", lambda: run(options), advice=f"resume with: {resume}")
    if code == 0:
        play = shlex.join([interpreter(), "-m", "baselines.play", str(options.out)])
        print(f"Results: {options.out}/ (rows.jsonl, transcripts/, checkpoints/); show an episode with: {play}")
    return code


if __name__ == "__main__":
    exit_on_signal("train: stopped before the run began")
    sys.exit(main())
