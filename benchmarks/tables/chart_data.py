"""Data of the report's interactive figures: an x axis for each, and a column for each line or edge of a band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.analysis.intervals import FEW_SEEDS
from benchmarks.analysis.pairs import Summary
from benchmarks.analysis.read_rows import Row
from benchmarks.analysis.training_curves import ALL_AGENTS, training_curves
from benchmarks.analysis.training_runs import group_runs
from benchmarks.tables.curves import COLOURS, DASHES, UNKNOWN_ARM

Chart = dict[str, Any]
DASH_LENGTHS = {"-": [], "--": [8, 4], "-.": [8, 4, 2, 4], ":": [2, 3]}  # in pixels, of the dashes of the PNG curves
PANELS = {
    "reward": "training reward",
    "kl_reference": "KL divergence from the starting policy",
    "entropy": "entropy of the policy",
    "clip_fraction": "share of clipped actions",
    "grad_norm": "norm of the gradient",
    "explained_variance": "explained variance of the critic",
    "mean_length": "tokens per reply",
    "factor_ess": "effective sample size of the factor",
}  # metric of train rows -> title of its panel


def learning_curves(summary: Summary) -> list[Chart]:
    """Return a figure for each task and decoding mode: mean, 95 % band and every seed of each arm, in percent.

    Returns:
        Figures with "task", "mode", "title", "unit", "x" (updates), and "series": columns with "arm", "role" ("mean",
        "low", "high" or "seed"), "label", "colour", "dash" and "y" (null where there is no value).
    """
    charts = []
    for task, figures in summary["tasks"].items():
        for mode, block in figures["modes"].items():
            seeds = [seed for curve in block["curves"].values() for seed in curve["seeds"].values()]
            x = sorted({update for seed in seeds for update in seed["updates"]})
            series = [
                column
                for position, (arm, curve) in enumerate(block["curves"].items())
                for column in _arm_columns(arm, position, curve, x)
            ]
            title = f"{task}: accuracy on new problems, {mode} decoding"
            charts.append({"task": task, "mode": mode, "title": title, "unit": "%", "x": x, "series": series})
    return charts


def _arm_columns(arm: str, position: int, curve: Summary, x: Sequence[int]) -> list[Chart]:
    """Return the columns of one arm."""
    style = _style(arm, position)
    columns = [{**style, "role": "mean", "label": arm, "y": _column(x, curve["updates"], curve["mean"], 100)}]
    if curve["finished"] >= FEW_SEEDS:
        for edge in ("low", "high"):
            inside = [None if value is None else min(1.0, max(0.0, value)) for value in curve[edge]]
            columns.append({**style, "role": edge, "y": _column(x, curve["updates"], inside, 100)})
    for seed, own in curve["seeds"].items():
        y = _column(x, own["updates"], own["accuracy"], 100)
        columns.append({**style, "role": "seed", "label": f"{arm}, seed {seed}", "y": y})
    return columns


def stability_panels(summary: Summary, rows: Sequence[Row]) -> list[Chart]:
    """Return the panels of training: a metric over the updates, with the extremes over the seeds as a band.

    A panel has the metric of the team, or else its mean over the agents. Arms are at their selected learning rate.
    """
    charts = []
    for task, runs in sorted(group_runs(rows).items()):
        if task not in summary["tasks"]:
            continue
        selected = summary["tasks"][task]["rates"]["selected"]
        found = {
            arm: training_curves([run for run in runs if run.arm == arm and run.rate == rate], PANELS)
            for arm, rate in selected.items()
        }
        for metric in PANELS:
            of_arms = {arm: _whole_team(curves[metric]) for arm, curves in found.items() if metric in curves}
            if of_arms:
                charts.append({**_panel(of_arms), "task": task, "mode": "", "title": f"{task}: {PANELS[metric]}"})
    return charts


def _whole_team(by_agent: Mapping[str, Chart]) -> Chart:
    return by_agent[ALL_AGENTS] if ALL_AGENTS in by_agent else next(iter(by_agent.values()))


def _panel(of_arms: Mapping[str, Chart]) -> Chart:
    x = sorted({update for curve in of_arms.values() for update in curve["updates"]})
    series = []
    for position, (arm, curve) in enumerate(of_arms.items()):
        for role in ("mean", "low", "high"):
            y = _column(x, curve["updates"], curve[role], 1)
            series.append({**_style(arm, position), "role": role, "label": arm, "y": y})
    return {"unit": "", "x": x, "series": series}


def _style(arm: str, position: int) -> Chart:
    dash = DASH_LENGTHS[DASHES[position % len(DASHES)]]
    return {"arm": arm, "colour": COLOURS.get(arm, UNKNOWN_ARM), "dash": dash}


def _column(x: Sequence[int], updates: Sequence[int], values: Sequence[float | None], scale: float) -> list[Any]:
    """Return the values at each of ``x``, multiplied and rounded; None where there is none."""
    known = {u: round(scale * value, 5) for u, value in zip(updates, values, strict=True) if value is not None}
    return [known.get(update) for update in x]
