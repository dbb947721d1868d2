"""Reading of rows from local files: .parquet, .jsonl and .json, the last two also with .gz.

A .json file holds a list of objects, or one object per line.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".json", ".json.gz")
Row = dict[str, Any]


class DataError(ValueError):
    """Data that cannot be used. The message names the file or the data set, and what was expected."""


class DataNotFound(DataError):
    """A data set that no source has. The message names what was tried, and how to get the data."""


def read_rows(path: Path) -> list[Row]:
    """Return all rows of a file, in its order.

    Raises:
        FileNotFoundError: There is no such file.
        DataError: The file is empty, corrupt or of another format.
        ImportError: It is a parquet file, and pyarrow is not installed.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file, expected one ending in {', '.join(SUFFIXES)}")
    if path.suffix == ".parquet":
        rows = _read_parquet(path)
    elif path.name.endswith(SUFFIXES):
        rows = _read_json(path)
    else:
        raise DataError(f"{path}: unknown file format, expected a name ending in {', '.join(SUFFIXES)}")
    if not rows:
        raise DataError(f"{path}: the file is empty, expected at least one row")
    return rows


def check_columns(rows: Iterable[Row], columns: Iterable[str], source: str) -> None:
    """Raise DataError if a row lacks one of ``columns``, or has None in it.

    Args:
        rows: All rows of the data set.
        columns: Required columns.
        source: The data set and its origin, for the error message.
    """
    wanted = tuple(columns)
    for number, row in enumerate(rows):
        missing = [column for column in wanted if row.get(column) is None]
        if missing:
            found = ", ".join(map(str, row)) or "none"
            raise DataError(f"{source}: row {number} lacks {', '.join(missing)}; columns found: {found}")


def _read_parquet(path: Path) -> list[Row]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{path}: reading parquet needs pyarrow: pip install '.[data]' in the repository") from error
    try:
        rows: list[Row] = pyarrow.parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a readable parquet file ({str(error).splitlines()[0]})") from error
    return rows


def _read_json(path: Path) -> list[Row]:
    text = _read_text(path)
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: not valid JSON ({error})") from error
        for number, row in enumerate(rows):
            _check_object(row, f"{path}: item {number}")
        return list(rows)
    # Not splitlines(): a JSON string may contain U+2028, which that would break.
    return [_parse_line(line, path, n) for n, line in enumerate(text.split("\n"), 1) if line.strip()]


def _read_text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: not a readable gzip file ({error})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error})") from error


def _parse_line(line: str, path: Path, number: int) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}, line {number}: not valid JSON ({error})") from error
    return _check_object(row, f"{path}, line {number}")


def _check_object(row: Any, where: str) -> Row:
    if not isinstance(row, dict):
        raise DataError(f"{where}: got {type(row).__name__}, expected an object with named columns")
    return row
