"""Cooperation of a team: effect of shuffling an agent's messages, and statistics of what each agent writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.analysis.pairs import Summary, mean_interval
from benchmarks.analysis.stability import FEW_AGENTS
from benchmarks.analysis.training_runs import TrainingRun

_MODE = "sampled"  # messages are shuffled in sampled evaluations only


def cooperation(runs: Sequence[TrainingRun]) -> dict[str, Summary]:
    """Return how much the team's score drops when a speaker's messages are shuffled between episodes.

    Args:
        runs: Finished runs of one arm.

    Returns:
        Speaker -> "before" and "after" training -> mean with its t interval over runs. Empty if no message was
        shuffled.
    """
    found: dict[str, Summary] = {}
    for name, last in (("before", False), ("after", True)):
        rows = [first_or_last(run, last) for run in runs]
        for speaker in dict.fromkeys(speaker for row in rows for speaker in row.get("cooperation", {})):
            drops = [row["cooperation"][speaker]["drop"] for row in rows if speaker in row.get("cooperation", {})]
            known = [drop for drop in drops if drop is not None]
            if known:
                found.setdefault(speaker, {})[name] = mean_interval(known)
    return found


def messages(runs: Sequence[TrainingRun]) -> dict[str, dict[str, float]]:
    """Return statistics of the replies in the last sampled evaluation.

    Args:
        runs: Finished runs of one arm.

    Returns:
        Agent -> "tokens" per reply and the shares "empty", "repeated" and "distinct" of its replies, mean over runs. A
        team of more than FEW_AGENTS agents is one entry, the mean over agents and runs.
    """
    by_agent: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        for agent, figures in first_or_last(run, True).get("messages", {}).items():
            by_agent.setdefault(agent, []).append(figures)
    if len(by_agent) > FEW_AGENTS:
        by_agent = {f"all {len(by_agent)}": [figures for each in by_agent.values() for figures in each]}
    return {
        agent: {
            "tokens": float(np.mean([f["tokens"] / f["replies"] for f in figures])),
            **{name: float(np.mean([f[name] for f in figures])) for name in ("empty", "repeated", "distinct")},
        }
        for agent, figures in by_agent.items()
    }


def first_or_last(run: TrainingRun, last: bool) -> Mapping[str, Any]:
    """Return the first or the last sampled evaluation of a run; empty without one."""
    rows = run.evals.get(_MODE, {})
    return rows[(max if last else min)(rows)] if rows else {}
