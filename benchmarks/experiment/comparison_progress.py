"""Progress of a comparison: a bar over the updates of all runs on a terminal, and a line for each evaluation."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence

from tqdm import tqdm

from baselines.runs.progress import Reporter
from baselines.runs.run_config import RunConfig
from benchmarks.experiment.results_folder import ResultsFolder
from benchmarks.experiment.workers import Event

_SLOW_S = 10.0  # an update that takes longer gets a line of its own


class ComparisonProgress:
    """Print the events of a comparison, and estimate the time that is left.

    Args:
        runs: All runs of the comparison.
        results: Its folder, from which it is read what was finished before.
    """

    def __init__(self, runs: Sequence[RunConfig], results: ResultsFolder) -> None:
        self.results = results
        self.total = len(runs)
        self.finished = sum(results.finished(run) for run in runs)
        folders = {results.run_folder(run) for run in runs}
        self.several_rates = len(folders) > len({(r.task, r.arm, r.seed) for r in runs})
        self.left: dict[str, int] = {}  # task -> updates; tasks differ in the cost of an update
        for run in runs:
            self.left[run.task] = self.left.get(run.task, 0) + run.updates - max(0, results.last_checkpoint(run))
        self.cost: dict[str, list[float]] = {}  # task -> seconds of each update in this session
        self.updates = sum(run.updates for run in runs)
        self.started = time.monotonic()
        self.reporter = Reporter(self.updates, sys.stdout, interval_s=math.inf)  # no status lines outside a terminal

    def report(self, event: Event) -> None:
        """Print an event."""
        run, row = event.run, event.row
        if event.kind == "failed":
            self.finished += 1
            where = f"; traceback in {self.results.failure_file(run)}" if row["traceback"] else ""
            tqdm.write(f"{self._count()} {self._name(run)}: FAILED{where}\n{row['error']}", file=sys.stderr)
        elif event.kind == "done":
            self.finished += 1
            self.reporter.line(f"{self._count()} {self._name(run)}: finished{self._time_left()}")
        elif row["kind"] == "eval" and row["accuracy"] is not None:
            dataset = "" if row["task"] == run.task else f" on {row['task']}"
            self.reporter.line(
                f"{self._count()} {self._name(run)}{dataset}: update {row['update']}/{run.updates}, "
                f"{row['mode']} accuracy {row['accuracy']:.1%}"
            )
        elif row["kind"] == "train":
            self.left[run.task] -= 1
            self.cost.setdefault(run.task, []).append(row["wall_s"])
            reward = "nothing graded" if row["reward"] is None else f"training reward {row['reward']:.3f}"
            update = f"{self._name(run)}: update {row['update']}/{run.updates}"
            if row["wall_s"] > _SLOW_S:
                self.reporter.line(f"{self._count()} {update} took {row['wall_s']:.0f} s, {reward}")
            self.reporter.update(self.updates - sum(self.left.values()), f"{update}, {reward}{self._time_left()}")

    def close(self) -> None:
        """Remove the bar."""
        self.reporter.close()

    def _name(self, run: RunConfig) -> str:
        rate = f" lr {run.learner().learning_rate:g}" if self.several_rates else ""
        return f"{run.task} {run.arm}{rate} seed {run.seed}"

    def _count(self) -> str:
        return f"[{self.finished}/{self.total}]"

    def _time_left(self) -> str:
        """Estimate the minutes left from the seconds per update; a task without updates so far costs the mean."""
        seen = [seconds for costs in self.cost.values() for seconds in costs]
        if not seen or self.finished == self.total:
            return ""
        mean = {task: sum(costs) / len(costs) for task, costs in self.cost.items()}
        work = sum(count * mean.get(task, sum(seen) / len(seen)) for task, count in self.left.items())
        minutes = (time.monotonic() - self.started) * work / sum(seen) / 60
        return f", about {minutes:.1f} min left"
