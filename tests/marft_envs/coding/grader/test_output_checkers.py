"""Every checker of outputs, with mistakes known from other graders. Expected values are by hand."""

import time
import tracemalloc

import pytest

from marft_envs.coding import Checker, grade
from marft_envs.coding.grader.output_checkers import as_checker, is_correct

OUTPUTS = [
    ("exact", "1\n2\n", "1\n2", True),
    ("exact", "1 \r\n2\t\r\n\r\n", "1\n2\n", True),
    ("exact", "", "\n", True),
    ("exact", " 1", "1", False),
    ("exact", "1\n\n2", "1\n2", False),
    ("exact", "12", "1 2", False),
    ("exact", "yes", "YES", False),
    ("exact", "1.0", "1", False),
    ("exact", "1\n2\n3", "1\n2", False),
    ("exact", "1", "1\n2", False),
    ("exact", "1\n2", "2\n1", False),
    ("tokens", "1 2\n3", "1\n2  3", True),
    ("tokens", "12 3", "1 2 3", False),
    ("tokens", "3 2 1", "1 2 3", False),
    ("float", "0.3333333", "0.3333334", True),
    ("float", "0.334", "0.333", False),
    ("float", "1", "1.0", True),
    ("float", "100000000001", "100000000000", False),
    ("float", "1.0", "1", False),
    ("float", "nan", "nan", True),
    ("float", "nan", "1.0", False),
    ("float", "inf", "1e400", False),
    ("float", "1e400", "1e400", True),
    ("float", "-inf", "inf", False),
    ("float", "1.0 x", "1.0 y", False),
    ("float", "1.0 2.0", "1.0\n2.0", False),
    ("float", "1e3", "1000.0", True),
    ("float", "9" * 500, "1.0", False),
    ("float", "1_0.0", "10.0", False),
    ("float", "\u0663.\u0660", "3.0", False),
    ("float", "\u0663", "3.0", False),
    ("numbers", "0.75", "0.7500000000000000", True),
    ("numbers", "Case #1: 3 1e2", "Case #1: 3.0 100", True),
    ("numbers", "-0.0", "0", True),
    ("numbers", "0.75", "0.7500000000000001", False),
    ("numbers", "1 2", "1\n2", False),
    ("numbers", "\u0663", "3", False),
    ("numbers", "nan", "NaN", False),
    ("numbers", "1_0", "10", False),
    ("numbers", "1e9999999999", "1", False),
    ("unordered", "b\na\n", "a\nb", True),
    ("unordered", "a\na\nb", "a\nb\nb", False),
    ("unordered", "2 1", "1 2", False),
    ("yes_no", "Yes\nNO", "YES\nno", True),
    ("yes_no", "no", "YES", False),
    ("yes_no", "Maybe", "maybe", False),
    ("yes_no", "yes yes", "YES", False),
]


@pytest.mark.parametrize(("name", "output", "expected", "correct"), OUTPUTS)
def test_outputs(name, output, expected, correct):
    assert is_correct(output, expected, as_checker(name)) is correct


SIZE = 16 << 20
LARGE = {
    "short lines": "1\n" * (SIZE // 2),
    "empty lines": "1" + "\n" * SIZE + "1",
    "empty lines at the end": "1\n2\n" + "\n" * SIZE,
    "carriage returns": "1\r\n" * (SIZE // 3),
    "short words": "1 " * (SIZE // 2),
    "short words in one of two lines": "1\n" + "1 " * (SIZE // 2),
    "white space": " " * SIZE,
    "one word": "1" * SIZE,
}


@pytest.mark.parametrize("name", ["exact", "tokens", "numbers", "float", "unordered", "yes_no"])
@pytest.mark.parametrize("output", LARGE)
def test_large_outputs_are_judged_in_bounded_memory_and_time(name, output):
    """A program writes as much as the sandbox permits; this process must not store each word of it."""
    tracemalloc.start()
    started = time.process_time()
    correct = is_correct(LARGE[output], "1\n2\n", as_checker(name))
    seconds, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert correct is (output == "empty lines at the end")
    assert peak <= 4 * SIZE and seconds <= 2  # a few copies of the output


def test_the_tolerance_is_a_parameter():
    assert is_correct("1.05", "1.0", Checker("float", rel=0.0, abs=0.1))
    assert not is_correct("1.05", "1.0", Checker("float", rel=0.0, abs=0.01))
    assert is_correct("1050.0", "1000.0", Checker("float", rel=0.1, abs=0.0))


CUSTOM = "def check(input, output, expected):\n    return sorted(output.split()) == sorted(expected.split())"


def test_a_custom_checker_runs_in_the_sandbox():
    tests = [{"input": "", "output": "1 2"}]
    checker = {"type": "custom", "code": CUSTOM}
    assert grade("print(2, 1)", tests, checker=checker).score == 1.0
    assert grade("print(2, 2)", tests, checker=checker).score == 0.0
    broken = {"type": "custom", "code": "def check(input, output, expected): return 1 / 0"}
    verdict = grade("print(1)", tests, checker=broken)
    assert not verdict.graded and "ZeroDivisionError" in verdict.reason


def test_wrong_checkers_are_named():
    with pytest.raises(ValueError, match=r"checker='token': expected one of exact, tokens, .*did you mean 'tokens'"):
        as_checker("token")
    with pytest.raises(ValueError, match="checker='exact' with code='x': expected code for 'custom' and only for it"):
        as_checker({"type": "exact", "code": "x"})
    with pytest.raises(ValueError, match=r"checker rel=1: expected a number in \[0, 1\)"):
        Checker("float", rel=1)
    with pytest.raises(ValueError, match="expected a name, or a mapping with type, rel, abs or code"):
        as_checker({"name": "float"})
