"""Rows of your own with a column map, and filters."""

import pytest

from marft_envs.datasets.files import DataError
from marft_envs.mathematics.datasets import duplicates, load
from tests.marft_envs.datasets.gsm8k_rows import write_rows


def message(kind, name="custom", **arguments):
    with pytest.raises(kind) as error:
        load(name, **arguments)
    return str(error.value)


ROWS = [{"ask": f"What is {i} squared?", "result": i * i, "hard": i % 3 + 1, "field": "powers"} for i in range(100)]
COLUMNS = {"prompt": "ask", "answer": "result", "level": "hard", "subject": "field"}


def test_a_file_is_split_by_prompt_and_a_folder_by_file(tmp_path):
    path = write_rows(tmp_path / "mine.parquet", ROWS)
    parts = {split: load("custom", path=path, split=split, columns=COLUMNS) for split in ("train", "test", "all")}
    assert parts["all"].size == 100 == parts["train"].size + parts["test"].size
    assert parts["all"].problem(7).gold == "49"
    assert dict(parts["all"].problem(7).notes) == {"level": 2, "subject": "powers", "row": 7, "split": "all"}
    assert duplicates(parts["train"], parts["test"]) == []
    assert len(duplicates(parts["train"], parts["all"])) == parts["train"].size
    folder = tmp_path / "folder"
    folder.mkdir()
    write_rows(folder / "train.jsonl", ROWS[:30])
    write_rows(folder / "test.jsonl", ROWS[25:])
    train = load("custom", path=folder, split="train", columns=COLUMNS)
    assert (train.size, train.excluded) == (25, {"the same problem is in the test split": 5})
    assert load("custom", path=folder, split="test", columns=COLUMNS).size == 75


def test_wrong_column_maps_are_named(tmp_path):
    path = write_rows(tmp_path / "mine.jsonl", ROWS)
    assert "row 0 lacks prompt, answer; columns found: ask, result" in message(DataError, path=path)
    assert "unknown roles ['gold']" in message(ValueError, path=path, columns={"gold": "result"})
    wanted = "only dataset='custom' takes column names, got dataset='gsm8k'"
    assert wanted in message(ValueError, "gsm8k", path=path, columns=COLUMNS)
    assert "dataset='custom', split='test' was not found" in message(DataError)


def test_filters(tmp_path):
    path = write_rows(
        tmp_path / "mine.jsonl", [*ROWS, {"ask": "Half?" * 20, "result": "1/2", "hard": 3, "field": "parts"}]
    )

    def size(**filters):
        return load("custom", path=path, split="all", columns=COLUMNS, **filters).size

    assert size() == 101
    assert size(level=1) == 34 and size(level=[1, 3]) == 68 and size(level="Level 3") == 34
    assert size(subject="Parts") == 1 and size(subject=("parts", "powers")) == 101
    assert size(integer=True) == 100 and size(integer=False) == 1
    assert size(max_chars=50) == 100 and size(max_chars=18) == 10
    assert size(level=3, subject="powers", integer=True, limit=5, seed=1) == 5
    text = message(DataError, path=path, split="all", columns=COLUMNS, level=9)
    assert "no problem passes" in text and "levels: ['1', '2', '3'], subjects: ['parts', 'powers']" in text
    assert "max_chars=0: expected at least 1" in message(ValueError, path=path, max_chars=0)
    assert "integer='yes': expected True, False or None" in message(TypeError, path=path, integer="yes")
