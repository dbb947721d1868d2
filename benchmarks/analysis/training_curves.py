"""Metrics of training over the updates, and the machines and hours of each arm, for the panels of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.analysis.read_rows import Row
from benchmarks.analysis.stability import FEW_AGENTS, TEAM, train_metrics
from benchmarks.analysis.training_runs import TrainingRun

ALL_AGENTS = "all agents"


def training_curves(runs: Sequence[TrainingRun], metrics: Iterable[str]) -> dict[str, dict[str, dict[str, list[Any]]]]:
    """Return how metrics change over the updates.

    Args:
        runs: Runs of one arm.
        metrics: Names of metrics of train rows.

    Returns:
        Metric -> agent -> "updates", and at each of them "mean", "low" and "high" over the runs: mean and extremes. The
        agent is TEAM for metrics of the team. ALL_AGENTS is the mean over agents; in a team of more than FEW_AGENTS
        there is nothing else.
    """
    wanted = set(metrics)
    values: dict[str, dict[str, dict[int, list[float]]]] = {}
    for run in runs:
        for update, row in run.trains.items():
            for (metric, agent), value in _by_agent(row, wanted).items():
                values.setdefault(metric, {}).setdefault(agent, {}).setdefault(update, []).append(value)
    return {
        metric: {agent: _curve(by_update) for agent, by_update in by_agent.items()}
        for metric, by_agent in values.items()
    }


def _by_agent(row: Mapping[str, Any], wanted: set[str]) -> dict[tuple[str, str], float]:
    """Return (metric, agent) -> value of one train row."""
    found: dict[tuple[str, str], float] = {}
    of_agents: dict[str, list[float]] = {}
    for agent, metric, value in train_metrics(row):
        if metric not in wanted:
            continue
        if agent != TEAM:
            of_agents.setdefault(metric, []).append(value)
        if agent == TEAM or len(row["agents"]) <= FEW_AGENTS:
            found[metric, agent] = value
    return found | {(metric, ALL_AGENTS): float(np.mean(every)) for metric, every in of_agents.items()}


def _curve(by_update: Mapping[int, list[float]]) -> dict[str, list[Any]]:
    updates = sorted(by_update)
    found = {name: [float(over(by_update[u])) for u in updates]
             for name, over in (("mean", np.mean), ("low", np.min), ("high", np.max))}  # fmt: skip
    return {"updates": updates, **found}


def machines(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return where and how long the runs of each arm trained.

    Args:
        rows: Rows of a comparison.

    Returns:
        Task -> arm -> "runs", "hours" (of all updates of all runs), "hardware" and "devices" (each once).
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] not in ("run", "train") or "task" not in row:
            continue
        empty = {"runs": 0, "hours": 0.0, "hardware": [], "devices": []}
        entry = found.setdefault(row["task"], {}).setdefault(row["arm"], empty)
        if row["kind"] == "train":
            entry["hours"] += row["wall_s"] / 3600
            continue
        entry["runs"] += 1
        devices = [f"{model['device']} {model['dtype']}" for model in row["models"].values()]
        for name, values in (("hardware", [row["hardware"]]), ("devices", devices)):
            entry[name] += [value for value in dict.fromkeys(values) if value not in entry[name]]
    return found
