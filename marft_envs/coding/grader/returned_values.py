"""Is a returned value right? Compared in the notation in which it crossed the wall; it never becomes an object here.

So no ``__eq__`` of the program's runs, no integer is read from decimal digits, and no table is filled with keys that a
program chose. Types count: True is not 1, "1" is not 1, {} is not []. A tuple may stand for a list, and an integer
where a float is expected, because the expected values come from JSON.
"""

from __future__ import annotations

import json
from typing import Any

from marft_envs.coding.grader.output_checkers import Checker, close
from marft_envs.sandbox.inside import values

_MOST_CHARS = 8 << 20
_BIG_FLOAT = 2**1023


def is_same(value: str, expected: Any, checker: Checker) -> bool:
    """Whether ``value``, as the program's process wrote it, is ``expected``. Anything malformed is not."""
    if len(value) > _MOST_CHARS:
        return False
    try:
        mine = json.loads(value, parse_int=_parse_int)
        return _same(mine, json.loads(values.dumps(expected)), checker)
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return False


def _parse_int(digits: str) -> int:
    if len(digits) > 16:
        raise ValueError("values writes larger ones in hexadecimal")
    return int(digits)


def _same(mine: Any, theirs: Any, checker: Checker) -> bool:
    mine, theirs = _bare(mine), _bare(theirs)
    if isinstance(theirs, list):
        return isinstance(mine, list) and _same_list(mine, theirs, checker)
    if isinstance(theirs, float):
        number = _number(mine)
        return number is not None and (number == theirs or (checker.name == "float" and close(number, theirs, checker)))
    if isinstance(theirs, dict):
        return isinstance(mine, dict) and _same_tagged(mine, theirs, checker)
    return type(mine) is type(theirs) and mine == theirs


def _bare(form: Any) -> Any:
    """A tuple's form as a list's."""
    if isinstance(form, dict) and len(form) == 1 and isinstance(form.get("tuple"), list):
        return form["tuple"]
    return form


def _same_list(mine: list[Any], theirs: list[Any], checker: Checker) -> bool:
    if len(mine) != len(theirs):
        return False
    if checker.name == "unordered":
        mine, theirs = sorted(mine, key=_key), sorted(theirs, key=_key)
    return all(_same(one, other, checker) for one, other in zip(mine, theirs, strict=True))


def _same_tagged(mine: dict[str, Any], theirs: dict[str, Any], checker: Checker) -> bool:
    """{type: body}; the pairs of a dict, and the items of a set, come in any order."""
    if len(mine) != 1 or list(mine) != list(theirs) or "object" in mine:
        return False
    [(tag, body)], [wanted] = mine.items(), theirs.values()
    if not isinstance(body, list):
        return type(body) is type(wanted) and bool(body == wanted)
    if tag in ("dict", "set", "frozenset", "Counter", "defaultdict"):
        body, wanted = sorted(body, key=_key), sorted(wanted, key=_key)
    return len(body) == len(wanted) and all(_same(one, other, checker) for one, other in zip(body, wanted, strict=True))


def _key(form: Any) -> str:
    return json.dumps(form, sort_keys=True)


def _number(form: Any) -> float | None:
    """A float, or an integer that may stand for one."""
    if isinstance(form, dict) and isinstance(form.get("int"), str) and len(form["int"]) < 300:
        form = int(form["int"], 16)
    if type(form) is float:
        return form
    return float(form) if type(form) is int and abs(form) < _BIG_FLOAT else None
