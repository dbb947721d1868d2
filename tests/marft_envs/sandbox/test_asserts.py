# ruff: noqa: E501
"""Assertions run in a second process, which calls the program's objects through proxies."""

import sys

import pytest

from marft_envs.sandbox import Asserts, RunStatus
from tests.marft_envs.sandbox.quick_run import QUICK

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is for Linux")


def test_assertions_hold_or_fail(sandbox):
    program = "def add(a, b):\n    return a + b\n\ndef sort(x):\n    x.sort()\n"
    good = Asserts("x = [3, 1]\nsort(x)\nassert x == [1, 3]\ndef check(f):\n    assert f(1, 2) == 3", "add")
    bad = Asserts("assert add(1, 2) == 4")
    runs = sandbox.run(program, [good, bad], QUICK).runs
    assert [run.status for run in runs] == [RunStatus.DONE, RunStatus.WRONG]


REMOTE = {
    "objects": ("class P:\n    def __init__(s, x): s.x = x\n    def d(s): return 2 * s.x\ndef g(p): return p[0].x",
                "p = P(3)\np.x = 4\nassert p.d() == 8 and p.x == 4 and g([p]) == 4"),
    "errors": ("def f(x): raise KeyError(x)", "try:\n    f(1)\nexcept KeyError: pass\nelse: assert False"),
    "own_errors": ("class E(Exception): pass\ndef f(): raise E(1)",
                   "try:\n    f()\nexcept RuntimeError as e: assert 'E: 1' in str(e)"),
    "values": ("from collections import *\ndef f(x): return x",
               "import collections\nfor v in (1 << 99, 1.5, float('inf'), (1, [2]), {1: (2,)}, {3, 4}, frozenset('a'), b'x',"
               " 'ä\\ud800', None, True, 2j, range(3), collections.Counter('aab'), collections.deque([1]), int):\n"
               "    assert f(v) == v and type(f(v)) is type(v), v"),
    "keywords": ("def f(a, *, b): return a - b", "assert f(5, b=3) == 2"),
    "constants": ("LIMIT = 7", "assert LIMIT == 7"),
    "generators": ("def f(n):\n    yield from range(n)", "assert list(f(3)) == [0, 1, 2]"),
    "in_place": ("def f(d, s, l):\n    d[1] = 2\n    s.add(3)\n    l[0].append(4)\n    return None",
                 "d, s, l = {}, set(), [[]]\nassert f(d, s, l) is None\nassert (d, s, l) == ({1: 2}, {3}, [[4]])"),
    "in_place_before_an_error": ("def f(l):\n    l.append(1)\n    raise ValueError",
                                 "l = []\ntry:\n    f(l)\nexcept ValueError: pass\nassert l == [1]"),
}  # fmt: skip


@pytest.mark.parametrize("name", REMOTE)
def test_values_objects_and_errors_reach_the_assertions(sandbox, name):
    program, tests = REMOTE[name]
    run = sandbox.run(program, [Asserts(tests)], QUICK).runs[0]
    assert run.status is RunStatus.DONE, run.detail
