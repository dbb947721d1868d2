"""Usable rows in a form that is mapped into memory: 7,500 problems open in milliseconds.

A folder in the cache holds one split: ``items.bin`` (the items as JSON, one after another, UTF-8), ``offsets.npy``
(where each begins) and ``meta.json``. Its name is a hash of the source (the files' SHA-256 or a pinned commit), of the
split and of the code that converts and checks the rows, so that a changed file or grader never finds an old entry. If
the cache cannot be written, the same arrays stay in memory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from marft_envs.datasets.cache import cache_folder

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Store:
    """Items as bytes of JSON.

    Attributes:
        blob: All items one after another, uint8 [bytes].
        offsets: Boundaries, int64 [N + 1]; item n is ``blob[offsets[n] : offsets[n + 1]]``.
        meta: Facts about the whole data set.
    """

    blob: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    meta: dict[str, Any]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> Any:
        return json.loads(self.blob[self.offsets[number] : self.offsets[number + 1]].tobytes())


def pack(items: Iterable[Any], meta: dict[str, Any]) -> Store:
    """Return a store in memory."""
    lines = [json.dumps(item, default=str).encode() for item in items]
    offsets = np.concatenate([[0], np.cumsum([len(line) for line in lines], dtype=np.int64)]).astype(np.int64)
    return Store(np.frombuffer(b"".join(lines), np.uint8), offsets, meta)


def store_folder() -> Path:
    """Return the folder of all stores, in the project's cache folder."""
    return cache_folder() / "datasets"


def key_of(*parts: str, code: Iterable[Path]) -> str:
    """Return the name of a store.

    Args:
        parts: The data set, its variant, the split and the identity of the source.
        code: Folders and files with the Python code that decides what a row becomes, for example the package with the
            row readers and the grader. This package is always included.
    """
    folders = (Path(__file__).parent, *code)
    # The Python version decides, too: a test program of one version may not compile in another.
    version = ".".join(map(str, sys.version_info[:2]))
    return hashlib.sha256("\0".join((*parts, version, hash_code(folders))).encode()).hexdigest()[:32]


def open_store(key: str) -> Store | None:
    """Return the store of that name, mapped into memory, or None if there is none or it is damaged."""
    folder = store_folder() / key
    try:
        meta = json.loads((folder / "meta.json").read_text())
        offsets = np.load(folder / "offsets.npy", mmap_mode="r")
        blob = np.memmap(folder / "items.bin", np.uint8, "r")
        return Store(blob, offsets, meta) if len(offsets) > 1 and int(offsets[-1]) == len(blob) else None
    except (OSError, ValueError, EOFError):
        return None


def save_store(key: str, store: Store) -> Store:
    """Write a store to the cache, and return it mapped from there; the same one if the cache cannot be written."""
    final = store_folder() / key
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=final.parent, prefix=".draft-"))
        try:
            store.blob.tofile(draft / "items.bin")
            np.save(draft / "offsets.npy", store.offsets)
            (draft / "meta.json").write_text(json.dumps(store.meta))
            if final.exists():
                shutil.rmtree(final)
            draft.rename(final)  # one step: another process sees a complete store or none
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:  # a read-only or full disk, or another process wrote the same store first
        _log.info("the cache %s was not written: %s", final, error)
    with contextlib.suppress(OSError):
        return open_store(key) or store
    return store


@functools.cache
def hash_code(folders: tuple[Path, ...]) -> str:
    """Return the SHA-256 of all Python files in ``folders``, with their names; computed once in a process."""
    digest = hashlib.sha256()
    for folder in folders:
        files = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
        for file in files:
            digest.update(f"{file.relative_to(folder.parent)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()
