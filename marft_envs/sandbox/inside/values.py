"""Serialization of Python values as JSON, for arguments and returned values. Never pickle.

None, bool, str, float, list and int of up to 15 digits are written as plain JSON. Every other value is a JSON object
with one key, its type: ``(1, 2)`` is ``{"tuple": [1, 2]}``. An instance of a subclass of a builtin type, such as a
named tuple or a member of an IntEnum, is written as the value of the builtin type that it holds; its own methods, such
as an ``__eq__`` that always returns True, are not used. Every other object is ``{"object": name of its type}``, which
equals nothing and cannot be read.
"""

from __future__ import annotations

import builtins
import json
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

MAX_DEPTH = 100
_PLAIN_INT = 10**15
_MAX_DIGITS = 20
_MAX_ITEMS = 100_000  # items taken from an iterator

_Walk = Callable[[Any], Any]


class ValueFault(ValueError):
    """A value that cannot be serialized, or a string that is not a serialized value."""


def dumps(value: Any) -> str:
    """Return ``value`` as JSON.

    Raises:
        ValueFault: If the value is nested more than 100 levels deep.
    """
    try:
        return json.dumps(_write(value, 0), check_circular=False)
    except RecursionError:
        raise ValueFault("nested too deeply") from None


def _write(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueFault(f"nested deeper than {MAX_DEPTH}")
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if kind is int:
        return value if -_PLAIN_INT < value < _PLAIN_INT else {"int": hex(value)}
    if kind is list:
        return [_write(item, depth + 1) for item in value]
    if kind in _WRITERS:
        return {kind.__name__: _WRITERS[kind](value, lambda item: _write(item, depth + 1))}
    if kind is type and value in _BUILTIN_TYPES:
        return {"type": str(value.__name__)}
    if hasattr(kind, "__next__") and hasattr(kind, "__iter__") and kind.__module__ in ("builtins", "itertools"):
        return {"iterator": [_write(item, depth + 1) for item, _ in zip(value, range(_MAX_ITEMS), strict=False)]}
    if kind.__module__ == "numpy" and hasattr(value, "tolist"):
        return _write(value.tolist(), depth + 1)
    base = next((base for base in kind.__mro__ if base in _PLAIN), None)
    return {"object": kind.__name__[:80]} if base is None else _write(_PLAIN[base](value), depth)


def loads(text: str | bytes) -> Any:
    """Return the value that ``text``, the output of ``dumps``, serializes.

    Raises:
        ValueFault: If ``text`` is anything else.
    """
    try:
        return _read(json.loads(text, parse_int=_parse_int), 0)
    except ValueFault:
        raise
    except (ValueError, TypeError, KeyError, RecursionError, ArithmeticError, AttributeError) as error:
        raise ValueFault(f"not a serialized value: {type(error).__name__}: {error}"[:200]) from None


def _parse_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueFault(f"an integer of {len(digits)} decimal digits")  # parsing takes quadratic time
    return int(digits)


def _read(form: Any, depth: int) -> Any:
    if depth > 2 * MAX_DEPTH:
        raise ValueFault(f"nested deeper than {2 * MAX_DEPTH}")

    def walk(item: Any) -> Any:
        return _read(item, depth + 1)

    if isinstance(form, list):
        return [walk(item) for item in form]
    if not isinstance(form, dict):
        return form
    [(tag, body)] = form.items()
    if tag not in _READERS:
        raise ValueFault(f"unknown type {tag!r:.80}")
    return _READERS[tag](body, walk)


def _items(values: Any, walk: _Walk) -> list[Any]:
    return [walk(item) for item in values]


def _pairs(values: Any, walk: _Walk) -> list[Any]:
    return [[walk(key), walk(value)] for key, value in values.items()]


def _sorted_items(values: Any, walk: _Walk) -> list[Any]:
    return sorted((walk(item) for item in values), key=repr)


def _dict(body: Any, walk: _Walk) -> dict[Any, Any]:
    return {walk(key): walk(value) for key, value in body}


_BUILTIN_TYPES = frozenset(item for item in vars(builtins).values() if isinstance(item, type))


def _builtin_type(name: str) -> type:
    found = getattr(builtins, name)
    if not isinstance(found, type):
        raise ValueFault(f"not a builtin type: {name!r:.80}")
    return found


_PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
    list: lambda value: list.__getitem__(value, slice(None)),
    dict: lambda value: dict(dict.items(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}
"""Functions that return the value of a builtin type that an instance of a subclass holds."""
_WRITERS: dict[type, Callable[[Any, _Walk], Any]] = {
    tuple: _items, set: _sorted_items, frozenset: _sorted_items, deque: _items,
    dict: _pairs, Counter: _pairs, OrderedDict: _pairs, defaultdict: _pairs,
    bytes: lambda value, _: value.hex(),
    bytearray: lambda value, _: value.hex(),
    complex: lambda value, _: [value.real, value.imag],
    range: lambda value, walk: [walk(part) for part in (value.start, value.stop, value.step)],
    Decimal: lambda value, _: str(value),
    Fraction: lambda value, walk: [walk(value.numerator), walk(value.denominator)],
}  # fmt: skip
_READERS: dict[str, Callable[[Any, _Walk], Any]] = {
    "int": lambda body, _: int(body, 16),
    "tuple": lambda body, walk: tuple(_items(body, walk)),
    "set": lambda body, walk: set(_items(body, walk)),
    "frozenset": lambda body, walk: frozenset(_items(body, walk)),
    "deque": lambda body, walk: deque(_items(body, walk)),
    "dict": _dict,
    "Counter": lambda body, walk: Counter(_dict(body, walk)),
    "OrderedDict": lambda body, walk: OrderedDict(_dict(body, walk)),
    "defaultdict": _dict,
    "bytes": lambda body, _: bytes.fromhex(body),
    "bytearray": lambda body, _: bytearray.fromhex(body),
    "complex": lambda body, _: complex(float(body[0]), float(body[1])),
    "range": lambda body, walk: range(*_items(body, walk)),
    "Decimal": lambda body, _: Decimal(body),
    "Fraction": lambda body, walk: Fraction(*_items(body, walk)),
    "type": lambda body, _: _builtin_type(body),
    "iterator": lambda body, walk: iter(_items(body, walk)),
}
