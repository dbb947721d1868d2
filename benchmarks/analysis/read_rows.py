"""Read a results folder's rows.jsonl: parse, check against the schema, say in one line what is wrong and where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROWS_FILE = "rows.jsonl"
MODES = ("sampled", "greedy")
EVAL_KEYS = ("arm", "task", "seed", "update", "mode", "accuracy", "n", "no_answer", "not_graded", "item_index",
             "item_score")  # fmt: skip
TRAIN_KEYS = ("arm", "task", "seed", "update", "episodes")
ACCURACY_ROUNDING = 1e-3  # a writer may round; a larger gap between accuracy and its items is a fault

Row = dict[str, Any]


class ReportError(ValueError):
    """The results cannot be reported; the message is one line for the user."""


def load_rows(folder: Path | str) -> list[Row]:
    """All rows of `folder`/rows.jsonl, checked. A half-written last line becomes a row of kind `note`.

    Any other bad line, an absent folder or file and a file without eval rows raise ReportError.
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
        try:
            row = json.loads(line)
        except ValueError as error:  # bad JSON or bad UTF-8
            if number == last + 1:
                text = f"line {number}, the last of {ROWS_FILE}, is half-written and was left out"
                rows.append({"kind": "note", "text": text})
                break
            raise ReportError(f"{path} line {number} is not JSON ({error}); only the last line may be cut") from None
        rows.append(_checked(row, f"{path} line {number}"))
    if not any(row["kind"] == "eval" for row in rows):
        raise ReportError(f"{path} has no eval rows, so there is nothing to report; has a run been evaluated yet?")
    return rows


def _rows_path(folder: Path) -> Path:
    """The rows file of an existing results folder."""
    if not folder.exists():
        raise ReportError(f"results folder {folder} does not exist; expected the folder that compare.py wrote")
    if not folder.is_dir():
        raise ReportError(f"{folder} is not a folder; expected the results folder that holds {ROWS_FILE}")
    if not (folder / ROWS_FILE).is_file():
        raise ReportError(f"results folder {folder} holds no {ROWS_FILE}; expected the folder that compare.py wrote")
    return folder / ROWS_FILE


def _checked(row: Any, where: str) -> Row:
    """The row itself when it fits the schema; kinds this report does not know pass unread."""
    if not isinstance(row, dict) or not isinstance(row.get("kind"), str):
        raise ReportError(f"{where} is not an object with a 'kind' (run, eval or train)")
    if row["kind"] in ("eval", "train"):
        keys = EVAL_KEYS if row["kind"] == "eval" else TRAIN_KEYS
        missing = [key for key in keys if key not in row]
        if missing:
            raise ReportError(f"{where}: {row['kind']} row without {', '.join(missing)}")
        _whole(row, ("seed", "update"), where)
    if row["kind"] == "eval":
        _check_eval(row, where)
    return row


def _whole(row: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in keys:
        if not isinstance(row[key], int) or isinstance(row[key], bool) or row[key] < 0:
            raise ReportError(f"{where}: {key} must be a whole number of 0 or more, got {row[key]!r}")


def _check_eval(row: Row, where: str) -> None:
    """Counts, items and accuracy of an eval row agree. Without a graded item the accuracy may be null or NaN."""
    _whole(row, ("n", "no_answer", "not_graded"), where)
    if row["mode"] not in MODES:
        raise ReportError(f"{where}: mode must be one of {', '.join(MODES)}, got {row['mode']!r}")
    index, score = row["item_index"], row["item_score"]
    if not isinstance(index, list) or not isinstance(score, list) or len(index) != len(score):
        raise ReportError(f"{where}: item_index and item_score must be lists of one length")
    for item, value in zip(index, score, strict=True):
        if not _in_unit(value):
            raise ReportError(f"{where}: item_score of item {item} must lie in [0, 1], got {value!r}")
    if not score:
        row["accuracy"] = None
        return
    accuracy, mean = row["accuracy"], sum(score) / len(score)
    if not _in_unit(accuracy):
        raise ReportError(f"{where}: accuracy must lie in [0, 1], got {accuracy!r}")
    if abs(accuracy - mean) > ACCURACY_ROUNDING:
        raise ReportError(f"{where}: accuracy {accuracy} is not the mean of its item scores, {mean:.6f}")


def _in_unit(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1  # false for nan
