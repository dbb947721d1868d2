"""The folder of a run: configuration, rows and checkpoints, and how a killed run is resumed.

    config.json       every setting and their hash; ``--config`` reads it
    rows.jsonl        one JSON object per line: a head, then train and eval rows (docs/reference/rows.md)
    transcripts/      a trace of a few episodes of each evaluation
    checkpoints/      the newest checkpoints, named by update

A checkpoint records how long rows.jsonl was. A resumed run truncates the file to that length, so no row is written
twice.
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

import filelock
import torch

import marft_envs
from baselines.runs import checkpoint
from baselines.runs.checkpoint import Checkpoint, CheckpointError
from baselines.runs.run_config import RunConfig, check_prompt_limit, decisive, differences
from baselines.runs.transcripts import file_name, write_transcript
from marft_envs.batch.episode import Episode

Row = dict[str, Any]
CONFIG, ROWS, CHECKPOINTS, TRANSCRIPTS, STATE = "config.json", "rows.jsonl", "checkpoints", "transcripts", "state.pt"
LOCK = ".lock"
PACKAGES = ("torch", "transformers", "peft", "pettingzoo", "gymnasium", "numpy")
log = logging.getLogger("baselines")


def check_folder(folder: str | Path, config: RunConfig, *, resume: bool) -> None:
    """Validate that a run may use the folder; write nothing.

    Args:
        folder: Folder of the run. It need not exist.
        config: Configuration of the run.
        resume: Whether the run may continue the one that the folder holds.

    Raises:
        ValueError: The folder holds something else, a run with another configuration, a run of more updates, or this
            run without ``resume``.
    """
    folder = Path(folder)
    of_a_new_run = {LOCK, CHECKPOINTS, CONFIG + ".tmp"}  # left by a run that was killed before it wrote config.json
    if not folder.exists() or {p.name for p in folder.iterdir()} <= of_a_new_run:
        return
    path = folder / CONFIG
    if not path.is_file():
        raise ValueError(
            f"folder {folder} is not empty and has no {CONFIG}: expected the folder of a run, or a new or empty folder"
        )
    if not resume:
        raise ValueError(f"folder {folder} holds a run: expected resume=True (--resume), or another folder")
    stored = _read_config(path)
    current = json.loads(json.dumps(config.resolved()))
    if stored["config_hash"] != config.hash():
        changed = "; ".join(differences(decisive(stored), decisive(current)))
        raise ValueError(
            f"folder {folder} holds a run with another configuration: {changed}: expected the same settings, "
            "or another folder"
        )
    if config.updates < stored["updates"]:
        raise ValueError(
            f"updates={config.updates}: expected at least {stored['updates']}, the updates of the run in {folder}"
        )
    check_prompt_limit(stored, current, f"the run in {folder}")


class RunFolder:
    """The open, locked folder of a run.

    Args:
        folder: Path of the folder. It is created if it does not exist.
        config: Configuration of the run.
        resume: Whether to continue the run that the folder holds.

    Attributes:
        checkpoint: The checkpoint to resume from; None for a run that starts from the beginning.

    Raises:
        ValueError: See ``check_folder`` and ``lock``.
        CheckpointError: The folder cannot be written, or none of its checkpoints can be used.
    """

    def __init__(self, folder: str | Path, config: RunConfig, *, resume: bool) -> None:
        self.folder, self.config = Path(folder), config
        check_folder(self.folder, config, resume=resume)
        with _disk_errors(self.folder):
            (self.folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
            self._release = lock(self.folder)
        self.checkpoint: Checkpoint | None = None
        try:
            if resume:
                self.checkpoint = self._newest_checkpoint()
            with _disk_errors(self.folder):
                self._open_rows()
        except BaseException:
            self.close()
            raise

    def _newest_checkpoint(self) -> Checkpoint | None:
        found = checkpoint.newest(self.folder / CHECKPOINTS)
        for reason in found.skipped:
            log.warning("%s; skipped", reason)
        if found.checkpoint is None:
            if found.skipped:
                raise CheckpointError(
                    f"{self.folder}: no checkpoint can be used; to start from the beginning, "
                    f"delete {CHECKPOINTS}/ in it"
                )
            log.info("no checkpoint yet: the run starts from the beginning")
            return None
        log.info("resuming after update %d of %d", found.checkpoint.update, self.config.updates)
        threads = found.checkpoint.manifest["threads"]
        if threads != torch.get_num_threads():
            # torch splits sums by thread, so another number of threads adds in another order
            log.warning(
                "the run used %s threads and now uses %s: expect rounding differences", threads, torch.get_num_threads()
            )
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
            raise CheckpointError(
                f"{path} is missing or shorter than the {size} bytes that its checkpoint recorded; expected the file "
                "as the run wrote it"
            )
        os.truncate(path, size)
        self._rows = path.open("ab")

    def begin(self, models: Mapping[str, Mapping[str, str]], pass_gib: float) -> None:
        """Write the head row, unless the run is resumed and has one.

        Args:
            models: Description of each base model (``TeamPolicy.models``), by name.
            pass_gib: Memory of a pass of an update, in GiB, as the settings and the device resolve it.
        """
        if self.checkpoint is None:
            about = {name: dict(model) for name, model in models.items()}
            self.write({**head_row(self.config), "models": about, "pass_gib": pass_gib})

    def write(self, row: Row) -> None:
        """Append a row and flush the file.

        Raises:
            CheckpointError: The file cannot be written, for example because the disk is full.
        """
        with _disk_errors(self.folder / ROWS):
            self._rows.write(json.dumps(row).encode() + b"\n")
            self._rows.flush()

    def save(self, update: int, files: dict[str, bytes], state: dict[str, Any], about: dict[str, Any]) -> None:
        """Write a checkpoint.

        Args:
            update: The update after which it is written.
            files: Content by path inside the checkpoint.
            state: What ``state`` returns on resumption; readable by ``torch.load(weights_only=True)``.
            about: Further entries of the manifest.

        Raises:
            CheckpointError: A file cannot be written. Earlier checkpoints are intact.
        """
        os.fsync(self._rows.fileno())  # so that rows_bytes counts only bytes that survive a power cut
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
        """Return the ``state`` that was saved with the checkpoint to resume from."""
        assert self.checkpoint is not None
        loaded: dict[str, Any] = torch.load(self.checkpoint.folder / STATE, map_location="cpu", weights_only=True)
        return loaded

    def record(
        self,
        env: Any,
        arguments: Mapping[str, Any],
        notes: Mapping[str, Any],
        episodes: Sequence[Episode],
        turns: Iterator[list[Row]],
    ) -> None:
        """Write the transcript of an evaluation, see ``write_transcript``.

        A resumed run replaces the transcripts that the killed run wrote.
        """
        path = self.folder / TRANSCRIPTS / file_name(notes)
        with _disk_errors(path):
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            write_transcript(path, env, arguments, notes, episodes, turns)

    def close(self) -> None:
        """Close the rows and release the lock."""
        rows = getattr(self, "_rows", None)
        if rows is not None:
            with contextlib.suppress(OSError):
                rows.close()
        self._release()


def _read_config(path: Path) -> dict[str, Any]:
    """Read the config.json of a run. Raise ValueError for a file that no run wrote."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}; expected the {CONFIG} of a run, or another folder") from error
    if not isinstance(stored, dict) or "config_hash" not in stored:
        raise ValueError(f"{path} has no config_hash: expected the {CONFIG} of a run, or another folder")
    return stored


@contextlib.contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Raise CheckpointError with a one-line message for an OSError in the block."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{path}: {error.strerror or error}; {checkpoint.remedy(error)}, then resume the run"
        ) from error


def head_row(config: RunConfig) -> Row:
    """Return the first row of rows.jsonl: configuration, package versions, hardware and time of the start."""
    return {
        "kind": "run",
        "config": config.resolved(),
        "config_hash": config.hash(),
        "versions": {name: metadata.version(name) for name in PACKAGES}
        | {"marft_envs": marft_envs.__version__, "python": platform.python_version()},
        "hardware": hardware(),
        "threads": torch.get_num_threads(),
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def hardware() -> str:
    """Return the number of cores, the architecture and the operating system of this machine."""
    return f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"


def lock(folder: Path) -> Callable[[], None]:
    """Lock a folder against a second writer.

    The operating system releases the lock when the process ends, also after a kill.

    Args:
        folder: An existing folder. The lock is its file ``.lock``.

    Returns:
        A function that releases the lock. Calling it again has no effect.

    Raises:
        ValueError: Another process, or another lock of this process, holds the folder.
        OSError: The lock file cannot be written.
    """
    held = filelock.FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        held.acquire()
    except filelock.Timeout:
        raise ValueError(
            f"folder {folder} is in use by another process: wait until it ends, or choose another folder"
        ) from None
    return held.release
