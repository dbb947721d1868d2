"""The real data sets: the number of usable rows, their golds, the splits, and the time of a second load."""

import os
import time
from pathlib import Path

import pytest

from marft_envs.datasets.duplicates import duplicates
from marft_envs.mathematics.datasets import load
from marft_envs.mathematics.grader.gold_check import check_gold
from marft_envs.verdict import Outcome

BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data"
COUNTS = {  # rows, usable
    ("gsm8k", "train"): (7473, 7473),
    ("gsm8k", "test"): (1319, 1319),
    ("svamp", "train"): (789, 789),
    ("svamp", "test"): (211, 211),
    ("math", "train"): (7500, 7487),
    ("math", "test"): (5000, 5000),
    ("math500", "test"): (500, 500),
    ("aime2024", "test"): (30, 30),
    ("amc23", "test"): (40, 40),
    ("olympiadbench", "test"): (675, 671),
    ("cmath", "test"): (1098, 1098),
}


@pytest.fixture(scope="module")
def folder():
    path = Path(os.environ.get("MARFT_DATA") or BESIDE)
    if not path.is_dir():
        pytest.skip(f"NO REAL DATA at {path}: set MARFT_DATA to a folder with gsm8k/train.parquet, math/, ...")
    return path


@pytest.mark.parametrize(("name", "split"), COUNTS)
def test_the_number_of_usable_rows(folder, name, split):
    if name == "gsm8k":
        pytest.importorskip("pyarrow", reason="gsm8k is parquet: pip install '.[data]'")
    task = load(name, path=folder, split=split)
    assert (task.rows, task.size) == COUNTS[name, split], task.excluded
    assert task.rows - task.size == sum(task.excluded.values()) == len(task.unusable)
    started = time.perf_counter()
    again = load(name, path=folder, split=split)
    assert time.perf_counter() - started < 0.7  # from the cache
    assert again.problem(again.size - 1) == task.problem(task.size - 1)
    assert check_gold(again, limit=50) == []


def test_gsm8k_solutions_are_correct_replies(folder):
    """The reference solution, a whole reply that ends with ``#### n``, is graded as correct."""
    pytest.importorskip("pyarrow", reason="gsm8k is parquet: pip install '.[data]'")
    from marft_envs.datasets.files import read_rows

    task = load("gsm8k", path=folder, split="test")
    for index, row in enumerate(read_rows(folder / "gsm8k" / "test.parquet")):
        assert task.grade(row["answer"], task.problem(index)).outcome is Outcome.CORRECT


def test_splits_of_math_share_no_problem_and_math500_is_its_test(folder):
    train, test = load("math", path=folder, split="train"), load("math", path=folder, split="test")
    five_hundred = load("math500", path=folder)
    assert duplicates(train, test) == []
    assert train.excluded["the same problem is in the test split"] == 10
    assert duplicates(train, five_hundred) == []
    assert len(duplicates(test, five_hundred)) == 500
