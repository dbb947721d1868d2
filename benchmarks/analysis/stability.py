"""Cost and stability of training, from train rows: budget, seconds, and metrics of each agent.

In all functions ``runs`` are the finished runs of one arm, each a mapping from update to train row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

Run = Mapping[int, Mapping[str, Any]]

COUNTED = ("episodes", "prompt_tokens", "generated_tokens", "trained_tokens", "optimiser_steps", "not_graded",
           "truncated")  # cumulative counts  # fmt: skip
NOT_STABILITY = {"seed", "update", "wall_s", *COUNTED}
FEW_AGENTS = 4  # larger teams share a row of the report
SMALL_CEILING = 0.05  # below it, the share of the ceiling is a quotient of two noises
TEAM = "team"  # name for metrics of the whole row


def budget(runs: Sequence[Run]) -> dict[str, Any]:
    """Return what one run used: its last cumulative counts and its total wall time, mean over runs.

    "not_cumulative" lists counts that fall during a run, which cumulative counts cannot do.
    """
    ends = [run[max(run)] for run in runs if run]
    used: dict[str, Any] = {}
    for key in COUNTED:
        values = [end[key] for end in ends if _is_finite(end.get(key))]
        if ends and len(values) == len(ends):
            used[key] = float(np.mean(values))
    used["not_cumulative"] = [key for key in used if any(_falls(run, key) for run in runs)]
    walls = [sum(row.get("wall_s", 0.0) for row in run.values()) for run in runs if run]
    if any(walls):
        used["wall_s"] = float(np.mean(walls))
    return used if ends else {}


def seconds_per_update(runs: Sequence[Run]) -> dict[str, float]:
    """Return the mean seconds of one update: "wall_s" and each stage, in order of first appearance."""
    rows = [row for run in runs for row in run.values()]
    stages = dict.fromkeys(stage for row in rows for stage in (row.get("seconds") or {}))
    spent = {stage: float(np.mean([row["seconds"].get(stage, 0.0) for row in rows if row.get("seconds")]))
             for stage in stages}  # fmt: skip
    walls = [row["wall_s"] for row in rows if _is_finite(row.get("wall_s"))]
    return {"wall_s": float(np.mean(walls)), **spent} if walls else spent


def stability(runs: Sequence[Run]) -> dict[str, dict[str, dict[str, float]]]:
    """Summarise every metric of every agent over all runs.

    Returns:
        Agent -> metric -> "late" (mean over the last quarter of updates), "min" and "max" (over all updates). Metrics
        of the whole row, such as the explained variance, are under the name "team". Missing and non-finite values are
        left out.
    """
    late: dict[tuple[str, str], list[float]] = {}
    every: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        start = sorted(run)[len(run) * 3 // 4] if run else 0
        for update, row in run.items():
            for agent, metric, value in train_metrics(row):
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
    """Return the critic's explained variance by position in the round, mean over the last quarter of updates.

    Returns:
        Position -> "explained", "ceiling" (explained variance of the label of ``Task.progress``; None without a label)
        and "share" (the first divided by the second; None if the ceiling is small).
    """
    late = [run[update] for run in runs for update in sorted(run)[len(run) * 3 // 4 :]]
    explained, ceilings = (
        _by_position(late, "explained_variance_by_position"),
        _by_position(late, "explained_variance_ceiling"),
    )
    found: dict[str, dict[str, float | None]] = {}
    for position, value in explained.items():
        ceiling = ceilings.get(position)
        found[position] = {
            "explained": value,
            "ceiling": ceiling,
            "share": value / ceiling if ceiling and ceiling > SMALL_CEILING else None,
        }
    return found


def advantage_variance(runs: Sequence[Run]) -> dict[str, float]:
    """Return the variance of the advantages by position in the round, mean over the last quarter of updates."""
    late = [run[update] for run in runs for update in sorted(run)[len(run) * 3 // 4 :]]
    return _by_position(late, "advantage_variance_by_position")


def _by_position(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, float]:
    """Return position -> mean over rows, with the positions in numerical order ("2" before "10")."""
    values: dict[str, list[float]] = {}
    for row in rows:
        for position, value in (row.get(key) or {}).items():
            if _is_finite(value):
                values.setdefault(position, []).append(value)
    return {position: float(np.mean(values[position])) for position in sorted(values, key=lambda p: (len(p), p))}


def over_agents(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Combine the result of ``stability`` over agents: mean of the means, extremes of the extremes."""
    together: dict[str, dict[str, float]] = {}
    agents = [metrics for name, metrics in found.items() if name != TEAM]
    for metric in dict.fromkeys(metric for metrics in agents for metric in metrics):
        figures = [metrics[metric] for metrics in agents if metric in metrics]
        late = [each["late"] for each in figures if _is_finite(each["late"])]
        together[metric] = {
            "late": float(np.mean(late)) if late else math.nan,
            "min": min(each["min"] for each in figures),
            "max": max(each["max"] for each in figures),
        }
    return together


def train_metrics(row: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Yield (agent, metric, value) for every finite number of a train row that is not part of the budget."""
    for agent, metrics in (row.get("agents") or {}).items():
        for metric, value in metrics.items():
            if _is_finite(value):
                yield agent, metric, float(value)
    for metric, value in row.items():
        if metric not in NOT_STABILITY and _is_finite(value):
            yield TEAM, metric, float(value)


def _falls(run: Run, key: str) -> bool:
    """Return whether a count falls; then the rows hold counts per update instead of cumulative ones."""
    counts = [run[update][key] for update in sorted(run) if _is_finite(run[update].get(key))]
    return any(later < earlier for earlier, later in pairwise(counts))


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
