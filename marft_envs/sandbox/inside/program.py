"""Execution of a program's source as ``python program.py`` does it, in a process that is already confined.

Nothing in this process is secret, and nothing in it decides whether the program is correct. A program that manipulates
these frames changes only its own process, from which the caller reads nothing but values.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

_FILE = "/main.py"

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
    """Open sys.stdin, sys.stdout and sys.stderr on the descriptors 0, 1 and 2.

    As Python on Linux, they do not translate the ends of lines.
    """
    for number, name, mode, errors in (
        (0, "stdin", "r", "surrogateescape"),
        (1, "stdout", "w", "surrogateescape"),
        (2, "stderr", "w", "backslashreplace"),
    ):
        stream = open(number, mode, encoding="utf-8", errors=errors, newline="\n", closefd=False)  # noqa: SIM115
        stream.buffer.raw.name = f"<{name}>"  # type: ignore[attr-defined]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.stderr.reconfigure(line_buffering=True)  # type: ignore[union-attr]


class Source:
    """Loader of the program's module, which has no file: ``inspect`` and ``traceback`` ask it for the source."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, name: str) -> str:
        """Return the source."""
        return self._text


def new_module(name: str, source: str, prelude: bool) -> types.ModuleType:
    """Add the module of a program to ``sys.modules`` and return it.

    Args:
        name: Name of the module.
        source: Source of the program, which is not run.
        prelude: Whether to run the customary imports in the module.
    """
    module = types.ModuleType(name)
    module.__dict__.update(
        __builtins__=builtins, __annotations__={}, __file__=_FILE, __cached__=None, __loader__=Source(source)
    )
    sys.modules[name] = module
    sys.argv = ["main.py"]
    if prelude:
        exec(compile(PRELUDE, "prelude", "exec"), module.__dict__)
    return module


def execute(source: str, module: types.ModuleType) -> None:
    """Run the source in the module. A byte order mark is removed, because ``compile`` rejects it in a string."""
    exec(compile(source.removeprefix("\ufeff"), _FILE, "exec", dont_inherit=True), module.__dict__)


def strip_carriage_returns() -> None:
    """Let ``input`` return lines that end in CRLF without the carriage return.

    Python on Linux keeps it. Tests whose lines end in CRLF come from Windows, where right programs never see it.
    ``sys.stdin`` still returns the input unchanged.
    """
    read = builtins.input

    def input(prompt: object = "", /) -> str:
        return read(prompt).removesuffix("\r")

    builtins.input = input


def find_function(module: types.ModuleType, name: str) -> Any:
    """Return the method of a new ``Solution``, or the function of the module. Raises NameError if there is neither."""
    solution = getattr(module, "Solution", None)
    if isinstance(solution, type) and hasattr(solution, name):
        return getattr(solution(), name)
    if name not in module.__dict__:
        raise NameError(f"name {name!r} is not defined")
    return module.__dict__[name]
