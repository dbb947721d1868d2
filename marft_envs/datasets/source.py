"""Where the rows of a named data set come from: ``path=``, then the folder in MARFT_DATA, then the hub or its cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from marft_envs.datasets.files import SUFFIXES, DataError, Row, read_rows
from marft_envs.datasets.hub import read_hub
from marft_envs.datasets.specs import DatasetSpec

VARIABLE = "MARFT_DATA"


@dataclass(frozen=True)
class Source:
    """identity: what the cache is keyed by, "" for rows that may change unseen. read: (rows, where they came from)."""

    identity: str
    read: Callable[[], tuple[list[Row], str]]


def find_source(spec: DatasetSpec, split: str, path: str | os.PathLike[str] | None) -> Source:
    """The first place that has the split. FileNotFoundError or DataError says what was tried."""
    if path is not None:
        return _from_files(_files_at(spec, split, Path(path)))
    folder = os.environ.get(VARIABLE)
    tried = f"{VARIABLE} is not set"
    if folder:
        if not Path(folder).is_dir():
            raise FileNotFoundError(f"{VARIABLE}={folder!r}: no such folder, expected one with {spec.name}/ in it")
        try:
            return _from_files(_files_at(spec, split, Path(folder)))
        except FileNotFoundError as error:
            tried = f"{VARIABLE}: {error}"
    return _from_hub(spec, split, tried)


def sibling_files(spec: DatasetSpec, split: str, path: str | os.PathLike[str] | None) -> list[Path]:
    """The files of another split beside those of a folder; none where there is no folder."""
    place = Path(path) if path is not None else Path(os.environ.get(VARIABLE) or "")
    if spec.member is not None or split not in spec.splits or str(place) == "." or not place.is_dir():
        return []
    try:
        return _files_at(spec, split, place)
    except FileNotFoundError:
        return []


def _from_files(files: list[Path]) -> Source:
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    names = ", ".join(map(str, files))
    return Source(digest, lambda: ([row for file in files for row in read_rows(file)], f"{names} (sha256 {digest})"))


def _from_hub(spec: DatasetSpec, split: str, tried: str) -> Source:
    hub = spec.hub
    holds = f"{spec.name}/{split}.parquet (or .jsonl, .json, with or without .gz)"
    if hub is None:
        raise not_found(spec.name, split, tried, holds)
    parts = tuple(hub.parts.get(part, part) for part in ((split,) if spec.member is None else spec.splits))

    def read() -> tuple[list[Row], str]:
        try:
            rows, commit = read_hub(spec.name, hub, parts)
        except DataError as error:
            raise not_found(spec.name, split, f"{tried}; {error}", holds, at_hub=True) from error
        return rows, f"{hub.repository} ({commit})"

    identity = f"{hub.repository}@{hub.revision}" if hub.revision else ""
    return Source(identity, read)


def not_found(name: str, split: str, tried: str, holds: str, *, at_hub: bool = False) -> DataError:
    """The error for a data set that is nowhere, which says how to get it. tried: where it was looked for. holds: what a
    folder must hold. at_hub: whether the hub has it."""
    return DataError(
        f"dataset={name!r}, split={split!r} was not found. Tried: {tried}. To get it: pass path= a file or folder, or "
        f"set {VARIABLE} to a folder that holds {holds}"
        + (", or run once with access to the hub, which fills its cache" if at_hub else "")
    )


def _files_at(spec: DatasetSpec, split: str, place: Path) -> list[Path]:
    """The files to read at ``place``: itself, or the split's file in it or in its sub-folder of that name."""
    if place.is_file():
        part = place.name.split(".")[0]
        if spec.member is None and part in spec.splits and part != split:
            raise DataError(f"path={str(place)!r}: by its name the split {part!r}, expected a file of split={split!r}")
        return [place]
    if not place.is_dir():
        raise FileNotFoundError(f"{place}: no such file or folder, expected the data of {spec.name}")
    folder = place / spec.name if (place / spec.name).is_dir() else place
    parts = (split,) if spec.member is None else spec.splits
    found = [file for part in parts for file in [_first_file(folder, part)] if file]
    if not found:
        names = " or ".join(f"{part}.*" for part in parts)
        raise FileNotFoundError(f"{folder}: no {names} for {spec.name}, expected one ending in {', '.join(SUFFIXES)}")
    return found


def _first_file(folder: Path, part: str) -> Path | None:
    return next((folder / (part + suffix) for suffix in SUFFIXES if (folder / (part + suffix)).is_file()), None)
