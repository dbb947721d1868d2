"""What a comparison tells while it runs: a line for each thing worth knowing, and the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from baselines.runs.run_config import RunConfig
from benchmarks.experiment.results_folder import Results
from benchmarks.experiment.workers import Event

_SLOW_S = 10.0  # an update that takes longer is worth a line


class Progress:
    """Counts finished runs, and the updates that are left; tasks differ in what an update costs."""

    def __init__(self, runs: Sequence[RunConfig], results: Results) -> None:
        self.total = len(runs)
        self.finished = sum(results.finished(run) for run in runs)
        self.several_rates = len({results.cell(run) for run in runs}) > len({(r.task, r.arm, r.seed) for r in runs})
        self.left: dict[str, int] = {}
        for run in runs:
            self.left[run.task] = self.left.get(run.task, 0) + run.updates - max(0, results.reached(run))
        self.cost: dict[str, list[float]] = {}
        self.started = time.monotonic()

    def tell(self, event: Event) -> None:
        """Print what ``event`` says."""
        run, row = event.run, event.row
        if event.kind == "failed":
            print(f"{self._count(1)} {self._name(run)}: FAILED\n{row['error']}", file=sys.stderr, flush=True)
        elif event.kind == "done":
            print(f"{self._count(1)} {self._name(run)}: finished{self._time_left()}", flush=True)
        elif row["kind"] == "eval" and row["accuracy"] is not None:
            where = "" if row["task"] == run.task else f" on {row['task']}"
            print(
                f"{self._count()} {self._name(run)}{where}: update {row['update']}/{run.updates}, "
                f"{row['mode']} accuracy {row['accuracy']:.1%}",
                flush=True,
            )
        elif row["kind"] == "train":
            self.left[run.task] -= 1
            self.cost.setdefault(run.task, []).append(row["wall_s"])
            if row["wall_s"] > _SLOW_S:
                reward = "nothing graded" if row["reward"] is None else f"training reward {row['reward']:.3f}"
                print(f"{self._count()} {self._name(run)}: update {row['update']}/{run.updates} took "
                      f"{row['wall_s']:.0f} s, {reward}", flush=True)  # fmt: skip

    def _name(self, run: RunConfig) -> str:
        rate = f" lr {run.learner().learning_rate:g}" if self.several_rates else ""
        return f"{run.task} {run.arm}{rate} seed {run.seed}"

    def _count(self, more: int = 0) -> str:
        self.finished += more
        return f"[{self.finished}/{self.total}]"

    def _time_left(self) -> str:
        """By the updates' own seconds; a task that was not seen yet costs what the others do."""
        seen = [seconds for costs in self.cost.values() for seconds in costs]
        if not seen or self.finished == self.total:
            return ""
        mean = {task: sum(costs) / len(costs) for task, costs in self.cost.items()}
        work = sum(count * mean.get(task, sum(seen) / len(seen)) for task, count in self.left.items())
        minutes = (time.monotonic() - self.started) * work / sum(seen) / 60
        return f", about {minutes:.1f} min left"
