"""Where the rows of a named data set come from: ``path=``, then the folder in MARFT_DATA, then the hub or its cache."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from marft_envs.datasets.files import SUFFIXES, DataError, Row, check_columns, read_rows
from marft_envs.datasets.hub import read_hub
from marft_envs.datasets.specs import DatasetSpec

VARIABLE = "MARFT_DATA"


def rows_of(spec: DatasetSpec, split: str, path: str | os.PathLike[str] | None) -> tuple[list[Row], str]:
    """(rows of ``split`` with their columns checked, where they came from with a hash or commit)."""
    rows, origin = _find(spec, split, path)
    check_columns(rows, spec.columns, f"{spec.name} from {origin.split(' (')[0]}")
    if spec.member is not None:
        rows = [row for row in rows if spec.member(row) == split]
    return rows, origin


def _find(spec: DatasetSpec, split: str, path: str | os.PathLike[str] | None) -> tuple[list[Row], str]:
    if path is not None:
        return _read_files(_files_at(spec, split, Path(path)))
    folder = os.environ.get(VARIABLE)
    tried = f"{VARIABLE} is not set"
    if folder:
        if not Path(folder).is_dir():
            raise FileNotFoundError(f"{VARIABLE}={folder!r}: no such folder, expected one with {spec.name}/ in it")
        try:
            files = _files_at(spec, split, Path(folder))
        except FileNotFoundError as error:
            tried = f"{VARIABLE}: {error}"
        else:
            return _read_files(files)
    parts = (split,) if spec.member is None else spec.splits
    try:
        rows, commit = read_hub(spec, parts)
    except DataError as error:
        raise DataError(
            f"dataset={spec.name!r}, split={split!r} was not found. Tried: {tried}; {error}. To get it: pass path= a "
            f"file or folder, or set {VARIABLE} to a folder that holds {spec.name}/{split}.parquet (or .jsonl, .json, "
            "with or without .gz), or run once with access to the hub, which fills its cache"
        ) from error
    return rows, f"{spec.hub.repository} ({commit})"


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


def _read_files(files: list[Path]) -> tuple[list[Row], str]:
    rows = [row for file in files for row in read_rows(file)]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    return rows, f"{', '.join(map(str, files))} (sha256 {digest})"
