"""Every row of the real data sets: its gold is right, a changed gold is wrong, and the counts are what the docs say."""

import os
from pathlib import Path

import pytest

from marft_envs.datasets import NAMES, load
from marft_envs.mathematics import grade
from marft_envs.mathematics.number import parse_number
from marft_envs.verdict import Outcome

BESIDE = Path(__file__).parents[4] / "shared" / "data"
COUNTS = {  # rows, usable
    ("gsm8k", "train"): (7473, 7473),
    ("gsm8k", "test"): (1319, 1319),
    ("svamp", "train"): (789, 789),
    ("svamp", "test"): (211, 211),
    ("math", "train"): (7500, 6098),
    ("math", "test"): (5000, 4049),
}


@pytest.fixture(scope="module")
def folder():
    place = Path(os.environ.get("MARFT_DATA") or BESIDE)
    if not place.is_dir():
        pytest.skip(
            f"NO REAL DATA at {place}: set MARFT_DATA to a folder with gsm8k/train.parquet, gsm8k/test.parquet, "
            "svamp/test.jsonl, math/train.jsonl.gz, math/test.jsonl.gz (from the hub: openai/gsm8k, ChilleD/SVAMP, "
            "EleutherAI/hendrycks_math)"
        )
    return place


@pytest.mark.parametrize(("name", "split"), COUNTS)
def test_every_row(folder, name, split):
    if name == "gsm8k":
        pytest.importorskip("pyarrow", reason="gsm8k is parquet: pip install marft-envs[data]")
    task = load(name, path=folder, split=split)
    assert (task.rows, task.size) == COUNTS[name, split]
    assert task.rows - task.size == sum(task.excluded.values())
    for index in range(task.size):
        problem = task.problem(index)
        other = parse_number(problem.gold).value + 1
        assert grade(rf"Therefore \boxed{{{problem.gold}}}.", problem.gold).outcome is Outcome.CORRECT, problem
        assert grade(rf"Therefore \boxed{{{other}}}.", problem.gold).outcome is Outcome.WRONG, problem
        assert problem.prompt and problem.gold not in ("", None)


def test_gsm8k_solutions_are_answers(folder):
    """The reference solution itself, a whole reply that ends with ``#### n``, is graded right."""
    pytest.importorskip("pyarrow", reason="gsm8k is parquet: pip install marft-envs[data]")
    from marft_envs.datasets.files import read_rows

    task = load("gsm8k", path=folder, split="test")
    for index, row in enumerate(read_rows(folder / "gsm8k" / "test.parquet")):
        assert task.grade(row["answer"], task.problem(index)).outcome is Outcome.CORRECT


def test_math_solutions_are_answers(folder):
    from marft_envs.datasets.files import read_rows

    task = load("math", path=folder, split="test")
    rows = read_rows(folder / "math" / "test.jsonl.gz")
    problems = [task.problem(i) for i in range(task.size)]
    wrong = [p.notes["row"] for p in problems if task.grade(rows[p.notes["row"]]["solution"], p).score != 1.0]
    assert wrong == []


def test_names_are_all_tested():
    assert {name for name, _ in COUNTS} == set(NAMES)
