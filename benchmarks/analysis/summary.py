"""From rows to figures: one JSON-able summary per results folder; every number of the report is computed here.

The summary is a pure function of the rows (the bootstrap's generator is pinned), so a lost summary.json comes back
identical. Accuracies are fractions in [0, 1], differences are fractions too; only the text and plots use percent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.integrate import trapezoid

from benchmarks.analysis import intervals
from benchmarks.analysis.cooperation import cooperation, messages
from benchmarks.analysis.learning_rates import best_rates, runs_by_rate, same_rate, trial_figures
from benchmarks.analysis.pairs import Summary, correct, equal_tokens, interval_figures, mean_interval, pair_figures
from benchmarks.analysis.read_rows import MODES, Row
from benchmarks.analysis.stability import budget, explained_variance, over_agents, seconds_per_update, stability
from benchmarks.analysis.training_runs import TrainingRun, group_runs, item_means, pair_order

COLLAPSE_FALL = 0.20  # a run that ends this far below its own running best is called collapsed


def summarise(rows: Sequence[Row]) -> Summary:
    """Every figure of the report, as plain dicts, lists, numbers and None."""
    runs = [row for row in rows if row["kind"] == "run"]
    config = runs[0].get("config", {}) if runs else {}
    notes = [row["text"] for row in rows if row["kind"] == "note"]
    cells = group_runs(rows)
    notes += _notes(rows, runs, sum(cell.repeated for group in cells.values() for cell in group))
    tasks = {task: _task(task, group, config) for task, group in sorted(cells.items())}
    correct(
        (task, mode, pair)
        for task, figures in tasks.items()
        for mode, block in figures["modes"].items()
        for pair in block["pairs"]
    )
    correct(
        (f"{task} {pair['rate']:g}", pair["mode"], pair)
        for task, figures in tasks.items()
        for pair in figures["rates"]["same_rate"]
    )
    summary: Summary = _jsonable(
        {"provenance": _provenance(rows, runs), "config": config, "notes": notes, "tasks": tasks}
    )
    return summary


def _provenance(rows: Sequence[Row], runs: Sequence[Row]) -> Summary:
    """The configuration's hash, what ran it (each session), on which data, and each task's base models."""
    if not runs:
        return {}
    models = {row["task"]: list(row["models"].values()) for row in rows if row["kind"] == "cell" and "models" in row}
    return {**{key: runs[0].get(key) for key in ("config_hash", "sessions", "data")}, "models": models}


def _notes(rows: Sequence[Row], runs: Sequence[Row], repeated: int) -> list[str]:
    """What a reader has to know before any figure."""
    notes = []
    if len({str(row.get("config_hash")) for row in runs}) > 1:
        notes.append("the rows come from runs of several configurations (config_hash differs): do not compare them")
    sessions = runs[0].get("sessions", []) if runs else []
    for key in ("sources", "versions", "hardware"):
        if len({str(session.get(key)) for session in sessions}) > 1:
            notes.append(f"the comparison was gone on with under other {key}: runs may differ by more than their arm")
    if repeated:
        notes.append(f"{repeated} rows were written twice (a resumed run); the last one counts")
    return notes


def _task(task: str, cells: list[TrainingRun], config: Mapping[str, Any]) -> Summary:
    """One task: which runs are finished, each arm at its best rate in each mode, all trials, and what training cost."""
    modes = [mode for mode in MODES if any(mode in cell.evals for cell in cells)]
    own = config.get("tasks", {}).get(task, {})
    planned = own.get("updates", config.get("updates"))
    target = max([planned if isinstance(planned, int) else 0, *(cell.last_update() for cell in cells)])
    finished = [cell for cell in cells if cell.finished(modes, target)]
    trials = runs_by_rate(cells)
    chosen = best_rates(trials, finished)
    best = {arm: trials[arm][rate] for arm, rate in chosen.items()}
    of_arm = {arm: [cell for cell in group if cell in finished] for arm, group in best.items()}
    unfinished = [{**cell.label(), "update": cell.last_update()} for cell in cells if cell not in finished]
    several = any(len(by_rate) > 1 for by_rate in trials.values())
    return {
        "arms": list(trials),
        "updates": target,
        "runs": {
            "finished": len(finished),
            "planned": _planned_runs(cells, list(trials), config, own),
            "unfinished": unfinished,
        },
        "rates": {
            "chosen": chosen,
            "trials": trial_figures(trials, finished, chosen, modes, COLLAPSE_FALL) if several else [],
            "same_rate": same_rate(task, trials, finished, modes) if several else [],
        },
        "modes": {mode: _mode(task, mode, best, of_arm) for mode in modes},
        "cooperation": {arm: cooperation(group) for arm, group in of_arm.items()},
        "messages": {arm: messages(group) for arm, group in of_arm.items()},
        "budget": {arm: budget([c.trains for c in group]) for arm, group in of_arm.items()},
        "seconds": {arm: seconds_per_update([c.trains for c in group]) for arm, group in of_arm.items()},
        "explained_variance": {arm: explained_variance([c.trains for c in group]) for arm, group in of_arm.items()},
        "stability": (steady := {arm: stability([c.trains for c in group]) for arm, group in of_arm.items()}),
        "stability_over_agents": {arm: over_agents(f) for arm, f in steady.items()},
    }


def _planned_runs(
    cells: Sequence[TrainingRun], arms: Sequence[str], config: Mapping[str, Any], own: Mapping[str, Any]
) -> int:
    """Runs the configuration asks for on a task (own: its part); without it, the arms and seeds that were seen."""
    named_arms, seeds = config.get("arms"), config.get("seeds")
    named = named_arms if isinstance(named_arms, list) else arms
    seed_count = len(seeds) if isinstance(seeds, list) else seeds
    if not isinstance(seed_count, int):
        seed_count = len({cell.seed for cell in cells})
    rates = own.get("learning_rates", {})
    return max(len(cells), sum(max(1, len(rates.get(arm, ()))) for arm in named) * seed_count)


def _mode(
    task: str, mode: str, best: Mapping[str, list[TrainingRun]], of_arm: Mapping[str, list[TrainingRun]]
) -> Summary:
    """One way of decoding on one task, each arm at its best rate: arms, pairs of arms, curves."""
    done = {arm: group for arm, group in of_arm.items() if group}
    starts = [cell.curve(mode)[0] for group in done.values() for cell in group]
    ends = [float(np.mean([cell.final(mode)["accuracy"] for cell in group])) for group in done.values()]
    threshold = (float(np.mean(starts)) + max(ends)) / 2 if ends and max(ends) > np.mean(starts) else None
    order = pair_order(list(done))
    return {
        "threshold": threshold,
        "arms": {arm: _arm(mode, group, threshold) for arm, group in done.items()},
        "pairs": [pair_figures(task, mode, done[first], done[second]) for first, second in order],
        "equal_tokens": equal_tokens(mode, done, order),
        "curves": {arm: _curves(mode, best[arm], of_arm[arm]) for arm in of_arm},
    }


def _arm(mode: str, group: list[TrainingRun], threshold: float | None) -> Summary:
    """Before, after and the course between, of the finished runs of one arm. Lists follow `seeds`."""
    curves = [cell.curve(mode) for cell in group]
    last = [cell.final(mode) for cell in group]
    reached = [_first_reaching(curve, threshold) for curve in curves]
    falls = [_falls(list(curve.values())) for curve in curves]
    middle = float(np.median([math.inf if update is None else update for update in reached]))
    first = [cell.evals[mode][0] for cell in group]
    best = [cell.best_by_training(mode) for cell in group]
    return {
        "seeds": [cell.seed for cell in group],
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
        "answers": sum(row.get("answers", row["n"]) for row in last),
        "no_answer": sum(row["no_answer"] for row in last),
        "not_graded": sum(row["not_graded"] for row in last),
    }


def _accuracy(rows: Sequence[Row]) -> Summary:
    """Mean accuracy with the t interval over seeds; a single seed gets Wilson's interval over its items instead."""
    if len(rows) == 1:
        scores = list(item_means(rows[0]).values())
        found = intervals.wilson_interval(scores)
        error = intervals.item_standard_error(scores)
        return {**interval_figures(found), "mean": rows[0]["accuracy"], "item_standard_error": error}
    return mean_interval([row["accuracy"] for row in rows])


def _area(curve: Mapping[int, float]) -> float:
    """Area under accuracy over updates, divided by the updates: the mean accuracy on the way."""
    updates = list(curve)
    return float(trapezoid(list(curve.values()), updates) / (updates[-1] - updates[0]))


def _first_reaching(curve: Mapping[int, float], threshold: float | None) -> int | None:
    """First evaluated update at or above the threshold."""
    return next((u for u, accuracy in curve.items() if threshold is not None and accuracy >= threshold), None)


def _falls(accuracies: Sequence[float]) -> tuple[float, float]:
    """Largest and final fall from the running best."""
    below = np.maximum.accumulate(accuracies) - np.asarray(accuracies)
    return float(below.max()), float(below[-1])


def _curves(mode: str, drawn: Sequence[TrainingRun], finished: Sequence[TrainingRun]) -> Summary:
    """Every seed's curve, and over finished seeds the mean with its t interval where all of them were evaluated."""
    curves = [cell.curve(mode) for cell in finished]
    shared = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    band = [intervals.t_interval([curve[update] for curve in curves]) for update in shared]
    seeds = {str(cell.seed): cell.curve(mode) for cell in drawn}
    return {
        "finished": len(finished),
        "updates": shared,
        "mean": [point.mean for point in band],
        "low": [point.low for point in band],
        "high": [point.high for point in band],
        "seeds": {seed: {"updates": list(c), "accuracy": list(c.values())} for seed, c in seeds.items()},
    }


def _jsonable(value: Any) -> Any:
    """The same with string keys and None for nan, so that summary.json is strict JSON."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
