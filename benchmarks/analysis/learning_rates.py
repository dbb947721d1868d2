"""Learning-rate sweep: select each arm's learning rate by training reward, and summarise all rates.

There is no validation split. A task generates its training problems, and a batch is sampled before the team learns
from it, so the training reward is an estimate on new problems. The selected rate has the highest mean training reward
over the last quarter of updates, mean over seeds. Held-out items never select anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.analysis.pairs import Summary, mean_interval, pair_figures
from benchmarks.analysis.training_runs import TrainingRun, steps

RunsByRate = dict[str, dict[float | None, list[TrainingRun]]]  # arm -> learning rate -> runs


def runs_by_rate(runs: Sequence[TrainingRun]) -> RunsByRate:
    """Group runs by arm and learning rate, in the order of the runs."""
    found: RunsByRate = {}
    for run in runs:
        found.setdefault(run.arm, {}).setdefault(run.rate, []).append(run)
    return found


def select_rates(sweep: RunsByRate, finished: Sequence[TrainingRun]) -> dict[str, float | None]:
    """Return each arm's learning rate.

    Only rates with the largest number of finished seeds are candidates. The lower rate wins a tie.
    """
    selected: dict[str, float | None] = {}
    for arm, by_rate in sweep.items():
        done = {rate: [run for run in runs if run in finished] for rate, runs in by_rate.items()}
        most = max(len(runs) for runs in done.values())
        candidates = [rate for rate, runs in done.items() if len(runs) == most]
        selected[arm] = max(candidates, key=lambda rate: (_reward(done[rate]), -(rate or 0.0)))
    return selected


def _reward(runs: Sequence[TrainingRun]) -> float:
    """Mean late training reward over seeds; -inf if nothing was graded."""
    rewards = [reward for run in runs if (reward := run.late_reward()) is not None]
    return float(np.mean(rewards)) if rewards else -np.inf


def sweep_figures(
    sweep: RunsByRate,
    finished: Sequence[TrainingRun],
    selected: Mapping[str, float | None],
    modes: Sequence[str],
    fall: float,
) -> list[Summary]:
    """Return one entry for each arm and learning rate: the training reward and the held-out accuracy.

    Args:
        sweep: All runs of a task.
        finished: The finished runs.
        selected: Learning rate of each arm.
        modes: Decoding modes.
        fall: Drop below a run's own best accuracy from which it counts as collapsed, as a fraction.
    """
    figures = []
    for arm, by_rate in sweep.items():
        for rate, runs in by_rate.items():
            done = [run for run in runs if run in finished]
            reward = _reward(done)
            after = {mode: [run.final(mode)["accuracy"] for run in done] for mode in modes}
            figures.append(
                {
                    "arm": arm,
                    "rate": rate,
                    "seeds": [run.seed for run in done],
                    "started": len(runs),
                    "reward": reward if np.isfinite(reward) else None,
                    "selected": rate == selected[arm],
                    "after": {mode: mean_interval(values) if values else None for mode, values in after.items()},
                    "finals": after,
                    "collapsed": sum(any(_collapsed(run, mode, fall) for mode in modes) for run in done),
                }
            )
    return figures


def _collapsed(run: TrainingRun, mode: str, fall: float) -> bool:
    accuracies = list(run.curve(mode).values())
    return max(accuracies) - accuracies[-1] > fall


def same_rate(task: str, sweep: RunsByRate, finished: Sequence[TrainingRun], modes: Sequence[str]) -> list[Summary]:
    """Compare neighbours on the ladder, and marft with ippo, at every learning rate that both arms have.

    Returns:
        One entry for each rate, mode and pair: the figures of ``pairs.pair_figures`` with "rate" and "mode".
    """
    rates = sorted({rate for by_rate in sweep.values() for rate in by_rate if rate is not None})
    found = []
    for rate in rates:
        groups = {arm: [run for run in by_rate.get(rate, ()) if run in finished] for arm, by_rate in sweep.items()}
        arms = [arm for arm, runs in groups.items() if runs]
        for mode in modes:
            for first, second in steps(arms):
                pair = pair_figures(task, mode, groups[first], groups[second])
                found.append({"rate": rate, "mode": mode, **pair})
    return found
