"""The folder of one run: its configuration, its rows, its checkpoints, and the way back after a kill.

    config.json       every setting resolved, with its hash; ``--config`` reads it back
    rows.jsonl        the head, then one JSON object a line (docs/training.md)
    transcripts/      a trace of a few episodes for each sampled evaluation
    checkpoints/      the last few, named by update

A checkpoint knows how long rows.jsonl was. To resume is to cut the file there and to go on: nothing is written twice.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import marft_envs
from baselines.runs import checkpoint
from baselines.runs.checkpoint import Checkpoint, CheckpointError
from baselines.runs.run_config import RunConfig, decisive, differences
from marft_envs.batch.episode import Episode
from marft_envs.traces.recorder import Recorder

Row = dict[str, Any]
CONFIG, ROWS, CHECKPOINTS, TRANSCRIPTS, STATE = "config.json", "rows.jsonl", "checkpoints", "transcripts", "state.pt"
PACKAGES = ("torch", "transformers", "peft", "pettingzoo", "gymnasium", "numpy")
log = logging.getLogger("baselines")


def check_folder(folder: str | Path, config: RunConfig, *, resume: bool) -> None:
    """ValueError if the folder holds something else than this run, or holds this run and ``resume`` is False. Writes
    nothing."""
    folder = Path(folder)
    ours_at_first = {".lock", CHECKPOINTS, CONFIG + ".tmp"}  # what a run killed in its first moment leaves
    if not folder.exists() or {p.name for p in folder.iterdir()} <= ours_at_first:
        return
    path = folder / CONFIG
    if not path.is_file():
        raise ValueError(f"folder {folder} is not empty and holds no {CONFIG}: expected a run's folder, or none")
    if not resume:
        raise ValueError(f"folder {folder} holds a run: expected resume (--resume), or another folder")
    found = _config_in(path)
    if found["config_hash"] != config.hash():
        now = json.loads(json.dumps(config.resolved()))
        changed = "; ".join(differences(decisive(found), decisive(now)))
        raise ValueError(
            f"folder {folder} holds a run with another configuration: {changed}: expected the same settings, "
            "or another folder"
        )


class RunFolder:
    """Opens the folder at once, locked against a second writer. ValueError if it holds something else than this run,
    or holds this run and ``resume`` is False."""

    def __init__(self, folder: str | Path, config: RunConfig, *, resume: bool) -> None:
        self.folder, self.config = Path(folder), config
        check_folder(self.folder, config, resume=resume)
        with _told(self.folder):
            (self.folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
            self._lock = lock(self.folder)
        self.checkpoint: Checkpoint | None = None
        try:
            if resume:
                self.checkpoint = self._newest()
            with _told(self.folder):
                self._open_rows()
        except BaseException:
            self.close()
            raise

    def _newest(self) -> Checkpoint | None:
        found = checkpoint.newest(self.folder / CHECKPOINTS)
        for reason in found.passed_over:
            log.warning("%s; it is passed over", reason)
        if found.checkpoint is None:
            if found.passed_over:
                raise CheckpointError(
                    f"{self.folder}: no checkpoint can be used; to begin anew, delete {CHECKPOINTS}/ in it"
                )
            log.info("no checkpoint yet: the run begins anew")
            return None
        update = found.checkpoint.update
        if update > self.config.updates:
            raise ValueError(
                f"updates={self.config.updates}: expected at least {update}, which {self.folder} has reached"
            )
        log.info("going on after update %d of %d", update, self.config.updates)
        threads = found.checkpoint.manifest["threads"]
        if threads != torch.get_num_threads():
            log.warning("the run had %s threads, now %s: expect rounding to differ", threads, torch.get_num_threads())
        return found.checkpoint

    def _open_rows(self) -> None:
        path = self.folder / ROWS
        config = {"config_hash": self.config.hash(), **self.config.resolved()}
        checkpoint.replace_file(self.folder / CONFIG, json.dumps(config, indent=1).encode())
        if self.checkpoint is None:
            self._rows = path.open("wb")
            return
        size = int(self.checkpoint.manifest["rows_bytes"])
        if not path.is_file() or path.stat().st_size < size:
            raise CheckpointError(f"{path}: is shorter than the {size} bytes of its checkpoint; expected it untouched")
        os.truncate(path, size)
        self._rows = path.open("ab")

    def begin(self, models: Mapping[str, Mapping[str, str]]) -> None:
        """Write the head, unless the run goes on and has one. models: which bases play, by name."""
        if self.checkpoint is None:
            self.write({**head_row(self.config), "models": {name: dict(about) for name, about in models.items()}})

    def write(self, row: Row) -> None:
        """One row, in the file when this returns. CheckpointError where the disk is full."""
        with _told(self.folder / ROWS):
            self._rows.write(json.dumps(row).encode() + b"\n")
            self._rows.flush()

    def save(self, update: int, files: dict[str, bytes], state: dict[str, Any], about: dict[str, Any]) -> None:
        """A checkpoint after ``update``. state: for ``torch.load(weights_only=True)``. about: for the manifest."""
        os.fsync(self._rows.fileno())
        manifest = {
            "config_hash": self.config.hash(),
            "config": self.config.resolved(),
            "rows_bytes": self._rows.tell(),
            "threads": torch.get_num_threads(),
            **about,
        }
        buffer = io.BytesIO()
        torch.save(state, buffer)
        files = {**files, STATE: buffer.getvalue()}
        checkpoint.write(self.folder / CHECKPOINTS, update, files, manifest, keep=self.config.keep_checkpoints)

    def state(self) -> dict[str, Any]:
        """The state that ``save`` was given, of the checkpoint that this run goes on from."""
        assert self.checkpoint is not None
        loaded: dict[str, Any] = torch.load(self.checkpoint.folder / STATE, weights_only=True)
        return loaded

    def record(self, update: int, env: Any, episodes: Sequence[Episode]) -> None:
        """The transcripts of an evaluation, in place of what a killed run wrote of the same one."""
        path = self.folder / TRANSCRIPTS / f"{update:06d}.jsonl"
        with _told(path):
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
        with _told(path), Recorder(path, env, arguments={"update": update, "mode": "sampled"}) as recorder:
            for episode in episodes:
                recorder.record(episode)

    def close(self) -> None:
        """Close the rows and let others in."""
        rows = getattr(self, "_rows", None)
        if rows is not None:
            with contextlib.suppress(OSError):
                rows.close()
        self._lock()


def _config_in(path: Path) -> dict[str, Any]:
    """A run's config.json. ValueError for a file that no run wrote."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise ValueError(f"{path}: {fault}; expected a run's {CONFIG}, or another folder") from fault
    if not isinstance(found, dict) or "config_hash" not in found:
        raise ValueError(f"{path} has no config_hash: expected a run's {CONFIG}, or another folder")
    return found


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """What the disk refuses, as one line."""
    try:
        yield
    except OSError as fault:
        raise CheckpointError(
            f"{path}: {fault.strerror or fault}; {checkpoint.remedy(fault)}, then go on with resume"
        ) from fault


def head_row(config: RunConfig) -> Row:
    """The first row of rows.jsonl: what ran, on what, since when."""
    return {
        "kind": "run",
        "config": config.resolved(),
        "config_hash": config.hash(),
        "versions": {name: metadata.version(name) for name in PACKAGES}
        | {"marft_envs": marft_envs.__version__, "python": platform.python_version()},
        "hardware": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "threads": torch.get_num_threads(),
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def lock(folder: Path) -> Callable[[], None]:
    """Hold the folder, which must exist; the kernel lets it go when the process dies, however it dies. -> what lets it
    go. ValueError where another process holds it."""
    try:
        import fcntl
    except ImportError:  # Windows: two writers are then not kept apart
        return lambda: None
    descriptor = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise ValueError(f"folder {folder} is in use by another process: expected it free, or another folder") from None
    closed: list[int] = []

    def release() -> None:
        if not closed:
            closed.append(descriptor)
            os.close(descriptor)

    return release
