"""Differences between the tasks of a study: each task minus the task that the preset names as its reference.

The tasks of a study are variants of one setting, such as a dependency function or a coefficient. An arm on one of them
is compared with the same arm on the reference, on the same seeds and evaluation items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.analysis.learning_rates import runs_by_rate
from benchmarks.analysis.pairs import Summary, correct_family, pair_figures
from benchmarks.analysis.training_runs import TRANSFER, TrainingRun

REFERENCE = "reference"


def task_differences(
    runs: Mapping[str, Sequence[TrainingRun]], tasks: Mapping[str, Summary], config: Mapping[str, Any]
) -> list[Summary]:
    """Return the paired difference between each task and the reference, for each mode and arm.

    A transfer data set is compared, too: after training on a task, and after training on the reference.

    Args:
        runs: Task -> its runs.
        tasks: Task -> its figures, as in the summary.
        config: Configuration of the comparison; without "reference" nothing is compared.

    Returns:
        Figures of ``pair_figures``, whose "first" and "second" are tasks, with "mode" and "arm". Holm's correction is
        over the tasks that are compared with the reference.
    """
    reference = config.get(REFERENCE)
    found = []
    for task in [task for task in tasks if _counterpart(task, reference) in tasks]:
        other = _counterpart(task, reference)
        first, second = _finished(runs[task], tasks[task]), _finished(runs[other], tasks[other])
        for mode in [mode for mode in tasks[task]["modes"] if mode in tasks[other]["modes"]]:
            for arm in [arm for arm in first if first[arm] and second.get(arm)]:
                pair = pair_figures(task, mode, first[arm], second[arm], (task, other))
                found.append({**pair, "mode": mode, "arm": arm})
    families: dict[tuple[str, str, str], dict[str, Summary]] = {}
    for pair in found:
        families.setdefault((pair["mode"], pair["arm"], pair["second"]), {})[pair["first"]] = pair
    for family in families.values():
        correct_family(family)
    return found


def _counterpart(task: str, reference: str | None) -> str:
    """Return the task that a task is compared with; "" for the reference itself and without a reference."""
    dataset, transfer, trained_on = task.partition(TRANSFER)
    if not reference or reference in (task, trained_on.removesuffix(")")):
        return ""
    return f"{dataset}{TRANSFER}{reference})" if transfer else reference


def _finished(runs: Sequence[TrainingRun], figures: Summary) -> dict[str, list[TrainingRun]]:
    """Return the finished runs of each arm at its selected learning rate."""
    modes, by_rate = list(figures["modes"]), runs_by_rate(runs)
    return {
        arm: [run for run in by_rate[arm][rate] if run.finished(modes, figures["updates"])]
        for arm, rate in figures["rates"]["selected"].items()
    }
