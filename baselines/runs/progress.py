"""How a run tells a person where it stands: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from typing import Any, TextIO

_BAR = 20


class Progress:
    """Takes the rows of a run of ``updates`` updates and writes to ``stream``.

    On a terminal the line below the evaluations is rewritten with each update. Elsewhere evaluations are lines, and
    updates only when ``quiet_s`` seconds have passed since the last line.
    """

    def __init__(self, updates: int, stream: TextIO, *, quiet_s: float = 30.0) -> None:
        self.updates, self.stream, self.quiet_s = updates, stream, quiet_s
        self.live = stream.isatty()
        self._last_line = time.monotonic()
        self._per_update: float | None = None
        self._skipped: set[str] | None = set()  # why, as long as no batch has trained a policy

    def row(self, row: Mapping[str, Any]) -> None:
        """Tell what the row says."""
        if row["kind"] == "eval":
            self._line(self._evaluation(row))
        elif row["kind"] == "train":
            now = row["wall_s"]
            reason = row.get("skipped")
            self._skipped = self._skipped | {reason} if reason and self._skipped is not None else None
            self._per_update = now if self._per_update is None else 0.8 * self._per_update + 0.2 * now
            if self.live:
                text = f"{self._bar(row['update'])} {self._update(row)}"
                self.stream.write("\r\x1b[K" + text[: shutil.get_terminal_size().columns - 1])
                self.stream.flush()
            elif time.monotonic() - self._last_line >= self.quiet_s:
                self._line(f"update {row['update']}/{self.updates}: {self._update(row)}")

    def close(self) -> None:
        """Leave the live line; say so if no update trained anything."""
        if self.live:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
        if self._skipped:
            self._line(
                f"no batch trained a policy ({', '.join(sorted(self._skipped))}): where all scores are the same, there "
                "is nothing to learn from; the starting team must solve some problems and fail at others"
            )

    def _line(self, text: str) -> None:
        self.stream.write(("\r\x1b[K" if self.live else "") + text + "\n")
        self.stream.flush()
        self._last_line = time.monotonic()

    def _evaluation(self, row: Mapping[str, Any]) -> str:
        accuracy = "nothing graded" if row["accuracy"] is None else f"accuracy {row['accuracy']:.1%} of {row['n']}"
        faults = f", {row['not_graded']} not graded" if row["not_graded"] else ""
        text = f"update {row['update']}/{self.updates}: {row['task']}, {row['mode']} {accuracy}{faults}"
        for speaker, effect in row.get("cooperation", {}).items():
            if effect["drop"] is not None:
                text += f"\n    without {speaker}'s own messages {-effect['drop']:+.1%}"
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
        return ", ".join([*parts, f"{row['wall_s']:.1f} s", self._left(row["update"])])

    def _left(self, update: int) -> str:
        seconds = (self._per_update or 0.0) * (self.updates - update)
        return f"{seconds / 60:.0f} min left" if seconds >= 90 else f"{seconds:.0f} s left"

    def _bar(self, update: int) -> str:
        full = _BAR * update // max(1, self.updates)
        return f"{update}/{self.updates} [{'=' * full}{' ' * (_BAR - full)}]"
