"""A comparison's results folder, and how it is gone on with after a kill.

grid.json     the resolved configuration, and one entry for each time the comparison was started: code, versions
cells/        a run's folder each (baselines/runs/run_folder.py): its rows, its last checkpoint, a few transcripts
rows.jsonl    grid.json in a line, then the rows of all cells; every figure of the report is made from it alone
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from baselines.runs.checkpoint import is_full, replace_file
from baselines.runs.run_config import RunConfig, differences
from baselines.runs.run_folder import CHECKPOINTS, ROWS, lock
from benchmarks.experiment.grid import Grid, GridError
from benchmarks.experiment.provenance import CONTROL, code_version
from benchmarks.experiment.script import command_line

HEAD, CELLS = "grid.json", "cells"
_OURS_AT_FIRST = {CELLS, HEAD + ".tmp", ".lock"}  # what a comparison killed in its first moment leaves
_PACKAGES = ("torch", "transformers", "peft", "pettingzoo", "gymnasium", "numpy", "scipy")


@dataclass(frozen=True)
class Results:
    """A results folder."""

    folder: Path

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder if it is missing, and keep other comparisons out of it."""
        with self._told():
            self.folder.mkdir(parents=True, exist_ok=True)
            release = lock(self.folder)
        try:
            yield
        finally:
            release()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """A folder that cannot be used is a wrong option; a full disk remains one, by the folder's name."""
        try:
            yield
        except OSError as fault:
            if is_full(fault):
                raise OSError(fault.errno, fault.strerror, str(self.folder)) from fault
            raise GridError(f"--out {self.folder}: {fault.strerror or fault}; expected a folder to write to") from fault

    def open(self, grid: Grid, *, resume: bool, data: Mapping[str, Any] | None = None) -> None:
        """Begin, or go on. GridError if the folder exists and is not to be resumed, or holds another comparison or one
        on other problems, or cannot be written. data: what is known of each task's problems (provenance.py)."""
        with self._told():
            head = self._found(grid, resume)
            if head is None:
                (self.folder / CELLS).mkdir(parents=True, exist_ok=True)
                head = {"kind": "run", "config": grid.resolved(), "config_hash": grid.hash(), "data": dict(data or {})}
                replace_file(self.folder / HEAD, json.dumps({**head, "sessions": []}).encode())
            else:
                self._expect_problems(head["data"], data or {})

    def _expect_problems(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """GridError naming the task whose problems have changed under their path."""
        for task in (task for task in old if task in new):
            changed = differences({**old[task], CONTROL: None}, {**new[task], CONTROL: None})
            if changed:
                raise GridError(
                    f"results folder {self.folder} was begun on other problems; task {task}: {'; '.join(changed)}: "
                    "expected the same data, or another folder with --out"
                )

    def add_session(self) -> None:
        """Note what does the runs from now on."""
        with self._told():
            head = json.loads((self.folder / HEAD).read_text(encoding="utf-8"))
            head["sessions"].append(session())
            replace_file(self.folder / HEAD, json.dumps(head).encode())

    def expect(self, grid: Grid, *, resume: bool) -> None:
        """GridError where ``open`` would raise one; writes nothing."""
        with self._told():
            self._found(grid, resume)

    def _found(self, grid: Grid, resume: bool) -> dict[str, Any] | None:
        """The head of the comparison that is to be gone on with; None where the folder is new or empty."""
        if not self.folder.exists() or {p.name for p in self.folder.iterdir()} <= _OURS_AT_FIRST:
            return None
        if not resume:
            raise GridError(f"results folder {self.folder} exists: expected --resume, or another folder with --out")
        path = self.folder / HEAD
        if not path.is_file():
            raise GridError(f"results folder {self.folder} holds no {HEAD}: expected a folder of compare.py")
        try:
            head: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            different = differences(head["config"], json.loads(json.dumps(grid.resolved())))
            _ = head["sessions"], head["data"]
        except (ValueError, LookupError, TypeError) as fault:
            raise GridError(
                f"{path}: cannot be read ({fault!r}); expected this version's head of a comparison, or another --out"
            ) from fault
        if different:
            raise GridError(
                f"results folder {self.folder} holds another comparison; {'; '.join(different)}: "
                "expected the same options, or another folder with --out"
            )
        return head

    def cell(self, run: RunConfig) -> Path:
        """The folder of a run."""
        learner = run.learner()
        rate = "" if learner.update == "none" else f"-lr{learner.learning_rate:g}"
        return self.folder / CELLS / f"{run.task}-{run.arm}{rate}-{run.seed}"

    def reached(self, run: RunConfig) -> int:
        """The update of the run's last checkpoint; -1 without one."""
        places = (self.cell(run) / CHECKPOINTS).glob("[0-9]*")
        return max((int(place.name) for place in places if place.name.isdigit()), default=-1)

    def finished(self, run: RunConfig) -> bool:
        """Whether the run has its last checkpoint, which is written after its last row."""
        return self.reached(run) >= run.updates

    def merge(self) -> None:
        """Write rows.jsonl anew from the head and the whole lines of all cells, unfinished ones too; atomically."""
        with self._told():
            lines = [(self.folder / HEAD).read_text(encoding="utf-8").strip()]
            for path in sorted((self.folder / CELLS).glob(f"*/{ROWS}")):
                lines += _of_cell(path)
            replace_file(self.folder / ROWS, ("\n".join(lines) + "\n").encode())


def _of_cell(path: Path) -> Iterator[str]:
    """A cell's rows. Its head, of kind "run" like the comparison's, becomes one of kind "cell"."""
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n"):  # being written, or cut by a kill
            return
        if line.startswith('{"kind": "run"'):
            head = json.loads(line)
            config = head.pop("config")
            label = {name: config[name] for name in ("arm", "task", "seed")}
            rate = None if config["learner"]["update"] == "none" else config["learner"]["learning_rate"]
            line = json.dumps({**head, "kind": "cell", **label, "learning_rate": rate})
        yield line.rstrip("\n")


def session() -> dict[str, Any]:
    """What runs the comparison from now on: the command as typed, the code, the packages, the machine, the time."""
    return {
        "command": command_line(),
        **code_version(),
        "versions": {name: metadata.version(name) for name in _PACKAGES} | {"python": platform.python_version()},
        "hardware": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
