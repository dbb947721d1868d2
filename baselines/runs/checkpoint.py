"""Checkpoints that survive a kill or a power cut: each is complete or absent, and every file has a SHA-256.

A checkpoint is a folder named after its update. ``write`` fills a temporary folder next to it, syncs every file, writes
the manifest last, and renames the folder, so that readers see a complete checkpoint or none. It renames old
checkpoints before it deletes them for the same reason. The hashes detect later corruption.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baselines.errors import RunError, is_full

SCHEMA = "marft-checkpoint/1"
MANIFEST = "manifest.json"
_UNFINISHED = ".unfinished-"


class CheckpointError(RunError):
    """A run's file cannot be written or read. The message says what is intact and what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose hashes are verified.

    Attributes:
        folder: Folder of the checkpoint.
        manifest: Content of its manifest.json: ``update``, ``config_hash``, ``files``, and what its writer added.
    """

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def update(self) -> int:
        """The update after which it was written."""
        return int(self.manifest["update"])


@dataclass(frozen=True)
class Found:
    """Result of a search for the newest checkpoint.

    Attributes:
        checkpoint: The newest intact checkpoint; None if there is none.
        skipped: For each newer checkpoint, why it cannot be used.
    """

    checkpoint: Checkpoint | None
    skipped: list[str] = field(default_factory=list)


def write(parent: Path, update: int, files: Mapping[str, bytes], manifest: Mapping[str, Any], *, keep: int) -> Path:
    """Write the checkpoint ``parent/<update>``, and delete all but the newest ``keep`` checkpoints.

    Args:
        parent: Folder of all checkpoints of a run.
        update: The update after which it is written.
        files: Content by path inside the checkpoint.
        manifest: Further entries of the manifest, as JSON values.
        keep: Number of checkpoints to keep, this one included.

    Returns:
        The folder of the checkpoint.

    Raises:
        CheckpointError: A file cannot be written, for example because the disk is full. Earlier checkpoints are intact.
    """
    target, temporary = parent / f"{update:06d}", parent / f"{_UNFINISHED}{update:06d}"
    listing = {name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in files.items()}
    head = {"schema": SCHEMA, "update": update, **manifest, "files": listing}
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _delete_unfinished(parent)
        for name, data in {**files, MANIFEST: json.dumps(head, indent=1).encode()}.items():
            write_synced(temporary / name, data)
        # a file survives a power cut only once the folder that names it is synced, too
        for inner in (temporary, *(p for p in temporary.rglob("*") if p.is_dir())):
            _sync_folder(inner)
        if target.exists():
            _remove(target)
        temporary.rename(target)
        _sync_folder(parent)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        size = sum(map(len, files.values())) / 2**20
        intact = list(updates(parent))
        raise CheckpointError(
            f"checkpoint of update {update} ({size:.1f} MiB) could not be written to {parent}: "
            f"{error.strerror or error}; "
            + (f"the one of update {intact[-1]} is intact" if intact else "there is no earlier one")
            + f". {remedy(error).capitalize()}, then resume the run"
        ) from error
    for old in list(updates(parent).values())[:-keep]:
        _remove(old)
    return target


def remedy(error: OSError) -> str:
    """Return what a user should do about the error before resuming."""
    return "make room" if is_full(error) else "fix the cause"


def newest(parent: Path) -> Found:
    """Return the newest checkpoint in ``parent`` whose files match its manifest."""
    skipped: list[str] = []
    for folder in reversed(updates(parent).values()):
        try:
            return Found(read(folder), skipped)
        except CheckpointError as error:
            skipped.append(str(error))
    return Found(None, skipped)


def read(folder: Path) -> Checkpoint:
    """Read a checkpoint and verify the hash of every file.

    Raises:
        CheckpointError: A file is missing, unreadable or corrupt; the message names it.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest.get("schema") != SCHEMA:
            raise CheckpointError(f"checkpoint {folder}: schema={manifest.get('schema')!r}, expected {SCHEMA!r}")
        for name, expected in manifest["files"].items():
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected["sha256"]:
                raise CheckpointError(
                    f"checkpoint {folder} is corrupt: the SHA-256 of {name} differs from its manifest"
                )
    except FileNotFoundError as error:
        raise CheckpointError(f"checkpoint {folder} is incomplete: {Path(error.filename).name} is missing") from error
    except OSError as error:
        raise CheckpointError(f"checkpoint {folder}: {error.filename} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:  # JSON of another shape
        raise CheckpointError(f"checkpoint {folder} is corrupt: {MANIFEST} cannot be read ({error!r})") from error
    return Checkpoint(folder, manifest)


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file and sync it to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that may exist, and sync it. Readers see the old content or the new one, never a part."""
    temporary = path.with_name(path.name + ".tmp")
    write_synced(temporary, data)
    temporary.replace(path)
    _sync_folder(path.parent)


def updates(parent: Path) -> dict[int, Path]:
    """Return the checkpoint folders in ``parent`` by update, the newest last, without reading them."""
    if not parent.is_dir():
        return {}
    return dict(sorted((int(p.name), p) for p in parent.iterdir() if p.name.isdigit() and p.is_dir()))


def _delete_unfinished(parent: Path) -> None:
    """Delete the temporary folders of a killed writer."""
    for left in parent.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left)


def _remove(folder: Path) -> None:
    """Rename the folder, then delete it: a kill in between leaves no half-deleted checkpoint under a valid name."""
    aside = folder.with_name(_UNFINISHED + "old-" + folder.name)
    folder.rename(aside)
    shutil.rmtree(aside)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
