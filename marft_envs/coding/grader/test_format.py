"""Are tests well formed? What is wrong with them is their author's fault, and never a wrong answer."""

from __future__ import annotations

import re
import symtable
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

_FIELDS = {"stdin": ("input", "output"), "call": ("fn", "args", "expected"), "assert": ("test_code",)}
_MAY_BIND_UNSEEN = re.compile(r"\b(exec|globals|locals|vars)\b|\bglobal\b[^\n;]*\bcheck\b|\bcheck\s*:=|import\s+\*")


def check_tests(tests: Sequence[Mapping[str, Any]], kind: str) -> None:
    """ValueError for a kind that there is not, no tests, a test without its fields, arguments that are no list, and
    tests of "assert" that do not compile, or that have an entry_point and no ``check``. Nothing is executed."""
    if kind not in _FIELDS:
        raise ValueError(f"kind={kind!r}: expected one of {', '.join(_FIELDS)}")
    if not tests:
        raise ValueError("tests: there are none, expected at least one")
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
        return f"test_code={code!r:.80}, expected a text"
    compiles, binds_check = _read(code)
    if compiles:
        return compiles
    if entry and not binds_check:
        return f"entry_point={entry!r} asks for check({entry}), and test_code has none: expected def check(candidate)"
    return ""


_warnings_held = Lock()  # graders run in threads, and the filters of warnings are the process's


@lru_cache(maxsize=256)
def _read(code: str) -> tuple[str, bool]:
    """(why the code does not compile, or ""; whether it may bind the name ``check``). Every grading asks again."""
    try:
        with _warnings_held, warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # the author's, and told once for each program otherwise
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
