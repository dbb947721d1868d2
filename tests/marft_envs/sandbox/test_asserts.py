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
                   "try:\n    f()\nexcept E as e: assert e.args == (1,)\nelse: assert False"),
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


LOCK = "import threading\nassert f(threading.Lock()) == 1"
CANNOT_CROSS = {  # tests that no program can pass or fail, and what the reason names
    "lock": (LOCK, "an object of the type _thread.lock"),
    "lock_in_list": ("import threading\nassert f([1, threading.Lock()]) == 1", "an object of the type _thread.lock"),
    "swallowed": (f"try:\n    {LOCK.splitlines()[0]}\n    f(threading.Lock())\nexcept BaseException: pass", "_thread.lock"),
    "module": ("import math\nassert f(math) == 1", "an object of the type builtins.module"),
    "inherits": ("class B(A): pass\nassert B()", "the class B, which inherits from A"),
    "missing_module": ("import pytest\nassert f(1) == 1", "No module named 'pytest'"),
}  # fmt: skip


@pytest.mark.parametrize("name", CANNOT_CROSS)
def test_what_cannot_cross_is_a_fault_and_named(sandbox, name):
    tests, reason = CANNOT_CROSS[name]
    run = sandbox.run("class A: pass\ndef f(x): return 1", [Asserts(tests)], QUICK).runs[0]
    assert run.status is RunStatus.FAULT and reason in run.detail


UNCHOSEN = {  # a program cannot bring about that its test is not graded
    "asks_for_a_lock": ("def f(o): return o.lock", "import threading\nclass O: pass\no = O()\no.lock = threading.Lock()\nassert f(o) == 1"),
    "returns_a_lock": ("import threading\ndef f(x): return threading.Lock()", "assert f(1) == 1"),
    "returns_a_module": ("import math\ndef f(x): return math", "assert f(1) == 1"),
    "raises_an_import_error": ("def f(x): raise ImportError('no')", "assert f(1) == 1"),
    "raises_its_own": ("class CannotCross(BaseException): pass\ndef f(x): raise CannotCross('fault')", "assert f(1) == 1"),
    "says_fault": ("def f(x): raise AssertionError('fault')", "assert f(1) == 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNCHOSEN)
def test_a_program_cannot_choose_to_be_not_graded(sandbox, name):
    program, tests = UNCHOSEN[name]
    run = sandbox.run(program, [Asserts(tests)], QUICK).runs[0]
    assert run.status in (RunStatus.RUNTIME_ERROR, RunStatus.WRONG), run


def test_the_random_stream_of_tests_depends_on_their_source_only(sandbox):
    """The tests print a number through the program. It differs from the program's own first number."""
    program = "import random\ndef show(x):\n    print(x, random.random(), flush=True)"
    tests = [Asserts(f"import random\nshow(random.random())\n{comment}") for comment in ("", "", "# another")]
    outputs = [run.stdout.split() for run in sandbox.run(program, tests, QUICK).runs]
    assert outputs[0] == outputs[1]
    assert len({outputs[0][0], outputs[2][0], outputs[0][1]}) == 3


CLASSES = {  # whose operators are the program's: those named like a class, unless the test lists them
    None: {"Money": RunStatus.DONE, "Find_Max": RunStatus.WRONG, "money": RunStatus.WRONG},
    (): {"Money": RunStatus.WRONG, "Find_Max": RunStatus.WRONG, "money": RunStatus.WRONG},
    ("money",): {"Money": RunStatus.WRONG, "Find_Max": RunStatus.WRONG, "money": RunStatus.DONE},
}


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("name", ["Money", "Find_Max", "money"])
def test_only_a_class_that_the_tests_use_as_one_decides_comparisons(sandbox, classes, name):
    program = f"class {name}:\n    def __init__(s, x): s.x = x\n    def __eq__(s, other): return s.x == other"
    run = sandbox.run(program, [Asserts(f"assert {name}(5) == 5", classes=classes)], QUICK).runs[0]
    assert run.status is CLASSES[classes][name]
