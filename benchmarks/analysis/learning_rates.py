"""Learning-rate trials: which of an arm's rates counts, chosen without a look at the test items, and all of them told.

There is no validation split: a task draws its training problems afresh, and a batch is played before it is learned
from, so the training reward is an estimate on new problems. An arm's best rate is the one with the highest mean
training reward over the last quarter of updates, mean over seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.analysis.pairs import Summary, mean_interval, pair_figures
from benchmarks.analysis.training_runs import TrainingRun, steps

Trials = dict[str, dict[float | None, list[TrainingRun]]]  # arm -> rate -> its runs


def runs_by_rate(cells: Sequence[TrainingRun]) -> Trials:
    """In the order of the cells."""
    found: Trials = {}
    for cell in cells:
        found.setdefault(cell.arm, {}).setdefault(cell.rate, []).append(cell)
    return found


def best_rates(trials: Trials, finished: Sequence[TrainingRun]) -> dict[str, float | None]:
    """Each arm's rate, of those with the most finished seeds; the lower one wins a tie."""
    chosen: dict[str, float | None] = {}
    for arm, by_rate in trials.items():
        done = {rate: [cell for cell in group if cell in finished] for rate, group in by_rate.items()}
        most = max(len(group) for group in done.values())
        standing = [rate for rate, group in done.items() if len(group) == most]
        chosen[arm] = max(standing, key=lambda rate: (_reward(done[rate]), -(rate or 0.0)))
    return chosen


def _reward(group: Sequence[TrainingRun]) -> float:
    """Mean late training reward over seeds; -inf where nothing was graded."""
    rewards = [reward for cell in group if (reward := cell.late_reward()) is not None]
    return float(np.mean(rewards)) if rewards else -np.inf


def trial_figures(
    trials: Trials,
    finished: Sequence[TrainingRun],
    chosen: Mapping[str, float | None],
    modes: Sequence[str],
    fall: float,
) -> list[Summary]:
    """Every trial: the figure it was judged by, and what came of it on the test items. fall: of a collapsed run."""
    table = []
    for arm, by_rate in trials.items():
        for rate, group in by_rate.items():
            done = [cell for cell in group if cell in finished]
            reward = _reward(done)
            after = {mode: [cell.final(mode)["accuracy"] for cell in done] for mode in modes}
            table.append(
                {
                    "arm": arm,
                    "rate": rate,
                    "seeds": [cell.seed for cell in done],
                    "started": len(group),
                    "reward": reward if np.isfinite(reward) else None,
                    "chosen": rate == chosen[arm],
                    "after": {mode: mean_interval(values) if values else None for mode, values in after.items()},
                    "finals": after,
                    "collapsed": sum(any(_collapsed(cell, mode, fall) for mode in modes) for cell in done),
                }
            )
    return table


def _collapsed(cell: TrainingRun, mode: str, fall: float) -> bool:
    accuracies = list(cell.curve(mode).values())
    return max(accuracies) - accuracies[-1] > fall


def same_rate(task: str, trials: Trials, finished: Sequence[TrainingRun], modes: Sequence[str]) -> list[Summary]:
    """Neighbours on the ladder, and marft against ippo, at every rate that both have: an entry a rate, mode, pair."""
    rates = sorted({rate for by_rate in trials.values() for rate in by_rate if rate is not None})
    found = []
    for rate in rates:
        groups = {arm: [cell for cell in by_rate.get(rate, ()) if cell in finished] for arm, by_rate in trials.items()}
        there = [arm for arm, group in groups.items() if group]
        for mode in modes:
            for first, second in steps(there):
                pair = pair_figures(task, mode, groups[first], groups[second])
                found.append({"rate": rate, "mode": mode, **pair})
    return found
