"""Reader of a results folder's rows.jsonl: parse each line, validate each row, name file and line of an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.analysis.rows_schema import MODES, ReportError, Row, check_row

__all__ = ["MODES", "ROWS_FILE", "ReportError", "Row", "load_rows", "parse_line"]

ROWS_FILE = "rows.jsonl"


def load_rows(folder: Path | str) -> list[Row]:
    """Return all rows of ``folder/rows.jsonl``, validated.

    A process that is killed may leave a half-written last line. It is left out, and a row of kind "note" reports it.

    Args:
        folder: Results folder of ``compare.py``.

    Raises:
        ReportError: The folder or the file does not exist, a line is malformed, or no row is an evaluation or a
            failure.
    """
    path = _rows_path(Path(folder))
    lines = path.read_bytes().split(b"\n")
    last = max((i for i, line in enumerate(lines) if line.strip()), default=-1)
    if last < 0:
        raise ReportError(f"{path} is empty; expected one JSON object per line")
    rows: list[Row] = []
    for number, line in enumerate(lines[: last + 1], start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:  # bad JSON or bad UTF-8
            if number == last + 1:
                text = f"line {number}, the last of {ROWS_FILE}, is half-written and was left out"
                rows.append({"kind": "note", "text": text})
                break
            raise _not_json(where, error) from None
        rows.append(check_row(row, where))
    if not any(row["kind"] in ("eval", "failure") for row in rows):
        raise ReportError(
            f"{path} has no row of kind 'eval', so there is nothing to report; has a run been evaluated yet?"
        )
    return rows


def parse_line(line: str, where: str) -> Any:
    """Parse a complete line of a rows.jsonl without validating it.

    Raises:
        ReportError: The line is not JSON.
    """
    try:
        return json.loads(line)
    except ValueError as error:
        raise _not_json(where, error) from None


def _not_json(where: str, error: ValueError) -> ReportError:
    return ReportError(f"{where} is not JSON ({error}); only the last line of the file may be incomplete")


def _rows_path(folder: Path) -> Path:
    """Return the rows file of a results folder."""
    if not folder.exists():
        raise ReportError(f"results folder {folder} does not exist; expected the folder that compare.py wrote")
    if not folder.is_dir():
        raise ReportError(f"{folder} is not a folder; expected the results folder that holds {ROWS_FILE}")
    if not (folder / ROWS_FILE).is_file():
        raise ReportError(f"results folder {folder} holds no {ROWS_FILE}; expected the folder that compare.py wrote")
    return folder / ROWS_FILE
