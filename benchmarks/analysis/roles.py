"""Diagnostics of each role of a team: its part of the gradient, its influence on the others, and what it writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.analysis.cooperation import cooperation, first_or_last
from benchmarks.analysis.pairs import Summary
from benchmarks.analysis.training_runs import TrainingRun


def roles(runs: Sequence[TrainingRun]) -> dict[str, Summary]:
    """Return the diagnostics of each agent.

    Args:
        runs: Finished runs of one arm.

    Returns:
        Agent -> its figures, means over runs; None where the rows have no value:

        * "gradient_share" and "advantage_variance" (before whitening): mean over updates,
        * "drop": of the score when its messages are shuffled after training, with its t interval over runs,
        * "ignored", "empty" and "repeated": shares in the last sampled evaluation,
        * "tokens": generated in training by one run, and "token_share": their share of the team's.
    """
    drops = cooperation(runs)
    last = [first_or_last(run, True) for run in runs]
    agents = dict.fromkeys(agent for row in [*last, *_train_rows(runs)] for agent in row.get("messages", {}))
    tokens = {agent: _tokens(runs, agent) for agent in agents}
    total = sum(tokens.values())
    return {
        agent: {
            "gradient_share": _mean(m.get("grad_share") for m in _metrics(runs, agent)),
            "advantage_variance": _mean(_square(m.get("advantage_std")) for m in _metrics(runs, agent)),
            "drop": drops.get(agent, {}).get("after"),
            "ignored": _mean(row.get("cooperation", {}).get(agent, {}).get("ignored") for row in last),
            **{name: _mean(row.get("messages", {}).get(agent, {}).get(name) for row in last)
               for name in ("empty", "repeated")},
            "tokens": tokens[agent] if total else None,
            "token_share": tokens[agent] / total if total else None,
        }
        for agent in agents
    }  # fmt: skip


def _train_rows(runs: Sequence[TrainingRun]) -> list[Mapping[str, Any]]:
    return [row for run in runs for row in run.trains.values()]


def _metrics(runs: Sequence[TrainingRun], agent: str) -> list[Mapping[str, Any]]:
    """Return the agent's metrics in every update of every run; without those in which no policy was trained."""
    return [row["agents"][agent] for row in _train_rows(runs) if agent in row["agents"]]


def _tokens(runs: Sequence[TrainingRun], agent: str) -> float:
    """Return the tokens that the agent generated in training, mean over runs."""
    return sum(row["messages"].get(agent, {}).get("tokens", 0) for row in _train_rows(runs)) / max(1, len(runs))


def _square(value: float | None) -> float | None:
    return None if value is None else value * value


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
