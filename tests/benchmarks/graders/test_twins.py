"""Mutations of reference solutions, and the table of their verdicts. Expected sources are by hand."""

import gzip
import json

import pytest

from benchmarks.graders.twins import KINDS, run_twins, twin

TWINS = {
    "comparison": ("x < 1", "x >= 1"),
    "boundary": ("x < 1", "x <= 1"),
    "arithmetic": ("a // b", "a * b"),
    "number": ("f(3)", "f(4)"),
    "string": ("f('a')", "f('ax')"),
    "truth": ("a and b", "a or b"),
    "condition": ("a if b else c", "a if not b else c"),
    "nothing": ("def f():\n    return 3", "def f():\n    return None"),
    "position": ("a[i]", "a[i + 1]"),
    "omission": ("def f():\n    a()\n    b()", "def f():\n    a()"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_mutation(kind):
    source, expected = TWINS[kind]
    assert twin(source, kind, (0, 0)) == expected
    assert twin("pass", kind, (0, 0)) is None


def test_documentation_is_not_mutated():
    assert twin("def f():\n    'doc'\n    return 1", "string", (0, 0)) is None


ROW = {
    "task_id": "T/0",
    "prompt": "def f(x):\n",
    "canonical_solution": "    return x + 0 if x < 5 else 5\n",
    "entry_point": "f",
}


def rows(folder, **changes):
    row = ROW | {"test": "def check(c):\n    assert c(3) == 3 and c(9) == 5"} | changes
    for name in ("HumanEval", "HumanEvalPlus-Mini"):
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
    mbpp = {"task_id": 11, "text": "t", "code": "def f(x):\n    return x + 1", "test_list": ["assert f(1) == 2"]}
    (folder / "mbpp.jsonl").write_text(json.dumps(mbpp))


def test_the_table_counts_twins_that_fail_and_those_that_the_tests_do_not_tell_apart(tmp_path):
    rows(tmp_path)
    lines = []
    assert run_twins(tmp_path, 0, lines.append) == 0
    cells = {tuple(cell.strip() for cell in line.split("|")[1:3]): line.split("|")[3:7] for line in lines[2:]}
    numbers = {key: [int(cell) for cell in values] for key, values in cells.items()}
    assert numbers["humaneval", "reference"] == [1, 0, 1, 0]
    assert numbers["humaneval", "comparison"] == [1, 1, 0, 0]  # x >= 5: 3 becomes 5
    assert numbers["humaneval", "boundary"] == [1, 0, 1, 0]  # x <= 5 is the same function
    assert numbers["humaneval", "string"] == [0, 0, 0, 0]
    assert numbers["mbpp", "arithmetic"] == [1, 1, 0, 0]


def test_a_reference_that_fails_is_a_wrong_verdict(tmp_path):
    rows(tmp_path, test="def check(c):\n    assert c(3) == 4")
    lines = []
    assert run_twins(tmp_path, 0, lines.append) >= 2
    assert any(line.startswith("wrong verdict: humaneval T/0 reference") for line in lines)
