"""Running a program's text the way ``python program.py`` does, in a process that is already locked.

Nothing here is a secret, and nothing here says whether the program is right: whatever a program makes of these frames,
it changes its own process, which only ever gives out values.
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
_THREAD_STACK = 16 << 20  # the default is the main thread's, of which few fit into the address space

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
"""What LeetCode-style programs expect to be there. The program's own names come later, and win."""


def new_streams() -> None:
    """Python's own stdin, stdout and stderr over descriptors 0, 1 and 2."""
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
    """An empty module in ``sys.modules``, with the customary imports if asked for."""
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    sys.argv = ["main.py"]
    threading.stack_size(_THREAD_STACK)
    if prelude:
        exec(compile(PRELUDE, "prelude", "exec"), module.__dict__)
    return module


def execute(source: str, module: types.ModuleType) -> None:
    """Run the whole text in the module. A file may begin with a byte order mark, a text to compile may not."""
    exec(compile(source.removeprefix("\ufeff"), "main.py", "exec", dont_inherit=True), module.__dict__)


def ending(work: Callable[[], None]) -> None:
    """Do ``work`` and end the process as Python does: traceback, exit code, threads, atexit, streams."""
    code = 0
    try:
        work()
    except SystemExit as leaving:
        code = _exit_code(leaving)
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
        code = code or 120  # as Python
    _exit(code)


def _exit_code(leaving: SystemExit) -> int:
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code & 0xFF
    print(leaving.code, file=sys.stderr)
    return 1


def _print_traceback() -> None:
    """Without our own frames. A traceback too large for the memory must not hide the exit code."""
    try:
        kind, value, trace = sys.exc_info()
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(kind, value, trace)  # type: ignore[arg-type]
        sys.stderr.flush()
    except BaseException:
        os.write(2, f"\n{kind.__name__ if kind else 'error'}\n".encode())


def find_function(module: types.ModuleType, name: str) -> Any:
    """A method of a new Solution, or a function of the module. NameError where there is neither."""
    solution = getattr(module, "Solution", None)
    if isinstance(solution, type) and hasattr(solution, name):
        return getattr(solution(), name)
    if name not in module.__dict__:
        raise NameError(f"name {name!r} is not defined")
    return module.__dict__[name]
