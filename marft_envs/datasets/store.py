"""Usable rows in a form that is mapped into memory: 7,500 problems open in milliseconds, and only what is read is
loaded.

A folder of the cache holds ``items.bin`` (one JSON text after another, UTF-8), ``offsets.npy`` (where each begins) and
``meta.json``. Its name is a hash of the source (files' SHA-256 or a pinned commit), of the split and of this package's
code, so that a changed file or grader is never served from an old cache. Where the cache cannot be written, the same
arrays stay in memory.

The cache is MARFT_CACHE, else marft_envs in XDG_CACHE_HOME, else ~/.cache/marft_envs.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

VARIABLE = "MARFT_CACHE"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Store:
    """blob [bytes] uint8, offsets [N + 1] int64: item n is blob[offsets[n] : offsets[n + 1]]. meta: facts about all."""

    blob: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    meta: dict[str, Any]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> Any:
        return json.loads(self.blob[self.offsets[number] : self.offsets[number + 1]].tobytes())


def pack(items: Iterable[Any], meta: dict[str, Any]) -> Store:
    """A store in memory."""
    texts = [json.dumps(item, default=str).encode() for item in items]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts], dtype=np.int64)]).astype(np.int64)
    return Store(np.frombuffer(b"".join(texts), np.uint8), offsets, meta)


def cache_folder() -> Path:
    """Where stores are kept."""
    if folder := os.environ.get(VARIABLE):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "marft_envs"


def key_of(*parts: str) -> str:
    """The name of a store: its source and this package's code."""
    return hashlib.sha256("\0".join((*parts, _code())).encode()).hexdigest()[:32]


def open_store(key: str) -> Store | None:
    """The store of that name, mapped into memory; None where there is none or it is damaged."""
    folder = cache_folder() / key
    try:
        meta = json.loads((folder / "meta.json").read_text())
        offsets = np.load(folder / "offsets.npy", mmap_mode="r")
        blob = np.memmap(folder / "items.bin", np.uint8, "r")
        return Store(blob, offsets, meta) if len(offsets) > 1 and int(offsets[-1]) == len(blob) else None
    except (OSError, ValueError, EOFError):
        return None


def save_store(key: str, store: Store) -> Store:
    """The store, now mapped from the cache; the one in memory where the cache cannot be written."""
    final = cache_folder() / key
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=final.parent, prefix=".draft-"))
        try:
            store.blob.tofile(draft / "items.bin")
            np.save(draft / "offsets.npy", store.offsets)
            (draft / "meta.json").write_text(json.dumps(store.meta))
            if final.exists():
                shutil.rmtree(final)
            draft.rename(final)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:  # read-only, full, or another process was quicker
        _log.info("the cache %s was not written: %s", final, error)
    with contextlib.suppress(OSError):
        return open_store(key) or store
    return store


@functools.cache
def _code() -> str:
    """A hash of the source of the packages that decide what a row becomes."""
    package = Path(__file__).resolve().parents[1]
    files = sorted([*package.glob("datasets/**/*.py"), *package.glob("mathematics/**/*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
