# ruff: noqa: E501
"""Each checker, each kind of fault known from other graders, and returned values. Expected values are by hand."""

import pytest

from marft_envs.coding import Checker, grade, run_tests
from marft_envs.coding.grader.output_checkers import as_checker, is_right
from marft_envs.coding.grader.returned_values import is_same
from marft_envs.sandbox.inside import values

TEXTS = [
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
    ("unordered", "b\na\n", "a\nb", True),
    ("unordered", "a\na\nb", "a\nb\nb", False),
    ("unordered", "2 1", "1 2", False),
    ("yes_no", "Yes\nNO", "YES\nno", True),
    ("yes_no", "no", "YES", False),
    ("yes_no", "Maybe", "maybe", False),
    ("yes_no", "yes yes", "YES", False),
]


@pytest.mark.parametrize(("name", "output", "expected", "right"), TEXTS)
def test_texts(name, output, expected, right):
    assert is_right(output, expected, as_checker(name)) is right


def test_the_tolerance_is_the_problems():
    assert is_right("1.05", "1.0", Checker("float", rel=0.0, abs=0.1))
    assert not is_right("1.05", "1.0", Checker("float", rel=0.0, abs=0.01))
    assert is_right("1050.0", "1000.0", Checker("float", rel=0.1, abs=0.0))


VALUES = [
    (1, 1, True), (True, 1, False), (1, True, False), (1.0, 1, False), (1, 1.0, True), (1 << 80, 1 << 80, True),
    (1 << 80, (1 << 80) + 1, False), (10**30, 1e30, True), ("1", 1, False), (None, None, True), (None, False, False),
    ([], None, False), ((1, 2), [1, 2], True), ([1, (2, 3)], [1, [2, 3]], True), ([1], [1, 2], False),
    ([2, 1], [1, 2], False), ({1: 2, 3: 4}, {3: 4, 1: 2}, True), ({1: 2}, {1: 3}, False), ({1: 2}, {"1": 2}, False),
    ({1, 2}, {2, 1}, True), ({1}, [1], False), ({}, [], False), ("a", "a", True), ("", None, False),
    (float("nan"), float("nan"), False), (float("inf"), float("inf"), True), (0.1 + 0.2, 0.3, False), (b"a", "a", False),
    (range(2), [0, 1], False), (object(), 1, False),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected", "right"), VALUES, ids=lambda value: ascii(value)[:12])
def test_returned_values(value, expected, right):
    assert is_same(values.dumps(value), expected, Checker()) is right


def test_returned_values_with_a_checker():
    assert is_same(values.dumps([0.1 + 0.2]), [0.3], Checker("float"))
    assert not is_same(values.dumps([3]), [4], Checker("float"))
    assert is_same(values.dumps([[2], [1]]), [[1], [2]], Checker("unordered"))
    assert not is_same(values.dumps([1, 1, 2]), [1, 2, 2], Checker("unordered"))


@pytest.mark.parametrize("text", ["", "x", "[", "9" * 40, '{"int": "zz"}', '{"a": 1, "b": 2}', '{"object": ["int", 1]}',
                                  '{"tuple": 1}', "[" * 99_999, '{"dict": [1]}', '"\\ud800"', "NaN"])  # fmt: skip
def test_malformed_values_are_not_right(text):
    for expected in (1, [1], {"a": 1}, "x", 1.0, None, (1,), {1}):
        assert not is_same(text, expected, Checker())


def test_values_survive_the_way_there_and_back():
    for value in (
        1,
        -(1 << 99),
        1.5,
        "ä\ud800",
        [1, (2, {3: {4}})],
        b"\0",
        {"tuple": 1},
        {"int": "ff"},
        range(1, 9, 2),
    ):
        again = values.loads(values.dumps(value))
        assert again == value and type(again) is type(value)


CUSTOM = "def check(input, output, expected):\n    return sorted(output.split()) == sorted(expected.split())"


def test_a_custom_checker_runs_in_the_sandbox():
    tests = [{"input": "", "output": "1 2"}]
    checker = {"type": "custom", "code": CUSTOM}
    assert grade("print(2, 1)", tests, checker=checker).score == 1.0
    assert grade("print(2, 2)", tests, checker=checker).score == 0.0
    broken = {"type": "custom", "code": "def check(input, output, expected): return 1 / 0"}
    verdict = grade("print(1)", tests, checker=broken)
    assert not verdict.graded and "ZeroDivisionError" in verdict.reason


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="checker='fuzzy': expected one of exact, tokens"):
        grade("", [{"input": "", "output": ""}], checker="fuzzy")
    with pytest.raises(ValueError, match="kind='x': expected one of stdin, call, assert"):
        grade("", [{}], kind="x")
    with pytest.raises(ValueError, match="tests: there are none"):
        grade("", [])
    with pytest.raises(ValueError, match=r"tests\[0\] of kind 'stdin' lacks output; it has input"):
        grade("", [{"input": ""}])
    with pytest.raises(ValueError, match="scoring='half'"):
        grade("", [{"input": "", "output": ""}], scoring="half")


TESTS = [{"input": f"{n}\n", "output": f"{n}\n"} for n in (1, 2, 3, 4)]


def test_all_or_the_fraction():
    program = "n = int(input())\nprint(n if n != 3 else 0)"
    assert grade(program, TESTS).score == 0.0
    verdict = grade(program, TESTS, scoring="fraction")
    assert (verdict.score, verdict.outcome.value) == (0.75, "partial")
    assert verdict.reason.startswith("passed 3 of 4 tests; test 3 of 4: wrong (output '0\\n', expected '3\\n'")
    assert grade("print(input())", TESTS, scoring="fraction").score == 1.0
    assert verdict.isolation in ("namespace", "landlock")


def test_each_test_has_a_result_and_the_first_failure_can_end_it():
    assert [r.outcome.value for r in run_tests("print(1)", TESTS).results] == ["pass", "wrong", "wrong", "wrong"]
    assert [r.outcome.value for r in run_tests("print(1)", TESTS, stop_early=True).results] == ["pass", "wrong"]
