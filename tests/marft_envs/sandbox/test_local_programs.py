# ruff: noqa: E501
"""Programs in the local sandbox: correct ones run as with ``python program.py``, and every failure has its status."""

import pickle
import sys

import pytest

from marft_envs.sandbox import Call, Limits, LocalSandbox, RunStatus, Stdin
from tests.marft_envs.sandbox.quick_run import QUICK, run_stdin

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is for Linux")

HONEST = {
    "input": ("print(int(input()) + 1)", "41\n", "42\n"),
    "read_to_the_end": ("import sys; print(sys.stdin.read().upper(), end='')", "ab\nc", "AB\nC"),
    "buffer": ("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])", "ab", "ba"),
    "descriptor_0": ("import os; print(os.read(0, 9), len(open(0).read()))", "x" * 12, "b'xxxxxxxxx' 3\n"),
    "dev_stdin": ("print(open('/dev/stdin').read())", "ab", "ab\n"),
    "dev_stdout": ("open('/dev/stdout', 'w').write('ab')", "", "ab"),
    "main_guard": ("if __name__ == '__main__': print('main')", "", "main\n"),
    "unicode": ("print(input()[::-1])", "äß\n", "ßä\n"),
    "end_of_input": ("try: input()\nexcept EOFError: print('end')", "", "end\n"),
    "quit": ("print(1)\nquit()", "", "1\n"),
    "exit_code_0": ("import sys\nprint(1)\nsys.exit(0)", "", "1\n"),
    "threads": (
        "import threading\nt = [threading.Thread(target=print, args=(1,)) for _ in range(8)]\n"
        "for x in t: x.start()\nfor x in t: x.join()", "", "1\n" * 8,
    ),
    "big_stack_thread": (
        "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(1 << 26)\n"
        "def f(n): return n and 1 + f(n - 1)\nt = threading.Thread(target=lambda: print(f(50000)))\nt.start()\nt.join()",
        "", "50000\n",
    ),
    "deep_recursion": ("import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return n and 1 + f(n - 1)\nprint(f(90000))", "", "90000\n"),
    "deep_recursion_in_c": (
        "import sys, functools\nsys.setrecursionlimit(10**6)\n@functools.lru_cache(None)\ndef f(n): return n and 1 + f(n - 1)\n"
        "print(f(20000))", "", "20000\n",
    ),
    "raises_its_stack": (
        "import resource\nresource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY,) * 2)\nprint(1)", "", "1\n",
    ),
    "threads_that_the_module_knows": (
        "import threading\nt = threading.Timer(0.01, print, ('late',))\nt.start()\n"
        "print(threading.active_count(), threading.current_thread() is threading.main_thread())", "", "2 True\nlate\n",
    ),
    "streams_know_their_files": (
        "import os, sys\nprint(sys.stdin.fileno(), sys.stdin.isatty(), sys.stdout.seekable(), sys.stdin.seekable())\n"
        "sys.stdin.readline()\nsys.stdin.seek(0)\nprint(sys.stdin.read(), end='')", "a\nb\n", "0 False True True\na\nb\n",
    ),
    "asyncio": ("import asyncio\nasync def f(): await asyncio.sleep(0.01); print(1)\nasyncio.run(f())", "", "1\n"),
    "executor": (
        "from concurrent.futures import ThreadPoolExecutor as P\nprint(list(P(2).map(abs, [-1, 2])))", "", "[1, 2]\n",
    ),
    "numpy": ("import numpy as np; print(np.linalg.det(np.eye(3)))", "", "1.0\n"),
    "modules": (
        "import decimal, fractions, datetime, zoneinfo, hashlib, sqlite3, json, csv, zlib, unittest, typing, ssl\n"
        "print(zoneinfo.ZoneInfo('UTC'), hashlib.md5(b'').hexdigest()[:4])", "", "UTC d41d\n",
    ),
    "atexit": ("import atexit\natexit.register(print, 'bye')\nprint('hi')", "", "hi\nbye\n"),
    "dataclass_and_pickle": (
        "import dataclasses, pickle\n@dataclasses.dataclass\nclass P: x: int\n"
        "print(pickle.loads(pickle.dumps(P(3))))", "", "P(x=3)\n",
    ),
    "prints_much": ("print('x' * 500_000)", "", "x" * 500_000 + "\n"),
    "reads_much": ("print(len(input()))", "x" * 5_000_000, "5000000\n"),
    "no_last_flush": ("import sys; sys.stdout.write('ab')", "", "ab"),
    "ignores_broken_stderr": ("import sys; sys.stderr.close(); print(1)", "", "1\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_a_program_runs_as_with_python(sandbox, name):
    program, text, output = HONEST[name]
    run = run_stdin(sandbox, program, text, Limits(cpu_s=5))
    assert (run.status, run.stdout) == (RunStatus.DONE, output), run.detail


STATUSES = {
    "1 / 0": RunStatus.RUNTIME_ERROR,
    "import sys; sys.exit(3)": RunStatus.RUNTIME_ERROR,
    "import sys; sys.exit('no')": RunStatus.RUNTIME_ERROR,
    "print(": RunStatus.RUNTIME_ERROR,
    "print('\0')": RunStatus.RUNTIME_ERROR,
    "print('\ud800')\x00": RunStatus.RUNTIME_ERROR,
    "a = [0] * 10**9": RunStatus.MEMORY,
    "while True: print('x' * 9999)": RunStatus.OUTPUT_LIMIT,
    "import os; os._exit(0)": RunStatus.DONE,
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": RunStatus.RUNTIME_ERROR,
    "raise SystemExit": RunStatus.DONE,
}


@pytest.mark.parametrize("program", STATUSES, ids=map(ascii, STATUSES))
def test_each_end_has_its_status(sandbox, program):
    assert run_stdin(sandbox, program).status is STATUSES[program]


@pytest.mark.parametrize("program", ["while True: pass", "import time; time.sleep(60)"])
def test_a_program_that_does_not_end_is_a_timeout(sandbox, program):
    assert run_stdin(sandbox, program, limits=Limits(cpu_s=0.1)).status is RunStatus.TIMEOUT


def test_the_detail_is_the_last_line_of_the_traceback(sandbox):
    assert run_stdin(sandbox, "int('x')").detail == "ValueError: invalid literal for int() with base 10: 'x'"


def test_a_call_separates_the_value_from_the_output(sandbox):
    program = "class Solution:\n    def f(self, x, y):\n        print('debug')\n        return (x + y, {1: [y]})"
    run = sandbox.run(program, [Call("f", '["a", "b"]')], QUICK).runs[0]
    assert run.value == '{"tuple": ["ab", {"dict": [[1, ["b"]]]}]}'
    assert run.stdout == "debug\n"


def test_a_call_of_an_undefined_function_is_a_runtime_error(sandbox):
    run = sandbox.run("x = 1", [Call("f", "[]")], QUICK).runs[0]
    assert (run.status, run.detail) == (RunStatus.RUNTIME_ERROR, "NameError: name 'f' is not defined")


def test_the_prelude_is_imported_only_on_request(sandbox):
    program = (
        "def f(x: List[int]) -> Optional[int]: return Counter(x).most_common(1)[0][0] + gcd(4, 6) + math.floor(inf > 1)"
    )
    call = Call("f", "[[7, 7, 8]]")
    assert sandbox.run(program, [call], QUICK, prelude=True).runs[0].value == "10"
    assert sandbox.run(program, [call], QUICK).runs[0].detail.startswith("NameError: name 'List' is not defined")


def test_every_test_runs_in_a_new_process(sandbox):
    program = "import builtins\nbuiltins.n = getattr(builtins, 'n', 0) + 1\nprint(builtins.n)"
    assert [run.stdout for run in sandbox.run(program, [Stdin("")] * 3, QUICK).runs] == ["1\n"] * 3


def test_random_numbers_and_the_order_of_sets_are_the_same_in_every_run_and_server():
    program = "import random\nprint(random.random(), random.sample(range(99), 5), set('abcdef'))"
    outputs = set()
    for _ in range(2):
        box = LocalSandbox()
        outputs |= {run_stdin(box, program).stdout for _ in range(2)}
        box.close()
    assert len(outputs) == 1


def test_the_environment_is_empty(sandbox):
    assert run_stdin(sandbox, "import os; print(dict(os.environ))").stdout == "{}\n"


def test_a_result_can_be_pickled(sandbox):
    result = sandbox.run("print(1)", [Stdin("")])
    assert pickle.loads(pickle.dumps(result)) == result
