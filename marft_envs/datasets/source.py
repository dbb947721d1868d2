"""Search for the rows of a data set: ``path=``, then the folder in MARFT_DATA, then the hub or its cache."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marft_envs.datasets.dataset_spec import DatasetSpec
from marft_envs.datasets.files import SUFFIXES, DataError, DataNotFound, Row, read_rows
from marft_envs.datasets.hub import read_hub

DATA_VARIABLE = "MARFT_DATA"


@dataclass(frozen=True)
class LocalFiles:
    """The files of one split."""

    files: tuple[Path, ...]

    @functools.cached_property
    def identity(self) -> str:
        """SHA-256 of the contents."""
        return hash_files(self.files)

    def read(self) -> tuple[list[Row], str]:
        """Return the rows, and the names of the files with their hash."""
        return [row for file in self.files for row in read_rows(file)], f"{self._names} (sha256 {self.identity})"

    def read_once(self) -> tuple[list[Row], str]:
        """Return the rows and the names of the files; unchanged files are read once in a process, and not hashed."""
        return [row for file in self.files for row in _read_at(file, file.stat().st_mtime_ns)], self._names

    @property
    def _names(self) -> str:
        return ", ".join(map(str, self.files))


@dataclass(frozen=True)
class HubRows:
    """One split on the hub. tried: where it was searched before, for the error message."""

    spec: DatasetSpec[Any]
    split: str
    tried: str

    @property
    def identity(self) -> str:
        """Repository and pinned commit; empty without one, because the rows may then change."""
        hub = self.spec.hub
        return f"{hub.repository}@{hub.revision}" if hub and hub.revision else ""

    def read(self) -> tuple[list[Row], str]:
        """Return the rows, and the repository with the commit that was read."""
        hub = self.spec.hub
        if hub is None:
            raise _not_found(self.spec, self.split, f"{self.tried}; {self.spec.name} is not read from the hub")
        names = (hub.split_names.get(split, split) for split in _file_splits(self.spec, self.split))
        splits = tuple(dict.fromkeys(names))  # two of our splits may be one on the hub
        try:
            rows, commit = read_hub(self.spec.name, hub, splits)
        except DataError as error:
            raise _not_found(self.spec, self.split, f"{self.tried}; {error}") from error
        return rows, f"{hub.repository} ({commit})"

    def read_once(self) -> tuple[list[Row], str]:
        """Same as ``read``: the hub has a cache of its own."""
        return self.read()


def find_source(spec: DatasetSpec[Any], split: str, path: str | os.PathLike[str] | None) -> LocalFiles | HubRows:
    """Return the first source that has the split.

    Args:
        spec: The data set.
        split: One of its splits.
        path: A file, or a folder with the data; None for the folder in MARFT_DATA, then the hub.

    Raises:
        FileNotFoundError: ``path`` or MARFT_DATA does not exist, or ``path`` holds no file of the split.
        DataError: ``path`` is a file with the name of another split.
    """
    if path is not None:
        return LocalFiles(_files_at(spec, split, Path(path)))
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return HubRows(spec, split, f"{DATA_VARIABLE} is not set")
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"{DATA_VARIABLE}={folder!r}: no such folder, expected one with {spec.name}/ in it")
    try:
        return LocalFiles(_files_at(spec, split, Path(folder)))
    except FileNotFoundError as error:
        return HubRows(spec, split, f"{DATA_VARIABLE}: {error}")


def sibling_files(spec: DatasetSpec[Any], split: str, path: str | os.PathLike[str] | None) -> tuple[Path, ...]:
    """Return the files of another split in the same folder; none if the data is not in a folder of its splits."""
    folder = Path(path) if path is not None else Path(os.environ.get(DATA_VARIABLE) or "")
    if spec.split_of is not None or split not in spec.splits or str(folder) == "." or not folder.is_dir():
        return ()
    try:
        return _files_at(spec, split, folder)
    except FileNotFoundError:
        return ()


def hash_files(files: Iterable[Path]) -> str:
    """Return the hexadecimal SHA-256 of the files' contents, one after another."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


@functools.lru_cache(maxsize=4)
def _read_at(file: Path, modified_ns: int) -> list[Row]:
    return read_rows(file)


def _not_found(spec: DatasetSpec[Any], split: str, tried: str) -> DataNotFound:
    """The error for a data set that no source has; it describes how to get the data."""
    names = " or ".join(f"{spec.name}/{name}" for name in _file_names(spec, split))
    fill_cache = ", or run once with access to the hub, which fills its cache" if spec.hub else ""
    return DataNotFound(
        f"dataset={spec.name!r}, split={split!r} was not found. Tried: {tried}. To get it: pass path= with a file or "
        f"folder, or set {DATA_VARIABLE} to a folder that holds {names}, ending in {', '.join(SUFFIXES)}{fill_cache}"
    )


def _files_at(spec: DatasetSpec[Any], split: str, path: Path) -> tuple[Path, ...]:
    """Return ``path`` if it is a file, else the split's files in it or in its sub-folder with the data set's name."""
    if path.is_file():
        stem = path.name.split(".")[0]
        if spec.split_of is None and stem in spec.splits and stem != split:
            raise DataError(
                f"path={str(path)!r}: its name is that of split={stem!r}, expected a file of split={split!r}"
            )
        return (path,)
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: no such file or folder, expected the data of {spec.name}")
    folder = path / spec.name if (path / spec.name).is_dir() else path
    for pattern in spec.files:
        stems = dict.fromkeys(pattern.format(split=name) for name in _file_splits(spec, split))
        if found := [file for stem in stems for file in _matching(folder, stem)]:
            return tuple(found)
    names = " or ".join(_file_names(spec, split))
    raise FileNotFoundError(f"{folder}: no {names} for {spec.name}, expected one ending in {', '.join(SUFFIXES)}")


def _matching(folder: Path, stem: str) -> list[Path]:
    """Return the files of that name in sorted order; of one that is there in several formats, the first of SUFFIXES."""
    found: dict[str, Path] = {}
    for suffix in SUFFIXES:
        for file in folder.glob(stem + suffix):
            if file.is_file():
                found.setdefault(str(file).removesuffix(suffix), file)
    return sorted(found.values())


def _file_splits(spec: DatasetSpec[Any], split: str) -> tuple[str, ...]:
    """Return the splits whose files are read: all of them where each row's split is computed."""
    return (split,) if spec.split_of is None else spec.splits


def _file_names(spec: DatasetSpec[Any], split: str) -> list[str]:
    """Return the names of the expected files, for error messages: ``test.*``."""
    stems = dict.fromkeys(pattern.format(split=name) for pattern in spec.files for name in _file_splits(spec, split))
    return [stem if stem.endswith("*") else f"{stem}.*" for stem in stems]
