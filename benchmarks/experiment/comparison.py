"""A comparison from start to end: validate everything, run what is not finished, write the report."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from baselines.command_line import MODEL_OPTIONS
from baselines.ladder import arm_environment
from baselines.models.devices import choose_device
from baselines.models.load import check_model
from baselines.models.quantization import check_quantization
from baselines.models.sources import ModelNotFound
from baselines.runs.dry_run import plan_without_weights
from baselines.runs.evaluation import environment_of, make_environment
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import check_team
from benchmarks.experiment.comparison_progress import ComparisonProgress
from benchmarks.experiment.estimate import plan_lines
from benchmarks.experiment.grid import Grid, load_preset, with_options, with_settings, with_transfer
from benchmarks.experiment.merge import merge
from benchmarks.experiment.missing import missing_parts
from benchmarks.experiment.presets import GridError
from benchmarks.experiment.provenance import data_of
from benchmarks.experiment.results_folder import FAILURES, ResultsFolder
from benchmarks.experiment.worker_memory import default_workers, share_memory
from benchmarks.experiment.workers import execute
from marft_envs.cli.key_values import parse_key_values


def compare(options: argparse.Namespace, write_report: Callable[[Path], str]) -> int:
    """Run the comparison that the command line asks for and print its report.

    Args:
        options: Parsed command line of compare.py.
        write_report: Writes the report into the results folder and returns its text.

    Returns:
        1 if a run failed, else 0.

    Raises:
        GridError: The preset, an option or the results folder cannot be used.
    """
    grid = grid_of(options)
    results = ResultsFolder(options.out or Path("results") / Path(options.preset).stem)
    wanted = chosen_runs(grid, options.only)
    if options.dry_run:
        todo = [run for run in wanted if not results.finished(run)] if options.resume else wanted
        print_plan(grid, todo, options.workers)
        return 0
    check_tasks(grid)  # first the options, then the folder, then what may download a model
    results.check(grid, resume=options.resume)
    data = check_models(grid)
    with results.locked():
        results.open(grid, resume=options.resume, data=data)
        failed = run_grid(grid, results, options.workers or default_workers(grid), wanted)
        print()
        print(write_report(results.folder))
    print(f"Results: {results.folder}/ (report.html, report.md, rows.jsonl, summary.json, curve_*.png)")
    if failed:
        print(f"{failed} of the runs failed: their tracebacks are in {results.folder / FAILURES}/; --resume does them "
              "again from their last checkpoints", file=sys.stderr)  # fmt: skip
    return 1 if failed else 0


def merge_results(options: argparse.Namespace, write_report: Callable[[Path], str]) -> None:
    """Merge the results folders that the command line names, and print the report of the merged folder.

    Args:
        options: Parsed command line of compare.py.
        write_report: Writes the report into the results folder and returns its text.

    Raises:
        GridError: The folders cannot be merged.
    """
    held = merge(options.merge, options.out)
    print(write_report(options.out))
    print(f"Merged {len(options.merge)} folders into {options.out}/ (report.html, report.md, rows.jsonl, "
          f"summary.json, curve_*.png): {held}")  # fmt: skip


def grid_of(options: argparse.Namespace) -> Grid:
    """Return the preset with the changes of the command line.

    Raises:
        GridError: The preset or an option cannot be used.
    """
    if options.workers is not None and options.workers < 1:
        raise GridError(f"--workers {options.workers}: expected at least 1")
    grid = load_preset(options.preset)
    names = ("seeds", "updates", "evaluation_items", "learning_rates", *MODEL_OPTIONS)
    changes: dict[str, Any] = {name: getattr(options, name) for name in names}
    changes["arms"] = tuple(options.arms) if options.arms else None
    changes["allow_wheel"] = options.allow_wheel or None
    grid = with_settings(with_options(grid, changes), parse_key_values("--set", options.set))
    return with_transfer(grid, options.dataset, options.path) if options.dataset else grid


def print_plan(grid: Grid, runs: Sequence[RunConfig], workers: int | None) -> None:
    """Print the plan of ``--dry-run``; a run whose device, models or data are not here is planned and not measured.

    Args:
        grid: The comparison.
        runs: Its runs that are to be done.
        workers: Number of parallel runs; None for the default.

    Raises:
        ValueError: A setting of a run is invalid, or the memory does not hold a model.
    """
    missing = missing_parts(first_of_each(runs), allow_wheel=grid.allow_wheel)
    for run in first_of_each(runs):
        if not missing[run.task, run.arm].data:
            _check_named_task(run)
    complete = not any(parts.all for parts in missing.values())
    if complete:
        check_models(grid)
    for line in plan_lines(runs, workers or (default_workers(grid) if complete else 1), missing):
        print(line, flush=True)


def first_of_each(runs: Sequence[RunConfig]) -> list[RunConfig]:
    """Return a run of each task and arm."""
    return list({(run.task, run.arm): run for run in runs}.values())


def check_models(grid: Grid) -> dict[str, Any]:
    """Check the memory plans, the files of every model, and every data set, before the first run.

    No weights are in memory here: the workers may need all of it.

    Returns:
        Task -> ``provenance.data_of`` its problems.

    Raises:
        ValueError: The memory does not hold a model, or a model or a data set cannot be used.
    """
    place = choose_device(grid.device)
    print(place.reason, flush=True)
    for run in first_of_each(grid.runs()):
        with contextlib.suppress(ModelNotFound):  # check_model looks in more places, and says where
            plan_without_weights(run).check()
    for quantization in dict.fromkeys(run.quantization for run in grid.runs()):
        check_quantization(quantization, place.device)
    for name in dict.fromkeys(name for run in grid.runs() for name in (run.model, *run.bases.values())):
        check_model(name, allow_wheel=grid.allow_wheel)
    return {run.task: data_of(run) for run in {run.task: run for run in grid.runs()}.values()}


def check_tasks(grid: Grid) -> None:
    """Make every environment of the grid, and compare its agents with those that the run's settings name.

    Loads no model.

    Raises:
        GridError: Names the task and the arm.
    """
    for run in first_of_each(grid.runs()):
        _check_named_task(run)


def _check_named_task(run: RunConfig) -> None:
    try:
        _check_task(run)
    except (ValueError, TypeError, LookupError) as error:
        raise GridError(f"task {run.task}, arm {run.arm}: {error}") from error


def _check_task(run: RunConfig) -> None:
    agents = make_environment(run.environment, "test", environment_of(run).environment_arguments).possible_agents
    check_team(run, agents)
    for name, arguments in run.transfer.items():
        transfer = arm_environment(run.arm, arguments, len(agents), run.decoding.max_new_tokens)
        others = make_environment(run.environment, "test", transfer.environment_arguments).possible_agents
        if set(others) != set(agents):
            raise ValueError(
                f"transfer data set {name!r} has the agents {', '.join(others)}; expected the task's: "
                f"{', '.join(agents)}"
            )


def chosen_runs(grid: Grid, patterns: Sequence[str]) -> list[RunConfig]:
    """Return the runs whose task/arm/seed matches one of the patterns, as in a shell; all runs without a pattern.

    Raises:
        GridError: No run matches a pattern.
    """
    runs = grid.runs()
    names = [f"{run.task}/{run.arm}/{run.seed}" for run in runs]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise GridError(f"--only {pattern}: expected TASK/ARM/SEED, such as {names[0]} or '{runs[0].task}/*/*'")
    return [
        run
        for run, name in zip(runs, names, strict=True)
        if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def run_grid(grid: Grid, results: ResultsFolder, workers: int, wanted: Sequence[RunConfig] | None = None) -> int:
    """Run what is not finished and write rows.jsonl.

    Args:
        grid: The comparison.
        results: Its folder, open and locked.
        workers: Number of parallel runs.
        wanted: The runs to do now; None for all.

    Returns:
        The number of runs that failed.
    """
    chosen = grid.runs() if wanted is None else list(wanted)
    runs = share_memory(chosen, min(workers, len(chosen)))
    todo = [run for run in runs if not results.finished(run)]
    if not todo:
        results.write_rows()
        print(f"all {len(runs)} runs are finished; this is their report", flush=True)
        return 0
    started = sum(results.last_checkpoint(run) > 0 for run in todo)
    resumed = f" ({started} of them resumed from a checkpoint)" if started else ""
    print(
        f"{len(todo)} runs{resumed}, {min(workers, len(todo))} in parallel; results go to {results.folder}", flush=True
    )
    results.record_session()
    progress = ComparisonProgress(runs, results)
    failed = 0
    events = execute(todo, results, workers)
    try:
        for event in events:
            if event.kind == "failed":
                failed += 1
                results.record_failure(event.run, event.row["error"], event.row["traceback"])
            elif event.kind == "done":
                results.forget_failure(event.run)
            progress.report(event)
    finally:
        progress.close()
        events.close()
        results.write_rows()
    return failed
