"""Comparison of a returned value with the expected one.

The value is compared in the notation in which it left the sandbox (``marft_envs.sandbox.inside.values``) and never
becomes an object of the program's classes. So no ``__eq__`` of the program runs, no large integer is parsed from
decimal digits (which takes quadratic time), and no dict is filled with keys that the program chose (hash collisions).

Types count: True is not 1, "1" is not 1, {} is not []. Because expected values come from JSON, a tuple is accepted for
a list, an integer where a float is expected, and every dictionary of ``collections`` for a dict.
"""

from __future__ import annotations

import json
from typing import Any

from marft_envs.coding.grader.output_checkers import Checker, is_close
from marft_envs.sandbox.inside import values

_MAX_GROWTH, _MIN_CHARS = 32, 1000
"""How much longer than the expected value an equal one can be in the notation, for its types and digits."""
_FLOAT_RANGE = 2**1023
_UNORDERED_TYPES = ("dict", "set", "frozenset")
_DICTS = ("Counter", "OrderedDict", "defaultdict")


def is_same(value: str, expected: Any, checker: Checker) -> bool:
    """Return whether a returned value is the expected one.

    Args:
        value: The value as the program's process wrote it. Anything malformed is not equal.
        expected: The expected value, from the test.
        checker: "float" allows its tolerance, "unordered" ignores the order of lists; others compare exactly.
    """
    try:
        wanted = values.dumps(expected)
        if len(value) > max(_MIN_CHARS, _MAX_GROWTH * len(wanted)):
            return False
        return _same(json.loads(value, parse_int=_parse_int), json.loads(wanted), checker)
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return False


def _parse_int(digits: str) -> int:
    if len(digits) > 16:
        raise ValueError("a well-formed value has larger integers in hexadecimal")
    return int(digits)


def _same(actual: Any, expected: Any, checker: Checker) -> bool:
    actual, expected = _plain(actual), _plain(expected)
    if isinstance(expected, list):
        return isinstance(actual, list) and _same_list(actual, expected, checker)
    if isinstance(expected, float):
        number = _number(actual)
        if number is None:
            return False
        return number == expected or (checker.name == "float" and is_close(number, expected, checker))
    if isinstance(expected, dict):
        return isinstance(actual, dict) and _same_tagged(actual, expected, checker)
    return type(actual) is type(expected) and actual == expected


def _plain(form: Any) -> Any:
    """Return the form of a tuple as that of a list, and that of a dictionary of ``collections`` as that of a dict."""
    if not isinstance(form, dict) or len(form) != 1:
        return form
    [(tag, body)] = form.items()
    if tag == "tuple" and isinstance(body, list):
        return body
    return {"dict": body} if tag in _DICTS else form


def _same_list(actual: list[Any], expected: list[Any], checker: Checker) -> bool:
    if len(actual) != len(expected):
        return False
    if checker.name == "unordered":
        actual, expected = sorted(actual, key=_sort_key), sorted(expected, key=_sort_key)
    return all(_same(one, other, checker) for one, other in zip(actual, expected, strict=True))


def _same_tagged(actual: dict[str, Any], expected: dict[str, Any], checker: Checker) -> bool:
    """Compare two forms {type: body}. The items of a dict or a set may come in any order."""
    # "object" stands for a value of the program's own class, which equals nothing.
    if len(actual) != 1 or list(actual) != list(expected) or "object" in actual:
        return False
    [(tag, body)], [wanted] = actual.items(), expected.values()
    if not isinstance(body, list):
        return type(body) is type(wanted) and bool(body == wanted)
    if tag in _UNORDERED_TYPES:
        body, wanted = sorted(body, key=_sort_key), sorted(wanted, key=_sort_key)
    return len(body) == len(wanted) and all(_same(one, other, checker) for one, other in zip(body, wanted, strict=True))


def _sort_key(form: Any) -> str:
    return json.dumps(form, sort_keys=True)


def _number(form: Any) -> float | None:
    """Return a float, or an integer as a float; None for anything else."""
    # Integers beyond 16 digits come as {"int": hexadecimal}; 300 digits are more than the largest float has.
    if isinstance(form, dict) and isinstance(form.get("int"), str) and len(form["int"]) < 300:
        form = int(form["int"], 16)
    if type(form) is float:
        return form
    return float(form) if type(form) is int and abs(form) < _FLOAT_RANGE else None
