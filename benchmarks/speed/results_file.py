"""The JSON file of ``throughput.py engine``, from which a run is resumed, and an estimate of the time left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.comparison import Cell

_STEP_TOKENS = 8
"""Tokens of an update that take about as long as one token of each row of a small batch, on all sides together."""
_PROMPT_TOKENS = {"short": 100, "long": 300}


class ResultsFile:
    """The measurements of a comparison: its settings, its cells, and the peak memory of teams.

    Args:
        path: The file; None keeps the measurements in memory only.
        about: The settings.
        resume: Whether measurements that the file has are kept. Without the file there are none.

    Attributes:
        cells: The measured cells, each with the fields of ``Cell``, "seconds" and the measurements.
        peaks: Mode -> number of agents -> bytes, or why they were not measured.

    Raises:
        ValueError: The file has measurements of other settings, or none at all.
    """

    def __init__(self, path: Path | None, about: dict[str, Any], *, resume: bool) -> None:
        self._path, self._about = path, about
        self.cells: list[dict[str, Any]] = []
        self.peaks: dict[str, dict[str, int | str]] = {}
        if resume and path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            self.cells, self.peaks, before = found["cells"], found["peak_bytes"], found["about"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"--json={path}: expected a file of throughput.py engine to resume") from error
        for name, value in json.loads(json.dumps(self._about)).items():
            if before.get(name) != value:
                raise ValueError(
                    f"--resume: {path} was measured with {name}={before.get(name)}, and now it is {value}; expected "
                    "the same settings, or another file"
                )

    def find(self, cell: Cell) -> dict[str, Any] | None:
        """Return the measurements of a cell; None if it was not measured."""
        return next((found for found in self.cells if cell_of(found) == cell), None)

    def add(self, cell: dict[str, Any]) -> None:
        """Add the measurements of a cell, and write the file."""
        self.cells.append(cell)
        self.write()

    def write(self) -> None:
        """Write the file. A file of the same name is replaced only by a whole one."""
        if self._path is None:
            return
        found = {"about": self._about, "cells": self.cells, "peak_bytes": self.peaks}
        part = self._path.with_name(self._path.name + ".part")
        part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        part.replace(self._path)


def cell_of(found: dict[str, Any]) -> Cell:
    """Return the cell of measurements."""
    return Cell(found["episodes"], found["agents"], found["prompts"], found["new_tokens"])


def work_of(cell: Cell) -> int:
    """Return about how much work a cell is, in tokens of an update; a single episode has no update."""
    turn = _PROMPT_TOKENS[cell.prompts] + cell.new_tokens
    return cell.agents * (_STEP_TOKENS * cell.new_tokens + (cell.episodes * turn if cell.episodes > 1 else 0))


def seconds_left(measured: Sequence[dict[str, Any]], waiting: Sequence[Cell]) -> float | None:
    """Return about how many seconds the waiting cells take; None if no cell was measured.

    Args:
        measured: The measured cells.
        waiting: The others.
    """
    if not measured:
        return None
    rate = sum(found["seconds"] for found in measured) / sum(work_of(cell_of(found)) for found in measured)
    return rate * sum(map(work_of, waiting))
