"""From rows to figures: one JSON-able summary per results folder; every number of the report is computed here.

The summary is a pure function of the rows (the bootstrap's generator is pinned), so a lost summary.json comes back
identical. Accuracies are fractions in [0, 1], differences are fractions too; only the text and plots use percent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy.integrate import trapezoid

from benchmarks import intervals
from benchmarks.read_rows import MODES, ReportError, Row
from benchmarks.stability import budget, seconds_per_update, stability

LADDER = ("untrained", "single", "ippo", "mappo", "mappo_chained", "marft_nofactor", "marft", "marft_token", "magrpo")
HEADLINE = ("marft", "ippo")
BOOTSTRAP_SEED = 20240229  # pinned: the same rows give the same intervals
COLLAPSE_FALL = 0.20  # a run that ends this far below its own running best is called collapsed

Summary = dict[str, Any]


@dataclass(eq=False)
class Cell:
    """One run: an arm on a task with one training seed. A row written twice (a resumed run) counts once, the last."""

    arm: str
    seed: int
    evals: dict[str, dict[int, Row]] = field(default_factory=dict)  # mode -> update -> row
    trains: dict[int, Row] = field(default_factory=dict)  # update -> row
    repeated: int = 0

    def curve(self, mode: str) -> dict[int, float]:
        """Update -> accuracy, in order of updates; an evaluation without a graded item has no accuracy."""
        rows = self.evals.get(mode, {})
        return {update: rows[update]["accuracy"] for update in sorted(rows) if rows[update]["item_score"]}

    def final(self, mode: str) -> Row:
        """The last evaluation with an accuracy."""
        return self.evals[mode][max(self.curve(mode))]

    def last_update(self) -> int:
        return max([*self.trains, *(update for rows in self.evals.values() for update in rows)])


def summarise(rows: Sequence[Row]) -> Summary:
    """Every figure of the report, as plain dicts, lists, numbers and None."""
    runs = [row for row in rows if row["kind"] == "run"]
    config = runs[0].get("config", {}) if runs else {}
    notes = [row["text"] for row in rows if row["kind"] == "note"]
    if len({str(row.get("config_hash")) for row in runs}) > 1:
        notes.append("the rows come from runs of several configurations (config_hash differs): do not compare them")
    cells = _cells(rows)
    repeated = sum(cell.repeated for group in cells.values() for cell in group)
    if repeated:
        notes.append(f"{repeated} rows were written twice (a resumed run); the last one counts")
    tasks = {task: _task(task, group, config) for task, group in sorted(cells.items())}
    _correct_over_tasks(tasks)
    provenance = {key: runs[0].get(key) for key in ("config_hash", "hardware", "versions", "started")} if runs else {}
    summary: Summary = _jsonable({"provenance": provenance, "config": config, "notes": notes, "tasks": tasks})
    return summary


def _cells(rows: Iterable[Row]) -> dict[str, list[Cell]]:
    """The runs of each task, in ladder order of arms, then by seed."""
    cells: dict[tuple[str, str, int], Cell] = {}
    for row in rows:
        if row["kind"] not in ("eval", "train"):
            continue
        cell = cells.setdefault((row["task"], row["arm"], row["seed"]), Cell(row["arm"], row["seed"]))
        slot = cell.trains if row["kind"] == "train" else cell.evals.setdefault(row["mode"], {})
        cell.repeated += row["update"] in slot
        slot[row["update"]] = row
    groups: dict[str, list[Cell]] = {}
    for key in sorted(cells, key=lambda key: (ladder_rank(key[1]), key[2])):
        groups.setdefault(key[0], []).append(cells[key])
    return groups


def ladder_rank(arm: str) -> tuple[int, str]:
    """Sort key: place on the ladder; unknown arms come after it, by name."""
    return (LADDER.index(arm), arm) if arm in LADDER else (len(LADDER), arm)


def _task(task: str, cells: list[Cell], config: Mapping[str, Any]) -> Summary:
    """One task: which runs are finished, then each mode, and what training cost."""
    modes = [mode for mode in MODES if any(mode in cell.evals for cell in cells)]
    planned = config.get("updates")
    target = max([planned if isinstance(planned, int) else 0, *(cell.last_update() for cell in cells)])
    finished = [cell for cell in cells if _finished(cell, modes, target)]
    arms = list(dict.fromkeys(cell.arm for cell in cells))
    unfinished = [
        {"arm": cell.arm, "seed": cell.seed, "update": cell.last_update()} for cell in cells if cell not in finished
    ]
    of_arm = {arm: [cell for cell in finished if cell.arm == arm] for arm in arms}
    return {
        "arms": arms,
        "updates": target,
        "runs": {"finished": len(finished), "planned": _planned_runs(cells, arms, config), "unfinished": unfinished},
        "modes": {mode: _mode(task, mode, cells, of_arm) for mode in modes},
        "budget": {arm: budget([c.trains for c in group]) for arm, group in of_arm.items()},
        "seconds": {arm: seconds_per_update([c.trains for c in group]) for arm, group in of_arm.items()},
        "stability": {arm: stability([c.trains for c in group]) for arm, group in of_arm.items()},
    }


def _finished(cell: Cell, modes: Sequence[str], target: int) -> bool:
    """Evaluated before training and after its last update, in every mode, with graded items."""
    last = 0 if cell.arm == "untrained" else target
    return all({0, last} <= set(cell.curve(mode)) for mode in modes)


def _planned_runs(cells: Sequence[Cell], arms: Sequence[str], config: Mapping[str, Any]) -> int:
    """Runs the configuration asks for on a task; without it, the arms and seeds that were seen."""
    named_arms, seeds = config.get("arms"), config.get("seeds")
    arm_count = len(named_arms) if isinstance(named_arms, list) else len(arms)
    seed_count = len(seeds) if isinstance(seeds, list) else seeds
    if not isinstance(seed_count, int):
        seed_count = len({cell.seed for cell in cells})
    return max(len(cells), arm_count * seed_count)


def _mode(task: str, mode: str, cells: list[Cell], of_arm: Mapping[str, list[Cell]]) -> Summary:
    """One way of decoding on one task: arms, pairs of arms, curves."""
    done = {arm: group for arm, group in of_arm.items() if group}
    starts = [cell.curve(mode)[0] for group in done.values() for cell in group]
    ends = [float(np.mean([cell.final(mode)["accuracy"] for cell in group])) for group in done.values()]
    threshold = (float(np.mean(starts)) + max(ends)) / 2 if ends and max(ends) > np.mean(starts) else None
    order = sorted(combinations(reversed(list(done)), 2), key=lambda pair: pair != HEADLINE)
    drawn = {arm: [cell for cell in cells if cell.arm == arm] for arm in of_arm}
    return {
        "threshold": threshold,
        "arms": {arm: _arm(mode, group, threshold) for arm, group in done.items()},
        "pairs": [_pair(task, mode, done[first], done[second]) for first, second in order],
        "curves": {arm: _curves(mode, drawn[arm], of_arm[arm]) for arm in of_arm},
    }


def _arm(mode: str, group: list[Cell], threshold: float | None) -> Summary:
    """Before, after and the course between, of the finished runs of one arm. Lists follow `seeds`."""
    curves = [cell.curve(mode) for cell in group]
    last = [cell.final(mode) for cell in group]
    reached = [_first_reaching(curve, threshold) for curve in curves]
    falls = [_falls(list(curve.values())) for curve in curves]
    middle = float(np.median([math.inf if update is None else update for update in reached]))
    first = [cell.evals[mode][0] for cell in group]
    return {
        "seeds": [cell.seed for cell in group],
        "before": _accuracy(first),
        "after": _accuracy(last),
        "finals": [row["accuracy"] for row in last],
        "iqm": intervals.interquartile_mean([row["accuracy"] for row in last]),
        "area_under_curve": _mean_interval([_area(curve) for curve in curves]) if len(curves[0]) > 1 else None,
        "threshold_reached": sum(update is not None for update in reached),
        "updates_to_threshold": middle if math.isfinite(middle) else None,
        "largest_fall": [largest for largest, _ in falls],
        "final_fall": [final for _, final in falls],
        "collapsed": sum(final > COLLAPSE_FALL for _, final in falls),
        "graded": sum(row["n"] for row in last),
        "no_answer": sum(row["no_answer"] for row in last),
        "not_graded": sum(row["not_graded"] for row in last),
    }


def _accuracy(rows: Sequence[Row]) -> Summary:
    """Mean accuracy with the t interval over seeds; a single seed gets Wilson's interval over its items instead."""
    if len(rows) == 1:
        scores = list(_item_means(rows[0]).values())
        found = intervals.wilson_interval(scores)
        error = intervals.item_standard_error(scores)
        return {**_interval(found), "mean": rows[0]["accuracy"], "item_standard_error": error}
    return _mean_interval([row["accuracy"] for row in rows])


def _mean_interval(values: Sequence[float]) -> Summary:
    return _interval(intervals.t_interval(values))


def _interval(found: intervals.Interval) -> Summary:
    return {"mean": found.mean, "low": found.low, "high": found.high, "method": found.method}


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


def _item_means(row: Row) -> dict[int, float]:
    """Item -> mean score; an item sampled K times is one item."""
    scores: dict[int, list[float]] = {}
    for item, score in zip(row["item_index"], row["item_score"], strict=True):
        scores.setdefault(item, []).append(score)
    return {item: sum(values) / len(values) for item, values in sorted(scores.items())}


def _pair(task: str, mode: str, first: list[Cell], second: list[Cell]) -> Summary:
    """Paired difference first - second at the end of training, over seeds finished in both, item by item."""
    names = {"first": first[0].arm, "second": second[0].arm}
    theirs = {cell.seed: cell for cell in second}
    both = [(cell, theirs[cell.seed]) for cell in first if cell.seed in theirs]
    alone = len(first) + len(second) - 2 * len(both)
    base = {**names, "seeds": [one.seed for one, _ in both], "unpaired_seeds": alone}
    if not both:
        return {**base, "verdict": intervals.INCONCLUSIVE, "reason": "no seed is finished in both arms"}
    ends = [(one.final(mode), two.final(mode)) for one, two in both]
    items = [_item_differences(task, mode, one, two) for one, two in ends]
    found = intervals.paired_difference(items, np.random.default_rng(BOOTSTRAP_SEED))
    together = np.concatenate(items)
    return {
        **base,
        **_interval(found.interval),
        "by_seed": list(found.by_seed),
        "p": found.p_value,
        "minimum_detectable": found.minimum_detectable,
        "probability_of_improvement": intervals.probability_of_improvement(
            [one["accuracy"] for one, _ in ends], [two["accuracy"] for _, two in ends]
        ),
        "items": int(together.size),
        "items_left_out": sum(len(set(one["item_index"]) ^ set(two["item_index"])) for one, two in ends),
        "first_better": int((together > 0).sum()),
        "second_better": int((together < 0).sum()),
        "verdict": intervals.verdict(found.interval, names["first"], names["second"]),
        "reason": "one seed: no interval" if len(both) == 1 else "",
    }


def _item_differences(task: str, mode: str, one: Row, two: Row) -> np.ndarray:
    """[I] score differences on the items that both runs were graded on."""
    first, second = _item_means(one), _item_means(two)
    shared = [item for item in first if item in second]
    if not shared:
        raise ReportError(
            f"task {task}, {mode}, seed {one['seed']}: {one['arm']} and {two['arm']} share no evaluation item, "
            "so they cannot be paired; expected the same item_index in every arm"
        )
    return np.array([first[item] - second[item] for item in shared])


def _curves(mode: str, drawn: Sequence[Cell], finished: Sequence[Cell]) -> Summary:
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


def _correct_over_tasks(tasks: Mapping[str, Summary]) -> None:
    """Write each pair's p value after Holm over the tasks it was compared on, mode by mode."""
    families: dict[tuple[str, str, str], dict[str, Summary]] = {}
    for task, figures in tasks.items():
        for mode, block in figures["modes"].items():
            for pair in block["pairs"]:
                families.setdefault((mode, pair["first"], pair["second"]), {})[task] = pair
    for family in families.values():
        corrected = intervals.holm({task: pair.get("p", math.nan) for task, pair in family.items()})
        for task, pair in family.items():
            pair["p_holm"], pair["holm_tasks"] = corrected[task], len(family)


def _jsonable(value: Any) -> Any:
    """The same with string keys and None for nan, so that summary.json is strict JSON."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
