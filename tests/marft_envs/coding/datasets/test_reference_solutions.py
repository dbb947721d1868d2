"""The reference solutions of the real data sets pass, and a stub does not."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from marft_envs.coding import datasets
from marft_envs.coding.grader.program_extraction import fenced

DATA = Path(os.environ.get("MARFT_DATA") or Path(__file__).parents[5] / "shared" / "data")
REAL = pytest.mark.skipif(not (DATA / "mbpp").is_dir(), reason="no MARFT_DATA and no ../shared/data here")
SIZES = [("humaneval", "test", 164), ("humanevalplus", "test", 164), ("mbpp", "prompt", 10), ("mbpp", "test", 500),
         ("mbpp", "validation", 90), ("mbpp", "train", 374)]  # fmt: skip


def failures(task, indices):
    def one(index):
        problem = task.problem(index)
        return problem.notes["id"], task.grade(task.reference_answer(problem), problem)

    with ThreadPoolExecutor(2) as threads:
        return [(name, verdict.reason) for name, verdict in threads.map(one, indices) if verdict.score != 1.0]


@REAL
@pytest.mark.parametrize(("name", "split", "size"), SIZES)
def test_some_reference_solutions_pass(name, split, size):
    task = datasets.load(name, path=DATA, split=split)
    assert (task.size, task.unusable) == (size, ())
    assert failures(task, range(0, size, 20)) == []


@REAL
@pytest.mark.slow
@pytest.mark.parametrize(("name", "split", "size"), SIZES)
def test_every_reference_solution_passes(name, split, size):
    assert failures(datasets.load(name, path=DATA, split=split), range(size)) == []


@REAL
@pytest.mark.parametrize("name", ["humaneval", "humanevalplus", "mbpp"])
def test_a_stub_passes_no_real_problem(name):
    task = datasets.load(name, path=DATA)
    for index in range(0, task.size, 40):
        problem = task.problem(index)
        entry = problem.notes.get("entry_point") or "".join(
            problem.gold["solution"].rpartition("def ")[2].partition("(")[:1]
        )
        assert task.grade(fenced(f"def {entry}(*args): pass"), problem).score == 0.0


@REAL
def test_livecodebench_public_file():
    task = datasets.load("livecodebench", path=DATA, limit=20)
    assert task.size == 20
    assert {task.problem(i).notes["kind"] for i in range(20)} == {"stdin", "call"}
