"""A malformed test raises an error that names it; it is never a wrong answer, and none of its code runs."""

import json
import warnings

import pytest

from marft_envs.coding import datasets, grade
from marft_envs.coding.grader.check_tests import check_tests
from marft_envs.datasets.files import DataError

GOOD = "def check(candidate):\n    assert candidate(1) == 2\n"
INC = "def inc(n): return n + 1"


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ({"test_code": "x = 1\nassert inc(1 == 2"}, r"tests\[1\]: test_code does not compile: SyntaxError, line 2: "),
        ({"test_code": "def f():\n\treturn 1\n        x"}, r"tests\[1\]: .*line 3: "),
        ({"test_code": "return 1"}, r"tests\[1\]: .*line 1: 'return' outside function"),
        ({"test_code": "x = '\0'"}, r"tests\[1\]: test_code does not compile: .*null byte"),
        ({"test_code": None}, r"tests\[1\]: test_code=None, expected a string"),
        (
            {"test_code": "assert inc(1) == 2", "entry_point": "inc"},
            r"tests\[1\]: entry_point='inc' calls check\(inc\), but test_code has none: expected def check",
        ),
        ({"test_code": "class T:\n    def check(self, f): pass", "entry_point": "inc"}, r"expected def check"),
        ({"test_code": "check(inc)", "entry_point": "inc"}, r"expected def check"),
    ],
)
def test_malformed_assertions_are_named(test, message):
    with pytest.raises(ValueError, match=message):
        grade(INC, [{"test_code": GOOD, "entry_point": "inc"}, test], kind="assert")


@pytest.mark.parametrize(
    "code",
    [
        GOOD,
        "if True:\n    def check(candidate): pass",
        "check = lambda candidate: None",
        "from operator import not_ as check",
        "from operator import *",
        "exec('def check(candidate): pass')",
        "def make():\n    global check\n    def check(candidate): pass\nmake()",
    ],
)
def test_code_that_may_define_check_is_accepted(code):
    check_tests([{"test_code": code, "entry_point": "inc"}], "assert")


def test_a_program_that_does_not_compile_is_wrong():
    verdict = grade("def inc(n: return n", [{"test_code": GOOD, "entry_point": "inc"}], kind="assert")
    assert verdict.outcome == "wrong" and "SyntaxError" in verdict.reason


def test_validation_runs_no_code_and_gives_no_warning(tmp_path):
    marker = tmp_path / "run"
    code = f"open({str(marker)!r}, 'w')\nassert 1 is 1, '\\d'"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_tests([{"test_code": code}], "assert")
    assert not marker.exists()


def test_a_row_with_malformed_tests_is_left_out_and_listed(tmp_path):
    row = {
        "task_id": "T/0",
        "prompt": "def inc(n):\n",
        "canonical_solution": "    return n + 1\n",
        "entry_point": "inc",
    }
    bad, good = ({**row, "test": f"def check(candidate{end}\n"} for end in (":", "): assert candidate(1) == 2"))
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, (bad, good))))
    task = datasets.load("humaneval", path=tmp_path)
    assert task.size == 1 and task.problem(0).notes["row"] == 1
    ((number, reason),) = task.unusable
    assert number == 0 and reason.startswith("tests[0]: test_code does not compile")
    (tmp_path / "test.jsonl").write_text(json.dumps(bad))
    with pytest.raises(DataError, match=r"no usable row among 1: .*does not compile"):
        datasets.load("humaneval", path=tmp_path)


@pytest.mark.parametrize("args", [3, "ab", None, {"n": 1}])
def test_arguments_that_are_not_a_list_are_named(args):
    with pytest.raises(ValueError, match=rf"tests\[0\]: args={args!r}, expected a list"):
        grade(INC, [{"fn": "inc", "args": args, "expected": 6}], kind="call")


def test_arguments_may_be_a_tuple():
    assert grade(INC, [{"fn": "inc", "args": (5,), "expected": 6}], kind="call").score == 1.0
