"""Progress of a long command on tqdm: a bar on a terminal, plain lines elsewhere.

``Reporter`` counts steps of any kind; ``RunProgress`` feeds it the rows of one training run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TextIO

from tqdm import tqdm


class Reporter:
    """A progress bar on a terminal, and plain lines where the output is a file or a pipe.

    Args:
        total: Number of steps of the whole command.
        stream: Where to write, for example ``sys.stdout``.
        unit: Name of a step in the plain lines, for example "update".
        interval_s: Shortest time between two plain status lines, in seconds.
    """

    def __init__(self, total: int, stream: TextIO, *, unit: str = "update", interval_s: float = 30.0) -> None:
        self.total, self.stream, self.unit, self.interval_s = total, stream, unit, interval_s
        self.terminal = stream.isatty()
        self._last_line = time.monotonic()
        self._bar: tqdm | None = None  # drawn with the first step: a wrong setting must not leave an empty bar behind

    def line(self, text: str) -> None:
        """Print a line, above the bar where there is one."""
        if self.terminal:
            tqdm.write(text, file=self.stream)
        else:
            self.stream.write(text + "\n")
        self.stream.flush()  # a pipe is block-buffered: without this the reader sees nothing for minutes
        self._last_line = time.monotonic()

    def update(self, done: int, status: str) -> None:
        """Show that ``done`` steps of ``total`` are finished.

        Args:
            done: Number of finished steps.
            status: Description of the last step. Outside a terminal it is printed only if the last line is older than
                ``interval_s``.
        """
        if self.terminal:
            if self._bar is None:
                self._bar = tqdm(
                    total=self.total,
                    initial=done,
                    postfix=status,
                    file=self.stream,
                    dynamic_ncols=True,
                    leave=False,
                    bar_format="{n_fmt}/{total_fmt} [{bar:20}]{postfix}",
                )
            else:
                self._bar.n = done
                self._bar.set_postfix_str(status)
        elif time.monotonic() - self._last_line >= self.interval_s:
            self.line(f"{self.unit} {done}/{self.total}: {status}")

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()


class RunProgress:
    """Report the rows of a training run.

    Args:
        updates: Number of updates of the run.
        stream: Where to write.
        interval_s: Shortest time between two plain status lines, in seconds.
    """

    def __init__(self, updates: int, stream: TextIO, *, interval_s: float = 30.0) -> None:
        self.updates = updates
        self._reporter = Reporter(updates, stream, interval_s=interval_s)
        self._seconds_per_update: float | None = None
        self._skipped: set[str] | None = set()  # reasons; None once a batch has trained a policy

    def line(self, text: str) -> None:
        """Print a line."""
        self._reporter.line(text)

    def row(self, row: Mapping[str, Any]) -> None:
        """Report a row of kind "train" or "eval"; ignore others."""
        if row["kind"] == "eval":
            self.line(self._evaluation(row))
        elif row["kind"] == "train":
            reason, seconds = row.get("skipped"), row["wall_s"]
            self._skipped = self._skipped | {reason} if reason and self._skipped is not None else None
            average = self._seconds_per_update
            self._seconds_per_update = seconds if average is None else 0.8 * average + 0.2 * seconds
            if row["update"] == self.updates:  # the end of training stays on the screen and in a log
                self.line(f"update {self.updates}/{self.updates}: {self._update(row)}")
            else:
                self._reporter.update(row["update"], self._update(row))

    def close(self) -> None:
        """Remove the bar, and warn if no batch trained a policy."""
        self._reporter.close()
        if self._skipped:
            self.line(
                f"no batch trained a policy ({', '.join(sorted(self._skipped))}). If all episodes of a batch have the "
                "same score, there is nothing to learn from: choose a starting team that solves some problems and "
                "fails at others."
            )

    def _evaluation(self, row: Mapping[str, Any]) -> str:
        accuracy = "nothing graded" if row["accuracy"] is None else f"accuracy {row['accuracy']:.1%} of {row['n']}"
        not_graded = f", {row['not_graded']} not graded" if row["not_graded"] else ""
        text = f"update {row['update']}/{self.updates}: {row['task']}, {row['mode']} {accuracy}{not_graded}"
        for speaker, effect in row.get("cooperation", {}).items():
            if effect["drop"] is not None:
                text += f"\n    with {speaker}'s messages shuffled {-effect['drop']:+.1%}"
        return text

    def _update(self, row: Mapping[str, Any]) -> str:
        parts = ["nothing graded" if row["reward"] is None else f"reward {row['reward']:.3f}"]
        for name, key in (("ev", "explained_variance"), ("lam_in", "lam_in")):
            if row.get(key) is not None:
                parts.append(f"{name} {row[key]:.2f}")
        kl = [m["kl_reference"] for m in row["agents"].values() if "kl_reference" in m]
        if kl:
            parts.append(f"kl {max(kl):.3f}")
        if row.get("skipped"):
            parts.append(f"skipped: {row['skipped']}")
        left = (self._seconds_per_update or 0.0) * (self.updates - row["update"])
        return ", ".join([*parts, f"{row['wall_s']:.1f} s", f"{tqdm.format_interval(left)} left"])
