"""Checkpoints that survive kill -9: whole or not there, with a SHA-256 for every file.

A checkpoint is a folder named by its update. It is written under another name in the same place, every file is synced,
the manifest last, and then the folder gets its name: whoever looks sees a whole checkpoint or none. Old ones are
renamed before they are deleted, for the same reason. What a disk corrupts later is found by the hashes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = "marft-checkpoint/1"
MANIFEST = "manifest.json"
_UNFINISHED = ".unfinished-"


class CheckpointError(RuntimeError):
    """A checkpoint that could not be written or read; the message says what is left and what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint. manifest: update, config_hash, and whatever else its writer put there."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def update(self) -> int:
        """After which update it was written."""
        return int(self.manifest["update"])


@dataclass(frozen=True)
class Found:
    """What a search came to. passed_over: why each newer one was not taken."""

    checkpoint: Checkpoint | None
    passed_over: list[str] = field(default_factory=list)


def write(place: Path, update: int, files: Mapping[str, bytes], manifest: Mapping[str, Any], *, keep: int) -> Path:
    """Write ``place/<update>`` and delete all but the last ``keep`` checkpoints. -> its folder.

    files: content by path inside the checkpoint. manifest: JSON-able. CheckpointError if the disk does not take it; the
    earlier ones are as they were.
    """
    target, temporary = place / f"{update:06d}", place / f"{_UNFINISHED}{update:06d}"
    listing = {name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in files.items()}
    head = {"schema": SCHEMA, "update": update, **manifest, "files": listing}
    try:
        place.mkdir(parents=True, exist_ok=True)
        _sweep(place)
        for name, data in {**files, MANIFEST: json.dumps(head, indent=1).encode()}.items():
            write_synced(temporary / name, data)
        for inner in (temporary, *(p for p in temporary.rglob("*") if p.is_dir())):
            _sync_folder(inner)
        if target.exists():
            _remove(target)
        temporary.rename(target)
        _sync_folder(place)
    except OSError as fault:
        shutil.rmtree(temporary, ignore_errors=True)
        size = sum(map(len, files.values())) / 2**20
        kept = list(updates(place))
        raise CheckpointError(
            f"checkpoint of update {update} ({size:.1f} MiB) could not be written to {place}: "
            f"{fault.strerror or fault}; "
            + (f"the one of update {kept[-1]} is intact" if kept else "there is no earlier one")
            + f". {remedy(fault).capitalize()}, then go on with resume"
        ) from fault
    for old in list(updates(place).values())[:-keep]:
        _remove(old)
    return target


def is_full(fault: OSError) -> bool:
    """Whether it says that the disk, or the user's share of it, is full."""
    return fault.errno in (errno.ENOSPC, errno.EDQUOT)


def remedy(fault: OSError) -> str:
    """What a person does about it before going on."""
    return "make room" if is_full(fault) else "put that right"


def newest(place: Path) -> Found:
    """The newest checkpoint whose files are what its manifest says."""
    passed_over: list[str] = []
    for folder in reversed(updates(place).values()):
        try:
            return Found(read(folder), passed_over)
        except CheckpointError as fault:
            passed_over.append(str(fault))
    return Found(None, passed_over)


def read(folder: Path) -> Checkpoint:
    """The checkpoint in ``folder``, every hash checked. CheckpointError says what is wrong with it."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest.get("schema") != SCHEMA:
            raise CheckpointError(f"checkpoint {folder}: schema={manifest.get('schema')!r}, expected {SCHEMA!r}")
        for name, expected in manifest["files"].items():
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected["sha256"]:
                raise CheckpointError(f"checkpoint {folder} is corrupt: {name} has another SHA-256 than its manifest")
    except FileNotFoundError as fault:
        raise CheckpointError(f"checkpoint {folder} is not whole: {Path(fault.filename).name} is missing") from fault
    except OSError as fault:
        raise CheckpointError(f"checkpoint {folder}: {fault.filename} cannot be read: {fault.strerror}") from fault
    except (ValueError, KeyError, TypeError, AttributeError) as fault:  # a manifest of other content
        raise CheckpointError(f"checkpoint {folder} is corrupt: {MANIFEST} cannot be read ({fault!r})") from fault
    return Checkpoint(folder, manifest)


def write_synced(path: Path, data: bytes) -> None:
    """A new file whose bytes are on the disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes) -> None:
    """The same for a file that may exist: readers see the old content or the new one."""
    temporary = path.with_name(path.name + ".tmp")
    write_synced(temporary, data)
    temporary.replace(path)
    _sync_folder(path.parent)


def updates(place: Path) -> dict[int, Path]:
    """The folders in ``place`` that are named as checkpoints, by their updates, the newest last. Reads none of them."""
    if not place.is_dir():
        return {}
    return dict(sorted((int(p.name), p) for p in place.iterdir() if p.name.isdigit() and p.is_dir()))


def _sweep(place: Path) -> None:
    """Delete what a killed writer left."""
    for left in place.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left)


def _remove(folder: Path) -> None:
    aside = folder.with_name(_UNFINISHED + "old-" + folder.name)
    folder.rename(aside)
    shutil.rmtree(aside)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
