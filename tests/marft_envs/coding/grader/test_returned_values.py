# ruff: noqa: E501
"""Returned values are compared in their serialized form. Expected results are by hand."""

import json
import tracemalloc
from collections import Counter, OrderedDict, defaultdict, namedtuple
from enum import IntEnum

import pytest

from marft_envs.coding import Checker
from marft_envs.coding.grader.returned_values import is_same
from marft_envs.sandbox.inside import values

Point = namedtuple("Point", "x y")


class Colour(IntEnum):
    RED = 1


class AlwaysEqual(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class Words(list):
    def __iter__(self):
        return iter([7])


def nested(depth, value):
    for _ in range(depth):
        value = {"a": value}
    return value


VALUES = [
    (1, 1, True), (True, 1, False), (1, True, False), (1.0, 1, False), (1, 1.0, True), (1 << 80, 1 << 80, True),
    (1 << 80, (1 << 80) + 1, False), (10**30, 1e30, True), ("1", 1, False), (None, None, True), (None, False, False),
    ([], None, False), ((1, 2), [1, 2], True), ([1, (2, 3)], [1, [2, 3]], True), ([1], [1, 2], False),
    ([2, 1], [1, 2], False), ({1: 2, 3: 4}, {3: 4, 1: 2}, True), ({1: 2}, {1: 3}, False), ({1: 2}, {"1": 2}, False),
    ({1, 2}, {2, 1}, True), ({1}, [1], False), ({}, [], False), ("a", "a", True), ("", None, False),
    (float("nan"), float("nan"), False), (float("inf"), float("inf"), True), (0.1 + 0.2, 0.3, False), (b"a", "a", False),
    (range(2), [0, 1], False), (object(), 1, False), (defaultdict(int, a=2), {"a": 2}, True), (Counter("aab"), {"a": 2, "b": 1}, True),
    (OrderedDict(b=1, a=2), {"a": 2, "b": 1}, True), ({"a": 2}, Counter("aa"), True), (defaultdict(int), [], False),
    ([defaultdict(list, a=[1])], [{"a": [1]}], True), (defaultdict(int, a=2), {"a": 3}, False), (Point(1, 2), [1, 2], True),
    (Colour.RED, 1, True), (Colour.RED, True, False), (AlwaysEqual(0), 1, False), (Words([1]), [7], False), (Words([1]), [1], True),
    (nested(60, 1), nested(60, 1), True), (nested(60, 1), nested(60, 2), False), (nested(60, 1), nested(59, 1), False),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected", "correct"), VALUES, ids=lambda value: ascii(value)[:12])
def test_returned_values(value, expected, correct):
    assert is_same(values.dumps(value), expected, Checker()) is correct


def test_returned_values_with_a_checker():
    assert is_same(values.dumps([0.1 + 0.2]), [0.3], Checker("float"))
    assert not is_same(values.dumps([3]), [4], Checker("float"))
    assert is_same(values.dumps([[2], [1]]), [[1], [2]], Checker("unordered"))
    assert not is_same(values.dumps([1, 1, 2]), [1, 2, 2], Checker("unordered"))


@pytest.mark.parametrize("value", ["", "x", "[", "9" * 40, '{"int": "zz"}', '{"a": 1, "b": 2}', '{"object": ["int", 1]}',
                                  '{"tuple": 1}', "[" * 99_999, '{"dict": [1]}', '"\\ud800"', "NaN"])  # fmt: skip
def test_malformed_values_equal_nothing(value):
    for expected in (1, [1], {"a": 1}, "x", 1.0, None, (1,), {1}):
        assert not is_same(value, expected, Checker())


def test_values_are_equal_after_dumps_and_loads():
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


def test_a_large_value_is_compared_in_bounded_memory():
    """As objects of this process, 7 MB of empty lists would take 100 MB."""
    value = "[" + "[], " * (7 << 18) + "[]]"
    tracemalloc.start()
    assert not is_same(value, [[], []], Checker())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_an_equal_value_can_be_longer_than_the_expected_one():
    value = json.dumps([{"tuple": [0.30000000000000004]} for _ in range(500)])
    assert is_same(value, [[0.3]] * 500, Checker("float"))
    assert is_same(json.dumps([{"tuple": []}] * 500), [[]] * 500, Checker())
