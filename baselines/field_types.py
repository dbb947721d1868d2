"""What a field of a settings record may hold, by its annotation, and the error for what it may not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any


def check_field_types(record: Any) -> None:
    """ValueError for the first field of the dataclass whose value is not of its kind: ``LearnerConfig clip='abc':
    expected a number``. An int is a number, True is neither. Fields of other annotations than those of FIELD_TYPES (choices,
    records in records) are their own record's to check."""
    for field in fields(record):
        value = getattr(record, field.name)
        expected, holds = FIELD_TYPES.get(str(field.type), ("", _anything))
        if not holds(value):
            raise ValueError(f"{type(record).__name__} {field.name}={value!r:.80}: expected {expected}")


def _anything(value: Any) -> bool:
    return True


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _truth(value: Any) -> bool:
    return isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _table(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_text, value))


def _texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_text, value))


def _two_numbers(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_number, value))


def _table_of_texts(value: Any) -> bool:
    return _table(value) and all(map(_text, value.values()))


def _table_of_tables(value: Any) -> bool:
    return _table(value) and all(map(_table, value.values()))


FIELD_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a text", _text),
    "bool": ("true or false", _truth),
    "int": ("a whole number", _whole),
    "float": ("a number", _number),
    "tuple[float, float]": ("two numbers", _two_numbers),
    "tuple[str, ...]": ('a list of texts, as in ["a", "b"]', _texts),
    "Mapping[str, Any]": ("a table", _table),
    "Mapping[str, str]": ("a table of texts", _table_of_texts),
    "Mapping[str, Mapping[str, Any]]": ("a table of tables", _table_of_tables),
}
