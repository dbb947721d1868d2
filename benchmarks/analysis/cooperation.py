"""Whether the agents need each other: what the evaluations with shuffled messages say, and what agents write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.analysis.pairs import Summary, mean_interval
from benchmarks.analysis.stability import FEW_AGENTS
from benchmarks.analysis.training_runs import TrainingRun

_MODE = "sampled"  # the one in which messages are shuffled


def cooperation(group: Sequence[TrainingRun]) -> dict[str, Summary]:
    """Speaker -> the fall of the team's score when its messages are shuffled between episodes, before and after
    training: mean with its t interval over runs. Empty where the rows hold none."""
    found: dict[str, Summary] = {}
    for name, last in (("before", False), ("after", True)):
        rows = [_end(cell, last) for cell in group]
        for speaker in dict.fromkeys(speaker for row in rows for speaker in row.get("cooperation", {})):
            drops = [row["cooperation"][speaker]["drop"] for row in rows if speaker in row.get("cooperation", {})]
            known = [drop for drop in drops if drop is not None]
            if known:
                found.setdefault(speaker, {})[name] = mean_interval(known)
    return found


def messages(group: Sequence[TrainingRun]) -> dict[str, dict[str, float]]:
    """Agent (a large team: all together) -> of its replies in the last sampled evaluation: tokens each, and the shares
    that are empty, repeated and distinct; mean over runs."""
    told: dict[str, list[Mapping[str, Any]]] = {}
    for cell in group:
        for agent, figures in _end(cell, True).get("messages", {}).items():
            told.setdefault(agent, []).append(figures)
    if len(told) > FEW_AGENTS:
        told = {f"all {len(told)}": [figures for each in told.values() for figures in each]}
    return {
        agent: {
            "tokens": float(np.mean([f["tokens"] / f["replies"] for f in figures])),
            **{name: float(np.mean([f[name] for f in figures])) for name in ("empty", "repeated", "distinct")},
        }
        for agent, figures in told.items()
    }


def _end(cell: TrainingRun, last: bool) -> Mapping[str, Any]:
    rows = cell.evals.get(_MODE, {})
    return rows[(max if last else min)(rows)] if rows else {}
