"""Validation of tests. A malformed test is an error of its author, never a wrong answer of the program."""

from __future__ import annotations

import os
import re
import symtable
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

_FIELDS = {"stdin": ("input", "output"), "call": ("fn", "args", "expected"), "assert": ("test_code",)}
# Ways to define ``check`` that a symbol table does not show: exec, namespaces, a global statement, :=, import *.
_MAY_BIND_UNSEEN = re.compile(r"\b(exec|globals|locals|vars)\b|\bglobal\b[^\n;]*\bcheck\b|\bcheck\s*:=|import\s+\*")


def check_tests(tests: Sequence[Mapping[str, Any]], kind: str) -> None:
    """Raise ValueError if the tests cannot be run. Nothing is executed.

    Args:
        tests: The tests.
        kind: "stdin", "call" or "assert".

    Raises:
        ValueError: ``kind`` is unknown; there are no tests; a test lacks a field; ``args`` is not a list; ``test_code``
            does not compile, or has an entry_point and no function ``check``. The message names the test.
    """
    if kind not in _FIELDS:
        raise ValueError(f"kind={kind!r}: expected one of {', '.join(_FIELDS)}")
    if not tests:
        raise ValueError("tests=[]: expected at least one test")
    for number, test in enumerate(tests):
        missing = [field for field in _FIELDS[kind] if field not in test]
        if missing:
            raise ValueError(f"tests[{number}] of kind {kind!r} lacks {', '.join(missing)}; it has {', '.join(test)}")
        fault = _fault_of_args(test["args"]) if kind == "call" else _fault_of_asserts(test) if kind == "assert" else ""
        if fault:
            raise ValueError(f"tests[{number}]: {fault}")


def _fault_of_args(args: Any) -> str:
    if isinstance(args, Sequence) and not isinstance(args, (str, bytes)):
        return ""
    return f"args={args!r:.80}, expected a list"


def _fault_of_asserts(test: Mapping[str, Any]) -> str:
    code, entry = test["test_code"], test.get("entry_point")
    if not isinstance(code, str):
        return f"test_code={code!r:.80}, expected a string"
    fault, binds_check = _compile(code)
    if fault:
        return fault
    if entry and not binds_check:
        return f"entry_point={entry!r} calls check({entry}), but test_code has none: expected def check(candidate)"
    return ""


_warning_filters = Lock()  # graders run in threads, and catch_warnings changes the filters of the whole process
# A fork waits for the lock, so that the copy of this process has it free, and has the filters as they were.
os.register_at_fork(
    before=_warning_filters.acquire,
    after_in_parent=_warning_filters.release,
    after_in_child=_warning_filters.release,
)


@lru_cache(maxsize=256)  # every grading validates the same tests again
def _compile(code: str) -> tuple[str, bool]:
    """Return why the code does not compile ("" if it does), and whether it may define the name ``check``."""
    try:
        with _warning_filters, warnings.catch_warnings():
            # Warnings about the author's code would otherwise be shown for each graded program.
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)  # an invalid escape, before Python 3.12
            compile(code, "test_code", "exec", dont_inherit=True)
            names = symtable.symtable(code, "test_code", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as fault:
        where = f"line {fault.lineno}: {fault.msg}" if isinstance(fault, SyntaxError) else str(fault)
        return f"test_code does not compile: {type(fault).__name__}, {where}", False
    return "", _binds_check(names) or _MAY_BIND_UNSEEN.search(code) is not None


def _binds_check(names: symtable.SymbolTable) -> bool:
    if "check" not in names.get_identifiers():
        return False
    symbol = names.lookup("check")
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
