"""Folder of a comparison's results, and how it is resumed after a kill.

grid.json     head of the comparison: the resolved configuration, and one entry for each session (code, versions)
runs/         a folder for each run (baselines/runs/run_folder.py): its rows, last checkpoint and transcripts
failures/     a row with the traceback of each run that failed, until it is finished
rows.jsonl    the head and the rows of all runs; the report is made from this file alone (docs/reference/rows.md)
"""

from __future__ import annotations

import contextlib
import json
import platform
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from baselines.errors import is_full
from baselines.runs.checkpoint import replace_file
from baselines.runs.run_config import RunConfig, check_prompt_limit, differences
from baselines.runs.run_folder import CHECKPOINTS, ROWS, TRANSCRIPTS, hardware, lock
from benchmarks.analysis.read_rows import parse_line
from benchmarks.analysis.rows_schema import kind_of
from benchmarks.experiment.grid import Grid, decisive_settings
from benchmarks.experiment.presets import GridError
from benchmarks.experiment.provenance import CONTROL, code_version
from benchmarks.experiment.script import command_line
from marft_envs.traces import TraceError, read

HEAD, RUNS, FAILURES = "grid.json", "runs", "failures"
_FIRST_FILES = {RUNS, HEAD + ".tmp", ".lock"}  # all that a comparison killed during its start leaves behind
_PACKAGES = ("torch", "transformers", "peft", "pettingzoo", "gymnasium", "numpy", "scipy")


@dataclass(frozen=True)
class ResultsFolder:
    """The results folder of a comparison.

    Attributes:
        folder: Path of the folder. It need not exist.
    """

    folder: Path

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder if it does not exist, and lock it against other comparisons.

        Raises:
            ValueError: Another process has locked the folder.
            GridError: The folder cannot be made.
        """
        with self._disk_errors():
            self.folder.mkdir(parents=True, exist_ok=True)
            release = lock(self.folder)
        try:
            yield
        finally:
            release()

    @contextlib.contextmanager
    def _disk_errors(self) -> Iterator[None]:
        """Turn an OSError into a GridError that names --out; a full disk stays an OSError, with the folder's name."""
        try:
            yield
        except OSError as error:
            if is_full(error):
                raise OSError(error.errno, error.strerror, str(self.folder)) from error
            raise GridError(f"--out {self.folder}: {error.strerror or error}; expected a writable folder") from error

    def open(self, grid: Grid, *, resume: bool, data: Mapping[str, Any] | None = None) -> None:
        """Start the comparison in a new or empty folder, or resume it.

        Args:
            grid: The comparison.
            resume: Whether an existing comparison may be resumed.
            data: Task -> ``provenance.data_of`` its problems.

        Raises:
            GridError: The folder exists and ``resume`` is False; it holds another comparison, or one on other
                problems; or it cannot be written.
        """
        with self._disk_errors():
            head = self._stored_head(grid, resume)
            if head is None:
                (self.folder / RUNS).mkdir(parents=True, exist_ok=True)
                head = {"kind": "comparison", "config": grid.resolved(), "config_hash": grid.hash()}
                head |= {"data": dict(data or {}), "sessions": []}
                replace_file(self.folder / HEAD, json.dumps(head).encode())
                return
            self._check_problems(head["data"], data or {})
            if head["config"] != (config := json.loads(json.dumps(grid.resolved()))):
                replace_file(self.folder / HEAD, json.dumps({**head, "config": config}).encode())

    def _check_problems(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Raise GridError if the problems of a task have changed since the comparison was started."""
        for task in (task for task in old if task in new):
            changed = differences({**old[task], CONTROL: None}, {**new[task], CONTROL: None})
            if changed:
                raise GridError(
                    f"the comparison in {self.folder} was started with other problems; task {task}: "
                    f"{'; '.join(changed)}: expected the same data, or another folder with --out"
                )

    def record_session(self) -> None:
        """Add an entry to the head: what runs the comparison from now on."""
        with self._disk_errors():
            head = json.loads((self.folder / HEAD).read_text(encoding="utf-8"))
            head["sessions"].append(session())
            replace_file(self.folder / HEAD, json.dumps(head).encode())

    def check(self, grid: Grid, *, resume: bool) -> None:
        """Raise GridError if ``open`` would, except for changed problems; write nothing."""
        with self._disk_errors():
            self._stored_head(grid, resume)

    def _stored_head(self, grid: Grid, resume: bool) -> dict[str, Any] | None:
        """Return the head of the comparison to resume; None if the folder is new or empty."""
        if not self.folder.exists() or {p.name for p in self.folder.iterdir()} <= _FIRST_FILES:
            return None
        if not resume:
            raise GridError(f"results folder {self.folder} exists: expected --resume, or another folder with --out")
        head, current = self.head(), json.loads(json.dumps(grid.resolved()))
        different = differences(decisive_settings(head["config"]), decisive_settings(current))
        if different:
            raise GridError(
                f"results folder {self.folder} holds another comparison; {'; '.join(different)}: "
                "expected the same options, or another folder with --out"
            )
        for task, entry in head["config"]["tasks"].items():
            try:
                check_prompt_limit(entry, current["tasks"][task], f"task {task} in {self.folder}")
            except ValueError as error:
                raise GridError(str(error)) from error
        return head

    def head(self) -> dict[str, Any]:
        """Return the content of grid.json.

        Raises:
            GridError: The folder holds none, or one that this version of compare.py did not write.
        """
        path = self.folder / HEAD
        if not path.is_file():
            raise GridError(f"results folder {self.folder} holds no {HEAD}: expected a folder of compare.py")
        try:
            head: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            _ = decisive_settings(head["config"]), head["sessions"], head["data"]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise GridError(
                f"{path}: cannot be read ({error!r}); expected a file of this version of compare.py, or another folder"
            ) from error
        return head

    def run_folder(self, run: RunConfig) -> Path:
        """Return the folder of a run."""
        learner = run.learner()
        rate = "" if learner.update == "none" else f"-lr{learner.learning_rate:g}"
        return self.folder / RUNS / f"{run.task}-{run.arm}{rate}-{run.seed}"

    def last_checkpoint(self, run: RunConfig) -> int:
        """Return the update of the run's last checkpoint; -1 without one."""
        return last_update(self.run_folder(run))

    def finished(self, run: RunConfig) -> bool:
        """Return whether the run has its last checkpoint, which is written after its last row."""
        return self.last_checkpoint(run) >= run.updates

    def failure_file(self, run: RunConfig) -> Path:
        """Return the file that records how a run failed."""
        return self.folder / FAILURES / f"{self.run_folder(run).name}.json"

    def record_failure(self, run: RunConfig, error: str, traceback: Sequence[str]) -> None:
        """Record how a run failed; the record replaces that of an earlier attempt."""
        learner = run.learner()
        rate = None if learner.update == "none" else learner.learning_rate
        row = {"kind": "failure", "arm": run.arm, "task": run.task, "seed": run.seed, "learning_rate": rate,
               "update": max(0, self.last_checkpoint(run)), "error": error, "traceback": list(traceback),
               "failed": time.strftime("%Y-%m-%d %H:%M:%S")}  # fmt: skip
        with self._disk_errors():
            (self.folder / FAILURES).mkdir(exist_ok=True)
            replace_file(self.failure_file(run), json.dumps(row, indent=1).encode())

    def forget_failure(self, run: RunConfig) -> None:
        """Delete the record of an earlier attempt at a run, which is finished now."""
        self.failure_file(run).unlink(missing_ok=True)

    def write_rows(self) -> None:
        """Write rows.jsonl: the head, the complete lines of all runs, unfinished ones too, and failures; atomically."""
        with self._disk_errors():
            lines = [(self.folder / HEAD).read_text(encoding="utf-8").strip()]
            for path in sorted((self.folder / RUNS).glob(f"*/{ROWS}")):
                lines += _rows_of_run(path)
            for path in sorted((self.folder / FAILURES).glob("*.json")):
                lines.append(json.dumps(parse_line(path.read_text(encoding="utf-8"), str(path))))
            replace_file(self.folder / ROWS, ("\n".join(lines) + "\n").encode())


def last_update(run_folder: Path) -> int:
    """Return the update of the last checkpoint in the folder of a run; -1 without one."""
    folders = (run_folder / CHECKPOINTS).glob("[0-9]*")
    return max((int(folder.name) for folder in folders if folder.name.isdigit()), default=-1)


def _rows_of_run(path: Path) -> Iterator[str]:
    """Yield the complete lines of a run, then a row for each of its transcripts.

    In the head of the run the configuration, which grid.json holds, becomes a label.
    """
    label: dict[str, Any] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(keepends=True), start=1):
        if not line.endswith("\n"):  # being written, or truncated by a kill
            break
        where = f"{path}, line {number}"
        row = parse_line(line, where)
        if kind_of(row, where) == "run":
            config = row.pop("config")
            label = {name: config[name] for name in ("arm", "task", "seed")}
            label["learning_rate"] = (
                None if config["learner"]["update"] == "none" else config["learner"]["learning_rate"]
            )
            line = json.dumps({"kind": row.pop("kind"), **label, **row})
        yield line.rstrip("\n")
    for transcript in sorted((path.parent / TRANSCRIPTS).glob("*.jsonl")):
        yield from _episodes_row(transcript, label)


def _episodes_row(path: Path, label: Mapping[str, Any]) -> Iterator[str]:
    """Yield a row of kind "episodes" with a transcript; nothing if a killed run has left no episode in it."""
    with warnings.catch_warnings(), contextlib.suppress(TraceError):
        warnings.simplefilter("ignore")  # an incomplete last line; the resumed run writes the file again
        trace = read(path)
        about = trace.header["notes"]
        task = f"{about['dataset']} (trained on {label['task']})" if about["dataset"] else label["task"]
        row = {"kind": "episodes", **label, "task": task, "update": about["update"], "mode": about["mode"]}
        if trace.episodes:
            yield json.dumps({**row, "header": trace.header, "episodes": trace.episodes})


def session() -> dict[str, Any]:
    """Return what runs the comparison: the command as typed, the code, the packages, the machine, the time."""
    return {
        "command": command_line(),
        **code_version(),
        "versions": {name: metadata.version(name) for name in _PACKAGES} | {"python": platform.python_version()},
        "hardware": hardware(),
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
