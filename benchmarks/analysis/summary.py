"""Summary of a results folder: every number of the report, computed from its rows.

The summary is a pure function of the rows (the generator of the bootstrap is fixed), so a lost summary.json can be
rebuilt identically. Accuracies and differences are fractions; only the text and the curves use percent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.integrate import trapezoid

from benchmarks.analysis import intervals
from benchmarks.analysis.cooperation import cooperation, messages
from benchmarks.analysis.learning_rates import runs_by_rate, same_rate, select_rates, sweep_figures
from benchmarks.analysis.pairs import Summary, apply_holm, equal_tokens, interval_figures, mean_interval, pair_figures
from benchmarks.analysis.read_rows import MODES, Row
from benchmarks.analysis.roles import roles
from benchmarks.analysis.stability import (
    advantage_variance,
    budget,
    explained_variance,
    over_agents,
    seconds_per_update,
    stability,
)
from benchmarks.analysis.task_differences import task_differences
from benchmarks.analysis.training_curves import machines
from benchmarks.analysis.training_runs import TrainingRun, group_runs, item_means, pair_order

COLLAPSE_FALL = 0.20  # a run that ends this far below its own best accuracy has collapsed


def summarise(rows: Sequence[Row]) -> Summary:
    """Compute every figure of the report.

    Args:
        rows: Rows of a comparison, as ``read_rows.load_rows`` returns them.

    Returns:
        Dicts, lists, strings, finite numbers and None: "provenance", "config", "notes", "failures", the figures of each
        of "tasks", and "task_differences".

    Raises:
        ReportError: Two runs that should be paired share no evaluation item.
    """
    heads = [row for row in rows if row["kind"] == "comparison"]
    config = heads[0]["config"] if heads else {}
    notes = [row["text"] for row in rows if row["kind"] == "note"]
    runs = group_runs(rows)
    notes += _notes(heads, sum(run.repeated for group in runs.values() for run in group))
    tasks = {task: _task(task, group, config) for task, group in sorted(runs.items())}
    for task, by_arm in machines(rows).items():
        if task in tasks:
            tasks[task]["machines"] = by_arm
    apply_holm(
        (task, mode, pair)
        for task, figures in tasks.items()
        for mode, block in figures["modes"].items()
        for pair in block["pairs"]
    )
    apply_holm(
        (f"{task} {pair['rate']:g}", pair["mode"], pair)
        for task, figures in tasks.items()
        for pair in figures["rates"]["same_rate"]
    )
    summary: Summary = _jsonable(
        {
            "provenance": _provenance(rows, heads),
            "config": config,
            "notes": notes,
            "failures": _failures(rows),
            "tasks": tasks,
            "task_differences": task_differences(runs, tasks, config),
        }
    )
    return summary


def _failures(rows: Sequence[Row]) -> list[Summary]:
    """Return the runs that failed: their labels, last checkpoints, errors and tracebacks."""
    names = ("task", "arm", "learning_rate", "seed", "update", "error", "traceback")
    return [{name: row[name] for name in names} for row in rows if row["kind"] == "failure"]


def _provenance(rows: Sequence[Row], heads: Sequence[Row]) -> Summary:
    """Return the configuration's hash, the sessions, the data and each task's base models."""
    if not heads:
        return {}
    models = {row["task"]: list(row["models"].values()) for row in rows if row["kind"] == "run" and "task" in row}
    return {**{key: heads[0].get(key) for key in ("config_hash", "sessions", "data")}, "models": models}


def _notes(heads: Sequence[Row], repeated: int) -> list[str]:
    """Return what a reader has to know before any figure."""
    notes = []
    if len({str(row.get("config_hash")) for row in heads}) > 1:
        notes.append("the rows come from several configurations (config_hash differs): do not compare them")
    sessions = heads[0]["sessions"] if heads else []
    for key in ("sources", "versions", "hardware"):
        if len({str(session.get(key)) for session in sessions}) > 1:
            notes.append(f"the sessions of the comparison had different {key}: runs may differ by more than their arm")
    if repeated:
        notes.append(f"{repeated} rows were written twice (a resumed run); the last one counts")
    return notes


def _task(task: str, runs: list[TrainingRun], config: Mapping[str, Any]) -> Summary:
    """Summarise one task: finished runs, each arm at its selected rate, the learning-rate sweep, cost and stability."""
    modes = [mode for mode in MODES if any(mode in run.evals for run in runs)]
    own = config.get("tasks", {}).get(task, {})
    planned = own.get("updates", config.get("updates"))
    target = max([planned if isinstance(planned, int) else 0, *(run.last_update() for run in runs)])
    finished = [run for run in runs if run.finished(modes, target)]
    sweep = runs_by_rate(runs)
    selected = select_rates(sweep, finished)
    at_rate = {arm: sweep[arm][rate] for arm, rate in selected.items()}
    of_arm = {arm: [run for run in group if run in finished] for arm, group in at_rate.items()}
    unfinished = [{**run.label(), "update": run.last_update()} for run in runs if run not in finished]
    several = any(len(by_rate) > 1 for by_rate in sweep.values())
    return {
        "arms": list(sweep),
        "updates": target,
        "runs": {
            "finished": len(finished),
            "planned": _planned_runs(runs, list(sweep), config, own),
            "unfinished": unfinished,
        },
        "rates": {
            "selected": selected,
            "sweep": sweep_figures(sweep, finished, selected, modes, COLLAPSE_FALL) if several else [],
            "same_rate": same_rate(task, sweep, finished, modes) if several else [],
        },
        "modes": {mode: _mode(task, mode, at_rate, of_arm) for mode in modes},
        "cooperation": {arm: cooperation(group) for arm, group in of_arm.items()},
        "messages": {arm: messages(group) for arm, group in of_arm.items()},
        "roles": {arm: roles(group) for arm, group in of_arm.items()},
        "advantage_variance": {arm: advantage_variance([run.trains for run in group]) for arm, group in of_arm.items()},
        "budget": {arm: budget([run.trains for run in group]) for arm, group in of_arm.items()},
        "seconds": {arm: seconds_per_update([run.trains for run in group]) for arm, group in of_arm.items()},
        "explained_variance": {arm: explained_variance([run.trains for run in group]) for arm, group in of_arm.items()},
        "stability": (steady := {arm: stability([run.trains for run in group]) for arm, group in of_arm.items()}),
        "stability_over_agents": {arm: over_agents(figures) for arm, figures in steady.items()},
    }


def _planned_runs(
    runs: Sequence[TrainingRun], arms: Sequence[str], config: Mapping[str, Any], own: Mapping[str, Any]
) -> int:
    """Return the number of runs that the configuration asks for on a task.

    Args:
        runs: Runs that have rows. Their arms and seeds count where the configuration names none.
        arms: Arms that have rows.
        config: Configuration of the comparison.
        own: Configuration of the task.
    """
    configured_arms, seeds = config.get("arms"), config.get("seeds")
    names = configured_arms if isinstance(configured_arms, list) else arms
    seed_count = len(seeds) if isinstance(seeds, list) else seeds
    if not isinstance(seed_count, int):
        seed_count = len({run.seed for run in runs})
    rates = own.get("learning_rates", {})
    return max(len(runs), sum(max(1, len(rates.get(arm, ()))) for arm in names) * seed_count)


def _mode(
    task: str, mode: str, at_rate: Mapping[str, list[TrainingRun]], of_arm: Mapping[str, list[TrainingRun]]
) -> Summary:
    """Summarise one decoding mode of a task: arms, pairs of arms, curves.

    Args:
        task: Name of the task.
        mode: Decoding mode.
        at_rate: Arm -> its runs at the selected learning rate.
        of_arm: The finished ones of these.
    """
    done = {arm: group for arm, group in of_arm.items() if group}
    starts = [run.curve(mode)[0] for group in done.values() for run in group]
    ends = [float(np.mean([run.final(mode)["accuracy"] for run in group])) for group in done.values()]
    # Half-way from the mean start to the best mean end; there is none if no arm rises.
    threshold = (float(np.mean(starts)) + max(ends)) / 2 if ends and max(ends) > np.mean(starts) else None
    order = pair_order(list(done))
    return {
        "threshold": threshold,
        "arms": {arm: _arm(mode, group, threshold) for arm, group in done.items()},
        "pairs": [pair_figures(task, mode, done[first], done[second]) for first, second in order],
        "equal_tokens": equal_tokens(mode, done, order),
        "curves": {arm: _curves(mode, at_rate[arm], of_arm[arm]) for arm in of_arm},
    }


def _arm(mode: str, runs: list[TrainingRun], threshold: float | None) -> Summary:
    """Summarise the finished runs of one arm: accuracy before, during and after training. Lists follow "seeds"."""
    curves = [run.curve(mode) for run in runs]
    last = [run.final(mode) for run in runs]
    reached = [_first_reaching(curve, threshold) for curve in curves]
    falls = [_falls(list(curve.values())) for curve in curves]
    middle = float(np.median([math.inf if update is None else update for update in reached]))
    first = [run.evals[mode][0] for run in runs]
    best = [run.best_by_training(mode) for run in runs]
    return {
        "seeds": [run.seed for run in runs],
        "before": _accuracy(first),
        "after": _accuracy(last),
        "gain": mean_interval([end["accuracy"] - start["accuracy"] for start, end in zip(first, last, strict=True)]),
        "finals": [row["accuracy"] for row in last],
        "iqm": intervals.interquartile_mean([row["accuracy"] for row in last]),
        "area_under_curve": mean_interval([_area(curve) for curve in curves]) if len(curves[0]) > 1 else None,
        "best": mean_interval([b for b in best if b is not None]) if any(b is not None for b in best) else None,
        "threshold_reached": sum(update is not None for update in reached),
        "updates_to_threshold": middle if math.isfinite(middle) else None,
        "largest_fall": [largest for largest, _ in falls],
        "final_fall": [final for _, final in falls],
        "collapsed": sum(final > COLLAPSE_FALL for _, final in falls),
        "graded": sum(row["n"] for row in last),
        "answers": sum(row["answers"] for row in last),
        "no_answer": sum(row["no_answer"] for row in last),
        "not_graded": sum(row["not_graded"] for row in last),
    }


def _accuracy(rows: Sequence[Row]) -> Summary:
    """Return the mean accuracy with its t interval over seeds; for a single seed, with Wilson's interval over items."""
    if len(rows) == 1:
        scores = list(item_means(rows[0]).values())
        found = intervals.wilson_interval(scores)
        error = intervals.item_standard_error(scores)
        return {**interval_figures(found), "mean": rows[0]["accuracy"], "item_standard_error": error}
    return mean_interval([row["accuracy"] for row in rows])


def _area(curve: Mapping[int, float]) -> float:
    """Return the area under the curve of accuracy over updates, divided by the updates: a mean accuracy."""
    updates = list(curve)
    return float(trapezoid(list(curve.values()), updates) / (updates[-1] - updates[0]))


def _first_reaching(curve: Mapping[int, float], threshold: float | None) -> int | None:
    """Return the first evaluated update at or above the threshold."""
    return next((u for u, accuracy in curve.items() if threshold is not None and accuracy >= threshold), None)


def _falls(accuracies: Sequence[float]) -> tuple[float, float]:
    """Return the largest and the final drop below the best accuracy so far."""
    below = np.maximum.accumulate(accuracies) - np.asarray(accuracies)
    return float(below.max()), float(below[-1])


def _curves(mode: str, runs: Sequence[TrainingRun], finished: Sequence[TrainingRun]) -> Summary:
    """Return every run's curve, and the mean of the finished runs with its t interval.

    The mean is given at the updates at which all finished runs were evaluated.
    """
    curves = [run.curve(mode) for run in finished]
    shared = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    band = [intervals.t_interval([curve[update] for curve in curves]) for update in shared]
    seeds = {str(run.seed): run.curve(mode) for run in runs}
    return {
        "finished": len(finished),
        "updates": shared,
        "mean": [point.mean for point in band],
        "low": [point.low for point in band],
        "high": [point.high for point in band],
        "seeds": {seed: {"updates": list(c), "accuracy": list(c.values())} for seed, c in seeds.items()},
    }


def _jsonable(value: Any) -> Any:
    """Return the value with string keys, and None in place of NaN and infinity, which strict JSON does not have."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
