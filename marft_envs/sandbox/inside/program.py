"""Execution of a program's source as ``python program.py`` does it, in a process that is already confined.

Nothing in this process is secret, and nothing in it decides whether the program is correct. A program that manipulates
these frames changes only its own process, from which the caller reads nothing but values.
"""

from __future__ import annotations

import atexit
import builtins
import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

_exit = os._exit
_THREAD_STACK = 16 << 20  # the default is the size of the main thread's stack; few of those fit into the address space

PRELUDE = """\
import bisect, collections, copy, datetime, functools, heapq, itertools, json, math, operator, random, re, string, sys
from bisect import bisect_left, bisect_right, insort, insort_left, insort_right
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from functools import cache, cmp_to_key, lru_cache, reduce
from heapq import heapify, heappop, heappush, heappushpop, heapreplace, nlargest, nsmallest
from itertools import accumulate, chain, combinations, count, cycle, groupby, islice, permutations, product, repeat
from itertools import combinations_with_replacement, compress, dropwhile, pairwise, starmap, takewhile, tee, zip_longest
from math import ceil, comb, factorial, floor, gcd, inf, isqrt, lcm, log, log2, pi, sqrt
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import *
"""
"""Imports that LeetCode-style programs assume. The program's own definitions override them."""


def new_streams() -> None:
    """Open sys.stdin, sys.stdout and sys.stderr on the descriptors 0, 1 and 2."""
    for number, name, mode, errors in (
        (0, "stdin", "r", "surrogateescape"),
        (1, "stdout", "w", "surrogateescape"),
        (2, "stderr", "w", "backslashreplace"),
    ):
        stream = open(number, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.stderr.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def new_module(name: str, prelude: bool) -> types.ModuleType:
    """Add an empty module to ``sys.modules`` and return it. prelude: run the customary imports in it."""
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    sys.argv = ["main.py"]
    threading.stack_size(_THREAD_STACK)
    if prelude:
        exec(compile(PRELUDE, "prelude", "exec"), module.__dict__)
    return module


def execute(source: str, module: types.ModuleType) -> None:
    """Run the source in the module. A byte order mark is removed, because ``compile`` rejects it in a string."""
    exec(compile(source.removeprefix("\ufeff"), "main.py", "exec", dont_inherit=True), module.__dict__)


def run_and_exit(work: Callable[[], None]) -> None:
    """Call ``work`` and exit as Python does: traceback, exit code, threads, atexit functions, streams."""
    code = 0
    try:
        work()
    except SystemExit as error:
        code = _exit_code(error)
    except BaseException:
        code = 1
        _print_traceback()
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException:
        _print_traceback()
    try:
        sys.stdout.flush()
    except BaseException:
        code = code or 120  # the exit code of Python when it cannot flush
    _exit(code)


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def _print_traceback() -> None:
    """Print the traceback without the frames of this file. Running out of memory here must not hide the exit code."""
    try:
        kind, value, trace = sys.exc_info()
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(kind, value, trace)  # type: ignore[arg-type]
        sys.stderr.flush()
    except BaseException:
        os.write(2, f"\n{kind.__name__ if kind else 'error'}\n".encode())


def find_function(module: types.ModuleType, name: str) -> Any:
    """Return the method of a new ``Solution``, or the function of the module. Raises NameError if there is neither."""
    solution = getattr(module, "Solution", None)
    if isinstance(solution, type) and hasattr(solution, name):
        return getattr(solution(), name)
    if name not in module.__dict__:
        raise NameError(f"name {name!r} is not defined")
    return module.__dict__[name]
