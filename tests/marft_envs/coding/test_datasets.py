# ruff: noqa: E501
"""Each data set's columns on rows of our own, and the real files where they are (MARFT_DATA, ../shared/data)."""

import base64
import json
import os
import pickle
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from marft_envs.coding import datasets
from marft_envs.coding.datasets.livecodebench_tests import decode_tests
from marft_envs.coding.grader.program_extraction import fenced
from marft_envs.datasets.files import DataError
from marft_envs.datasets.specs import Unusable

DATA = Path(os.environ.get("MARFT_DATA") or Path(__file__).parents[4] / "shared" / "data")
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


def load(tmp_path, name, rows, **arguments):
    split = arguments.get("split", "test")
    (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    part = {"part": "taco"} if name == "deepcoder" else {}
    return datasets.load(name, path=tmp_path, **part, **arguments)


@pytest.mark.parametrize("case", ROWS)
def test_a_row_in_the_published_columns(case, tmp_path):
    row, program, public, hidden = ROWS[case]
    task = load(tmp_path, case.partition("-")[0], [row])
    problem = task.problem(0)
    assert (len(problem.notes["public"]), len(problem.gold["hidden"])) == (public, hidden)
    verdict = task.grade(fenced(program), problem)
    assert verdict.score == 1.0, verdict
    assert task.grade(fenced("print(1)"), problem).score == 0.0
    assert "Add" in problem.prompt


def test_limits_and_solutions_come_with_the_row(tmp_path):
    problem = load(tmp_path, "code_contests", [ROWS["code_contests"][0]]).problem(0)
    assert (problem.notes["time_limit_s"], problem.notes["memory_mib"]) == (1.5, 256)
    assert problem.gold["solution"] == ADD
    assert load(tmp_path, "deepcoder", [ROWS["deepcoder-stdin"][0]]).problem(0).gold["solution"].strip() == ADD


def test_windows_and_releases_of_livecodebench(tmp_path):
    rows = [lcb(f"{month}-15T00:00:00") for month in ("2024-02", "2024-08", "2025-01", "2025-03")]

    def days(**arguments):
        task = load(tmp_path, "livecodebench", rows, **arguments)
        return [task.problem(i).notes["date"][:7] for i in range(task.size)]

    assert days(since="2024-08-01", until="2025-01-31") == ["2024-08", "2025-01"]
    assert days(release="v1") == ["2024-02"]
    assert days(since="2024-08-01", release="v5") == ["2024-08", "2025-01"]
    with pytest.raises(ValueError, match="release='v9'"):
        days(release="v9")
    with pytest.raises(ValueError, match="since='August'"):
        days(since="August")


class Evil:
    def __reduce__(self):
        return (exec, ("import os; os.environ['MARFT_UNPICKLED'] = 'yes'",))


def pickled(value):
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


@pytest.mark.parametrize(
    ("text", "message"),
    [(pickled(Evil()), "more than a text"), (pickled(["[]"]), "more than a text"), (pickled("{}"), "a dict, expected a list"),
     ("!!!", "neither JSON nor base64"), (pickled("["), "not JSON"), (base64.b64encode(zlib.compress(b"abc")).decode(), "pickle"),
     (base64.b64encode(zlib.compress(b"x" * 999)[:-9]).decode(), "cut"), ("[", "not JSON")],
)  # fmt: skip
def test_private_tests_are_never_unpickled(text, message):
    with pytest.raises(Unusable, match=message):
        decode_tests(text)
    assert "MARFT_UNPICKLED" not in os.environ


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_private_tests_of_every_protocol(protocol):
    text = base64.b64encode(zlib.compress(pickle.dumps(json.dumps(STDIN), protocol))).decode()
    assert decode_tests(text) == STDIN


def test_rows_that_cannot_be_graded_say_why(tmp_path):
    rows = [ROWS["codeforces"][0] | {"generated_checker": "import sys"}, ROWS["codeforces"][0] | {"input_mode": "file"}]
    task = load(tmp_path, "codeforces", rows)
    for index, reason in enumerate(("program of its own", "files")):
        with pytest.raises(DataError, match=reason):
            task.problem(index)
    with pytest.raises(DataError, match="lacks title"):
        load(tmp_path, "codeforces", [{"id": "1"}])


def test_wrong_arguments_are_named(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="dataset='x': expected one of humaneval"):
        datasets.load("x")
    with pytest.raises(ValueError, match="split='dev': mbpp has train, test, validation, prompt"):
        datasets.load("mbpp", split="dev")
    with pytest.raises(ValueError, match="part=None: expected one of primeintellect"):
        datasets.load("deepcoder")
    with pytest.raises(
        DataError, match=r"no file of humaneval, split 'test'; expected a file HumanEval or test ending in"
    ):
        datasets.load("humaneval", path=tmp_path)
    monkeypatch.delenv("MARFT_DATA", raising=False)
    with pytest.raises(DataError, match=r"it is not read from the hub\. To get it: pass path="):
        datasets.load("livecodebench")


def test_without_files_and_hub_it_is_said_how_to_get_the_data(monkeypatch, tmp_path):
    def read_hub(name, hub, parts):
        raise DataError(f"{hub.repository}: the hub did not answer and nothing is cached")

    monkeypatch.setattr(datasets, "read_hub", read_hub)
    monkeypatch.delenv("MARFT_DATA", raising=False)
    found = "dataset='humaneval', split='test' was not found. Tried: "
    offline = "openai/openai_humaneval: the hub did not answer and nothing is cached. "
    how = (
        "To get it: pass path= a file or folder, or set MARFT_DATA to a folder that holds a file HumanEval or test "
        "ending in .parquet, .jsonl, .jsonl.gz, .json, .json.gz, in it or in humaneval/, or run once with access to "
        "the hub, which fills its cache"
    )
    with pytest.raises(DataError) as fault:
        datasets.load("humaneval")
    assert str(fault.value) == f"{found}MARFT_DATA is not set; {offline}{how}"
    monkeypatch.setenv("MARFT_DATA", str(tmp_path))
    with pytest.raises(DataError) as fault:
        datasets.load("humaneval")
    assert str(fault.value).startswith(f"{found}{tmp_path}: no file of humaneval, split 'test'; expected a file ")
    assert str(fault.value).endswith(offline + how)


def test_the_hub_is_read_at_the_pinned_revision(monkeypatch):
    """apps has a loading script that no longer runs: its files are read; code_contests calls a split by another name."""
    asked = []

    def read_hub(name, hub, parts):
        asked.append((hub.repository, hub.configs, parts, hub.files, hub.revision))
        raise DataError("stop")

    monkeypatch.delenv("MARFT_DATA", raising=False)
    monkeypatch.setattr(datasets, "read_hub", read_hub)
    for name, more in (
        ("apps", {}),
        ("code_contests", {"split": "validation", "revision": "abc"}),
        ("deepcoder", {"part": "taco"}),
    ):
        with pytest.raises(DataError, match="stop"):
            datasets.load(name, **more)
    apps, contests, deepcoder = asked
    assert apps == ("codeparrot/apps", ("default",), ("test",), "{part}.jsonl", datasets.SPECS["apps"].hub.revision)
    assert contests[2:] == (("valid",), "", "abc")
    assert deepcoder[1] == ("taco",) and deepcoder[4] == datasets.SPECS["deepcoder"].hub.revision


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
