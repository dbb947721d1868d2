"""Type checks of the settings records (LearnerConfig, RunConfig, ...), driven by their annotations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from marft_envs.arguments import did_you_mean


def check_field_types(record: Any) -> None:
    """Raise ValueError for the first field whose value does not fit its annotation.

    The message has the form ``LearnerConfig clip='abc': expected a number``. An int is accepted as a float; True and
    False are accepted as bool only. A field annotated ``Literal`` must have one of the listed values. Fields of other
    annotations than these and those in ``FIELD_TYPES`` (nested records) are not checked.

    Args:
        record: An instance of a dataclass.
    """
    choices = literal_choices(type(record))
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name in choices:
            expected = None if value in choices[field.name] else _one_of(value, choices[field.name])
        else:
            description, check = FIELD_TYPES.get(str(field.type), ("", _is_anything))
            expected = None if check(value) else description
        if expected is not None:
            raise ValueError(f"{type(record).__name__} {field.name}={value!r:.80}: expected {expected}")


def _one_of(value: Any, allowed: tuple[str, ...]) -> str:
    return f"one of {', '.join(allowed)}{did_you_mean(value, allowed)}"


def literal_choices(record: type) -> Mapping[str, tuple[str, ...]]:
    """Return the allowed values of every field of a dataclass that is annotated ``Literal``, by field name."""
    hints = get_type_hints(record)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def _is_anything(value: Any) -> bool:
    return True


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_number_or_none(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_string, value))


def _is_list_of_strings(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_string, value))


def _is_pair_of_numbers(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_number, value))


def _is_mapping_to_strings(value: Any) -> bool:
    return _is_mapping(value) and all(map(_is_string, value.values()))


def _is_mapping_to_mappings(value: Any) -> bool:
    return _is_mapping(value) and all(map(_is_mapping, value.values()))


FIELD_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a string", _is_string),
    "bool": ("true or false", _is_bool),
    "int": ("an integer", _is_integer),
    "float": ("a number", _is_number),
    "float | None": ("a number, or none", _is_number_or_none),
    "tuple[float, float]": ("two numbers", _is_pair_of_numbers),
    "tuple[str, ...]": ('a list of strings, for example ["a", "b"]', _is_list_of_strings),
    "Mapping[str, Any]": ("a mapping", _is_mapping),
    "Mapping[str, str]": ("a mapping of strings to strings", _is_mapping_to_strings),
    "Mapping[str, Mapping[str, Any]]": ("a mapping of strings to mappings", _is_mapping_to_mappings),
}
"""Annotation of a field -> its description in error messages, and the check of a value."""
