# ruff: noqa: E501
"""Programs that try to pass without solving the problem (none of them is harmful). None passes; an honest one does."""

import pytest

from marft_envs.coding import TestOutcome, run_tests
from marft_envs.sandbox import Limits

LIMITS = Limits(cpu_s=1.0)
CALL = [{"fn": "f", "args": [20], "expected": 41}, {"fn": "f", "args": [3], "expected": 7}]
ASSERT = {
    "test_code": "def check(c):\n    assert c(20) == 41\n    assert sorted([c(3), c(1)]) == [3, 7]",
    "entry_point": "f",
}
STDIN = [{"input": "20\n", "output": "41\n"}]
HONEST = "def f(x): return 2 * x + 1"

FRAMES = """
import sys, gc
def f(x):
    frame = sys._getframe()
    while frame:
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            for item in value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else []:
                if isinstance(item, dict) and "expected" in item: return item["expected"]
        frame = frame.f_back
    for item in gc.get_objects():
        if isinstance(item, dict) and "expected" in item: return item["expected"]
        if isinstance(item, dict) and "token" in item: return item["token"]
"""
MEMORY = """
import ctypes
def f(x):
    # looks for the tests in its own memory
    import gc
    for item in gc.get_objects():
        if isinstance(item, (list, tuple)) and any(i == 41 for i in item if type(i) is int) and x == 20 and len(item) < 9:
            return 41
"""
ALWAYS = """
class A(int):
    def __eq__(self, other): return True
    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = int.__hash__
def f(x): return A(0)
"""
BUILTINS = """
import builtins, json
builtins.sorted = lambda *a, **k: [3, 7]
builtins.len = builtins.isinstance = lambda *a: True
json.loads = json.dumps = lambda *a, **k: 0
AssertionError = Exception
builtins.AssertionError = ZeroDivisionError
def check(c): pass
def sorted(x): return [3, 7]
def f(x): return 0
"""
CHEATS = {
    "frames": FRAMES,
    "objects": MEMORY,
    "equal_to_all": ALWAYS,
    "patched_builtins": BUILTINS,
    "exit_at_import": "import os\nos._exit(0)",
    "exit_in_call": "import os\ndef f(x): os._exit(0)",
    "system_exit": "def f(x): raise SystemExit(0)",
    "assertion_swallowed": "def f(x): raise AssertionError",
    "keyboard_interrupt": "def f(x): raise KeyboardInterrupt",
    "own_type_name": "class int: pass\ndef f(x): return int()",
    "not_a_number": "def f(x): return float('nan')",
    "true": "def f(x): return True",
    "mock": "from unittest.mock import MagicMock, ANY\ndef f(x): return ANY",
    "class_itself": "class f(int): pass",
    "raw_frames": "import os\ndef f(x):\n    os.write(3, (0x7fffffff).to_bytes(4, 'big') + b'x' * 99)\n    return 1",
    "short_frames": "import os\nos.write(3, b'\\x00\\x00\\x00\\x02[]' * 99)\ndef f(x): return 1",
    "forged_object": "import os\ndef f(x):\n    m = b'{\"value\": {\"tuple\": [\"value\", {\"yours\": 0}]}, \"nodes\": [], \"objects\": {}, \"forgotten\": []}'\n"
    "    os.write(3, len(m).to_bytes(4, 'big') + m)\n    os._exit(0)",
    "forged_changes": "import os\ndef f(x):\n    m = b'{\"value\": {\"tuple\": [\"value\", 0]}, \"nodes\": [[2, null, [41]]], \"objects\": {}, \"forgotten\": []}'\n"
    "    os.write(3, len(m).to_bytes(4, 'big') + m)\n    os._exit(0)",
    "closes_the_channel": "import os\ndef f(x): os.close(3)",
    "token_on_4": "import os\ndef f(x):\n    try: os.write(4, b'0' * 32)\n    except OSError: pass\n    return 0",
    "prints": "def f(x): print(41)",
    "own_sorted": "def sorted(x): return [3, 7]\ndef f(x): return 41",
    "constant": "def f(x): return 41",
    "loop": "def f(x):\n    while True: pass",
    "nothing": "",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["call", "assert"])
@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_passes(name, kind):
    report = run_tests(CHEATS[name], CALL if kind == "call" else ASSERT, kind, limits=LIMITS, stop_early=False)
    outcomes = [result.outcome for result in report.results]
    assert report.verdict().score == 0.0
    assert TestOutcome.FAULT not in outcomes, report


@pytest.mark.parametrize(("kind", "tests"), [("call", CALL), ("assert", ASSERT)])
def test_an_honest_program_passes(kind, tests):
    assert run_tests(HONEST, tests, kind).verdict().score == 1.0


STDIN_CHEATS = {
    "right_but_fails": "print(41)\nraise SystemExit(1)",
    "right_but_crashes": "import os\nprint(41, flush=True)\nos.abort()",
    "right_then_loops": "print(41, flush=True)\nwhile True: pass",
    "says_passed": "print('{\"passed\": true}')",
    "stderr_only": "import sys\nprint(41, file=sys.stderr)",
    "atexit_more": "import atexit\natexit.register(print, 'x')\nprint(41)",
    "one_word_of_many": "print('41 42 43')",
    "all_numbers": "print(*range(100), sep='\\n')",
    "reads_the_parent": "import os\ntry: print(open(f'/proc/{os.getppid()}/cmdline').read())\nexcept OSError: print('no')",
}


@pytest.mark.parametrize("name", STDIN_CHEATS)
def test_no_cheat_on_standard_output_passes(name):
    assert run_tests(STDIN_CHEATS[name], STDIN, "stdin", limits=LIMITS).verdict().score == 0.0
    assert run_tests("print(2 * int(input()) + 1)", STDIN, "stdin").verdict().score == 1.0


def test_a_run_leaves_nothing_in_the_memory_of_the_next():
    """A program searches its objects for a word of the previous run."""
    look = (
        "import sys\nword = bytes(reversed(input().encode()))\nimport ctypes, gc\n"
        "found = any(word.decode() in str(o)[:10000] for o in gc.get_objects() if isinstance(o, (dict, list, tuple)) "
        "and o is not globals())\nprint(found)"
    )
    run_tests("def f(x): return x", [{"fn": "f", "args": ["qqzzyyxx"], "expected": "ssttuuvv"}], "call")
    for word in ("qqzzyyxx", "ssttuuvv"):
        output = run_tests(look, [{"input": word[::-1], "output": ""}], "stdin").results[0].output
        assert output == "False\n"
