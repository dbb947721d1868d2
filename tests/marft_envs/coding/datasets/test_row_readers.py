# ruff: noqa: E501
"""Rows of our own in the columns of each published data set become problems with the right tests."""

import base64
import json
import pickle
import zlib

import pytest

from marft_envs.coding import datasets
from marft_envs.coding.grader.program_extraction import fenced
from marft_envs.datasets.files import DataError

STDIN = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]
FUNCTIONAL = [{"input": "[1, 2]\n3", "output": "6", "testtype": "functional"}]
ADD = "print(sum(map(int, input().split())))"
SOLUTION = "class Solution:\n    def total(self, x: List[int], y):\n        return sum(x) + y"


def encoded(tests):
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def lcb(date="2024-08-17T00:00:00", **changed):
    row = {
        "question_title": "Add", "question_content": "Add them.", "platform": "atcoder", "question_id": f"q{date[:7]}",
        "contest_id": "c", "contest_date": date, "starter_code": "", "difficulty": "easy",
        "public_test_cases": json.dumps(STDIN), "private_test_cases": encoded(STDIN * 2), "metadata": "{}",
    }  # fmt: skip
    return row | changed


FUNCTION_ROW = lcb(
    starter_code="class Solution:\n    def total(self, x, y):", public_test_cases=json.dumps(FUNCTIONAL),
    private_test_cases=encoded(FUNCTIONAL), metadata='{"func_name": "total"}',
)  # fmt: skip
ROWS = {
    "livecodebench": (lcb(), ADD, 1, 2),
    "livecodebench-function": (FUNCTION_ROW, SOLUTION, 1, 1),
    "deepcoder-stdin": (
        {"problem": "Add.", "tests": json.dumps([{"type": "stdin_stdout", "input": "1 2", "output": "3"}]), "solutions": [fenced(ADD)]},
        ADD, 0, 1,
    ),
    "deepcoder-function": (
        {"problem": "Add.", "tests": json.dumps([{"type": "function_call", "fn_name": "total", "input": [[1, 2], 3], "output": [6]}])},
        "def total(x, y): return sum(x) + y", 0, 1,
    ),
    "deepcoder-taco": (
        {"problem": "Add.", "tests": json.dumps({"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]})}, ADD, 0, 2,
    ),
    "deepcoder-lcb": (
        {"problem": "Add.", "tests": json.dumps(FUNCTIONAL), "metadata": {"func_name": "total"}, "starter_code": "class Solution: ..."},
        SOLUTION, 0, 1,
    ),
    "codeforces": (
        {"id": "1/A", "title": "Add", "description": "Add them.", "input_format": "Two.", "output_format": "One.", "note": None,
         "examples": [{"input": "1 2", "output": "3"}], "official_tests": [{"input": "5 6", "output": "11"}], "time_limit": 2.0,
         "memory_limit": 256.0, "generated_checker": None, "input_mode": "stdio", "rating": 800, "tags": ["math"]},
        ADD, 1, 1,
    ),
    "apps": (
        {"problem_id": 0, "question": "Add.", "solutions": json.dumps([ADD]), "difficulty": "interview", "url": "u", "starter_code": "",
         "input_output": json.dumps({"inputs": ["1 2\n"], "outputs": ["3\n"]})},
        ADD, 0, 1,
    ),
    "apps-function": (
        {"problem_id": 1, "question": "Add.", "solutions": "", "difficulty": "interview", "url": "u", "starter_code": "class Solution: ...",
         "input_output": json.dumps({"fn_name": "total", "inputs": [[[1, 2], 3]], "outputs": [[6]]})},
        SOLUTION, 0, 1,
    ),
    "code_contests": (
        {"name": "1_A", "description": "Add.", "public_tests": {"input": ["1 2"], "output": ["3"]},
         "private_tests": {"input": ["2 2"], "output": ["4"]}, "generated_tests": {"input": ["0 0"], "output": ["0"]},
         "solutions": {"language": [2, 3], "solution": ["int main", ADD]}, "time_limit": {"seconds": 1, "nanos": 500000000},
         "memory_limit_bytes": 256 << 20, "input_file": "", "output_file": "", "cf_rating": 800},
        ADD, 1, 2,
    ),
}  # fmt: skip


def apps_call(outputs, inputs):
    body = {"fn_name": "f", "inputs": inputs, "outputs": outputs}
    return ROWS["apps-function"][0] | {"input_output": json.dumps(body)}


def load(tmp_path, name, rows, **arguments):
    split = arguments.get("split", "test")
    (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    part = {"part": "taco"} if name == "deepcoder" else {}
    return datasets.load(name, path=tmp_path, **part, **arguments)


@pytest.mark.parametrize("case", ROWS)
def test_a_row_in_the_published_columns_is_graded(case, tmp_path):
    row, program, public, hidden = ROWS[case]
    task = load(tmp_path, case.partition("-")[0], [row])
    problem = task.problem(0)
    assert (len(problem.notes["public"]), len(problem.gold["hidden"])) == (public, hidden)
    verdict = task.grade(fenced(program), problem)
    assert verdict.score == 1.0, verdict
    assert task.grade(fenced("print(1)"), problem).score == 0.0
    assert "Add" in problem.prompt


OUTPUTS = [  # outputs of an APPS row for the inputs [1], [2], a program, whether it is right
    ([[1, 2, 3], [1]], "def f(x): return [1, 2, 3] if x == 1 else [1]", 1.0),
    ([[1, 2, 3], [1]], "def f(x): return [1, 2, 3] if x == 1 else 1", 0.0),
    ([[7], [8]], "def f(x): return x + 6", 1.0),
    ([[[7]], [[8, 9]]], "def f(x): return [7] if x == 1 else [8, 9]", 1.0),
    ([{"1": 2}, {"-3": 4}], "def f(x): return {1: 2} if x == 1 else {-3: 4}", 1.0),
    ([{"1": 2}, {"a": 4}], "def f(x): return {1: 2} if x == 1 else {'a': 4}", 1.0),
    ([[{"1": 2}], [{"2": 2}]], "def f(x): return {x: 2}", 1.0),
]


@pytest.mark.parametrize(("outputs", "program", "score"), OUTPUTS)
def test_outputs_of_apps_are_unwrapped_together_and_have_integer_keys(outputs, program, score, tmp_path):
    task = load(tmp_path, "apps", [apps_call(outputs, [[1], [2]])])
    assert task.grade(fenced(program), task.problem(0)).score == score


def test_arguments_of_apps_have_integer_keys(tmp_path):
    task = load(tmp_path, "apps", [apps_call([[3], [4]], [[{"1": 2}], [{"2": 2}]])])
    assert task.grade(fenced("def f(d): return sum(d) + sum(d.values())"), task.problem(0)).score == 1.0


NUMBERS = [  # data set, changes of its row, what a program prints, whether it is right
    ("livecodebench", {"public_test_cases": json.dumps([{"input": "", "output": "0.7500000000000000"}]),
                       "private_test_cases": encoded([{"input": "", "output": "7.5e-1"}])}, "print(3 / 4)", 1.0),
    ("livecodebench", {"public_test_cases": json.dumps([{"input": "", "output": "0.7500000000000001"}]),
                       "private_test_cases": encoded([])}, "print(0.75)", 0.0),
    ("apps", {"input_output": json.dumps({"inputs": [""], "outputs": ["0.7500000000000000"]})}, "print(0.750001)", 1.0),
    ("apps", {"input_output": json.dumps({"inputs": [""], "outputs": ["0.75"]})}, "print(0.7501)", 0.0),
    ("apps", {"input_output": json.dumps({"inputs": [""], "outputs": ["7500000"]})}, "print(7500001)", 0.0),
    ("code_contests", {"public_tests": {"input": [""], "output": ["\n1 2\n3\n"]}, "private_tests": {"input": [], "output": []},
                       "generated_tests": {"input": [], "output": []}}, "print(1, 2)\nprint(3)", 1.0),
    ("code_contests", {"public_tests": {"input": [""], "output": ["\n1 2\n3\n"]}, "private_tests": {"input": [], "output": []},
                       "generated_tests": {"input": [], "output": []}}, "print(12)\nprint(3)", 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "program", "score"), NUMBERS)
def test_outputs_are_compared_as_the_data_set_does(name, changes, program, score, tmp_path):
    task = load(tmp_path, name, [ROWS[name][0] | changes])
    assert task.grade(fenced(program), task.problem(0)).score == score


HUMANEVALPLUS_TEST = """import numpy as np

def is_floats(x) -> bool:
    if isinstance(x, float):
        return True
    if isinstance(x, (list, tuple)):
        return all(isinstance(i, float) for i in x)
    if isinstance(x, np.ndarray):
        return x.dtype == np.float64 or x.dtype == np.float32
    return False

def assertion(out, exp, atol):
    exact_match = out == exp
    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if not exact_match and atol != 0:
        assert type(out) == type(exp)
        if isinstance(exp, (list, tuple)):
            assert len(out) == len(exp)
        np.testing.assert_allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert exact_match

def check(candidate):
    inputs = [[[1.0, 2.0]], [[0.5]]]
    results = [[0.3333333333333333, 0.6666666666666666], [0.16666666666666666]]
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(candidate(*inp), exp, 0)
"""  # of our own, in the form of the rows of evalplus/humanevalplus
THIRDS = [
    ("return [n / 3 for n in x]", "correct"), ("return [n * 0.3333333333 for n in x]", "correct"),
    ("return [n * 0.333 for n in x]", "wrong"), ("return tuple(n / 3 for n in x)", "wrong"), ("return x", "wrong"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "outcome"), THIRDS)
def test_tests_of_humanevalplus_may_use_numpy(body, outcome, tmp_path):
    prompt = 'from typing import List\n\n\ndef thirds(x: List[float]) -> List[float]:\n    """Divide by three."""\n'
    row = {
        "task_id": "T/0",
        "prompt": prompt,
        "canonical_solution": f"    {body}\n",
        "entry_point": "thirds",
        "test": HUMANEVALPLUS_TEST,
    }
    task = load(tmp_path, "humanevalplus", [row])
    assert task.grade(task.reference_answer(task.problem(0)), task.problem(0)).outcome == outcome


def test_a_class_in_place_of_a_function_decides_no_test_of_mbpp(tmp_path):
    row = {
        "task_id": 11,
        "text": "Add.",
        "code": "def Average(x):\n    return sum(x) / len(x)",
        "test_list": ["assert Average([1, 3]) == 2"],
    }
    task = load(tmp_path, "mbpp", [row])
    program = "class Average:\n    def __init__(s, x): pass\n    def __eq__(s, other): return True"
    assert task.grade(fenced(program), task.problem(0)).outcome == "wrong"
    assert task.grade(task.reference_answer(task.problem(0)), task.problem(0)).score == 1.0


def test_limits_and_solutions_come_with_the_row(tmp_path):
    problem = load(tmp_path, "code_contests", [ROWS["code_contests"][0]]).problem(0)
    assert (problem.notes["time_limit_s"], problem.notes["memory_mib"]) == (1.5, 256)
    assert problem.gold["solution"] == ADD
    assert load(tmp_path, "deepcoder", [ROWS["deepcoder-stdin"][0]]).problem(0).gold["solution"].strip() == ADD


def test_days_and_releases_of_livecodebench(tmp_path):
    rows = [lcb(f"{month}-15T00:00:00") for month in ("2024-02", "2024-08", "2025-01", "2025-03")]

    def days(**arguments):
        task = load(tmp_path, "livecodebench", rows, **arguments)
        return [task.problem(i).notes["date"][:7] for i in range(task.size)]

    assert days(since="2024-08-01", until="2025-01-31") == ["2024-08", "2025-01"]
    assert days(release="v1") == ["2024-02"]
    assert days(since="2024-08-01", release="v5") == ["2024-08", "2025-01"]
    for arguments, message in (
        ({"release": "v9"}, "release='v9': expected one of v1, v2, v3, v4, v5, v6"),
        ({"since": "August"}, "since='August': expected a day such as '2024-08-01'"),
        ({"release": "v1", "until": "2024-08-01"}, "until='2024-08-01' with release='v1': expected one of the two"),
        ({"since": "2026-01-01"}, "livecodebench from .*: no row of split='test' with these arguments"),
    ):
        with pytest.raises(ValueError, match=message):
            days(**arguments)
    with pytest.raises(ValueError, match="release='v1': only dataset='livecodebench' has dates, got dataset='mbpp'"):
        datasets.load("mbpp", release="v1")


def test_deepcoder_needs_a_part_and_reads_its_folder(tmp_path):
    row = ROWS["deepcoder-taco"][0]
    for part, problem in (("taco", "T"), ("lcbv5", "L")):
        (tmp_path / "deepcoder" / part).mkdir(parents=True)
        (tmp_path / "deepcoder" / part / "train-0.jsonl").write_text(json.dumps(row | {"problem": problem}))
    task = datasets.load("deepcoder", path=tmp_path, split="train", part="lcbv5")
    assert task.problem(0).prompt.startswith("L\n")
    for name, part, wanted in (
        ("deepcoder", None, "one of primeintellect, taco"),
        ("mbpp", "taco", "None, mbpp has no"),
    ):
        with pytest.raises(ValueError, match=f"part={part!r}: expected {wanted}"):
            datasets.load(name, part=part)


def test_rows_that_cannot_be_graded_have_a_reason(tmp_path):
    rows = [ROWS["codeforces"][0] | {"generated_checker": "import sys"}, ROWS["codeforces"][0] | {"input_mode": "file"}]
    task = load(tmp_path, "codeforces", rows)
    for index, reason in enumerate(("program of its own", "files")):
        with pytest.raises(DataError, match=reason):
            task.problem(index)
    with pytest.raises(DataError, match="lacks title"):
        load(tmp_path, "codeforces", [{"id": "1"}])
