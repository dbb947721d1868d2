"""What training cost and how steady it was, from train rows: budget, seconds, per-agent stability.

Everywhere `runs` is a list of finished runs of one arm, each a mapping update -> train row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

Run = Mapping[int, Mapping[str, Any]]

COUNTED = ("episodes", "prompt_tokens", "generated_tokens", "trained_tokens", "optimiser_steps", "not_graded",
           "truncated")  # so far  # fmt: skip
NOT_STABILITY = {"seed", "update", "wall_s", *COUNTED}
FEW_AGENTS = 4  # more than that share a row of the report
SMALL_CEILING = 0.05  # below it the label explains nothing
TEAM = "team"  # figures of the whole row, not of one agent


def budget(runs: Sequence[Run]) -> dict[str, Any]:
    """Mean over runs of what one run used: cumulative counts of its last update, summed wall time."""
    ends = [run[max(run)] for run in runs if run]
    used: dict[str, Any] = {}
    for key in COUNTED:
        values = [end[key] for end in ends if _number(end.get(key))]
        if ends and len(values) == len(ends):
            used[key] = float(np.mean(values))
    used["not_cumulative"] = [key for key in used if any(_falls(run, key) for run in runs)]
    walls = [sum(row.get("wall_s", 0.0) for row in run.values()) for run in runs if run]
    if any(walls):
        used["wall_s"] = float(np.mean(walls))
    return used if ends else {}


def seconds_per_update(runs: Sequence[Run]) -> dict[str, float]:
    """Mean seconds of one update: `wall_s`, and each stage the rows name, in order of first appearance."""
    rows = [row for run in runs for row in run.values()]
    stages = dict.fromkeys(stage for row in rows for stage in (row.get("seconds") or {}))
    spent = {stage: float(np.mean([row["seconds"].get(stage, 0.0) for row in rows if row.get("seconds")]))
             for stage in stages}  # fmt: skip
    walls = [row["wall_s"] for row in rows if _number(row.get("wall_s"))]
    return {"wall_s": float(np.mean(walls)), **spent} if walls else spent


def stability(runs: Sequence[Run]) -> dict[str, dict[str, dict[str, float]]]:
    """Agent -> metric -> {late, min, max}: mean over the last quarter of updates, extremes over all; over all runs.

    Figures of the whole row (explained variance, effective sample size, ...) stand under the name `team`.
    Absent, null and nan figures are left out.
    """
    late: dict[tuple[str, str], list[float]] = {}
    every: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        start = sorted(run)[len(run) * 3 // 4] if run else 0
        for update, row in run.items():
            for agent, metric, value in _figures(row):
                every.setdefault((agent, metric), []).append(value)
                if update >= start:
                    late.setdefault((agent, metric), []).append(value)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (agent, metric), values in every.items():
        recent = late.get((agent, metric), [])
        mean = float(np.mean(recent)) if recent else math.nan
        found.setdefault(agent, {})[metric] = {"late": mean, "min": min(values), "max": max(values)}
    return found


def explained_variance(runs: Sequence[Run]) -> dict[str, dict[str, float | None]]:
    """Place in the round -> mean over the last quarter of updates of the critic's explained variance, its ceiling
    (None where the rows hold no label) and the first as a share of the second, where that is worth dividing by."""
    late = [run[update] for run in runs for update in sorted(run)[len(run) * 3 // 4 :]]
    explained, ceiling = (
        _by_place(late, "explained_variance_by_position"),
        _by_place(late, "explained_variance_ceiling"),
    )
    found: dict[str, dict[str, float | None]] = {}
    for place, value in explained.items():
        top = ceiling.get(place)
        found[place] = {
            "explained": value,
            "ceiling": top,
            "share": value / top if top and top > SMALL_CEILING else None,
        }
    return found


def _by_place(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for row in rows:
        for place, value in (row.get(key) or {}).items():
            if _number(value):
                values.setdefault(place, []).append(value)
    return {place: float(np.mean(values[place])) for place in sorted(values, key=lambda place: (len(place), place))}


def over_agents(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """The same figures of ``stability`` for several agents together: mean of the means, extremes of the extremes."""
    together: dict[str, dict[str, float]] = {}
    agents = [metrics for name, metrics in found.items() if name != TEAM]
    for metric in dict.fromkeys(metric for metrics in agents for metric in metrics):
        there = [metrics[metric] for metrics in agents if metric in metrics]
        late = [figures["late"] for figures in there if _number(figures["late"])]
        together[metric] = {
            "late": float(np.mean(late)) if late else math.nan,
            "min": min(figures["min"] for figures in there),
            "max": max(figures["max"] for figures in there),
        }
    return together


def _figures(row: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """(agent, metric, value) of every finite number in a train row that is not budget."""
    for agent, metrics in (row.get("agents") or {}).items():
        for metric, value in metrics.items():
            if _number(value):
                yield agent, metric, float(value)
    for metric, value in row.items():
        if metric not in NOT_STABILITY and _number(value):
            yield TEAM, metric, float(value)


def _falls(run: Run, key: str) -> bool:
    """A cumulative count never falls; where it does, the rows hold counts per update."""
    counts = [run[update][key] for update in sorted(run) if _number(run[update].get(key))]
    return any(later < earlier for earlier, later in pairwise(counts))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
