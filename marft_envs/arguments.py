"""Checks of values that users pass, with error messages that name the argument, the value and what was expected."""

from __future__ import annotations

import difflib
import inspect
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def check_integer(
    name: str, value: Any, low: int, high: int | None = None, *, of: str = "", error: type[Exception] = ValueError
) -> int:
    """Return ``value`` as an int between ``low`` and ``high``; NumPy integers are accepted.

    Args:
        name: The argument's name, for the error message.
        value: What the user passed.
        low: The smallest allowed value.
        high: The largest allowed value; None for no upper bound.
        of: Text that follows the value in the message, such as `` of relay``.
        error: The exception for a value outside the range.

    Raises:
        TypeError: ``value`` is not an integer (a bool is not one).
        error: ``value`` is outside the range.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name}={value!r:.80}{of}: got {type(value).__name__}, expected int")
    if number < low or (high is not None and number > high):
        raise error(f"{name}={number}{of}: expected {f'at least {low}' if high is None else f'{low} to {high}'}")
    return number


def check_nonempty(name: str, value: Any) -> str:
    """Return ``value``, a string with at least one character that is not white space.

    Raises:
        TypeError: ``value`` is not a string.
        ValueError: ``value`` is empty or blank.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r:.80}: got {type(value).__name__}, expected a non-empty string")
    if not value.strip():
        raise ValueError(f"{name}={value!r:.80}: expected a non-empty string")
    return value


def check_callable(
    name: str, value: Any, arguments: Sequence[str], *, keywords: bool = False, classes: bool = False
) -> None:
    """Raise TypeError unless ``value`` can be called with ``arguments``.

    A callable without a signature, such as some built-in functions, is accepted.

    Args:
        name: The argument's name, for the error message.
        value: What the user passed.
        arguments: The names of the arguments of the call.
        keywords: Whether they are passed by keyword; by position otherwise.
        classes: Whether a class is accepted, such as ``str``. Where an instance is needed, passing the class is
            usually a forgotten call.
    """
    signature_text = f"{'the keywords ' * keywords}({', '.join(arguments)})" if arguments else "no arguments"
    wanted = f"a function of {signature_text}"
    if not callable(value):
        raise TypeError(f"{name}={value!r:.80}: got {type(value).__name__}, expected {wanted}")
    if inspect.isclass(value) and not classes:
        raise TypeError(f"{name}={callable_name(value)}: got the class, expected an instance of it or {wanted}")
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return
    try:
        signature.bind(*() if keywords else arguments, **dict.fromkeys(arguments) if keywords else {})
    except TypeError as fault:
        raise TypeError(f"{name}={callable_name(value)}: takes {signature}, expected {wanted}") from fault


def callable_name(function: Any) -> str:
    """Return a function's name, or the class name of another callable."""
    return str(getattr(function, "__name__", type(function).__name__))


def repeated(values: Iterable[Any]) -> list[Any]:
    """Return the values that occur more than once, each once, in order."""
    several = list(values)
    return list(dict.fromkeys(value for value in several if several.count(value) > 1))


def expected_one_of(name: str, value: Any, known: Iterable[Any], also: str = "") -> str:
    """Return the error message for an argument whose value is not one of ``known``.

    ``dataset='gsm9k': expected one of gsm8k, svamp (did you mean 'gsm8k'?)``

    Args:
        name: The argument's name.
        value: What the user passed.
        known: The allowed values. Unless all of them are strings, they are written as Python literals.
        also: What else is allowed, appended to the values: ``, or a marft_envs.Team``.
    """
    values = tuple(known)
    write = str if all(isinstance(item, str) for item in values) else repr
    return f"{name}={value!r:.80}: expected one of {', '.join(map(write, values))}{also}{did_you_mean(value, values)}"


def did_you_mean(value: Any, known: Iterable[Any]) -> str:
    """Return `` (did you mean 'gsm8k'?)`` for the closest known name, or "" if none is close.

    Args:
        value: What the user passed; anything but a string has no suggestion. Case is ignored.
        known: The known names, or a mapping from each name to the form in which the suggestion shows it.
    """
    if not isinstance(value, str):
        return ""
    written = known if isinstance(known, Mapping) else {item: item for item in known if isinstance(item, str)}
    by_lower_case = {item.lower(): text for item, text in written.items()}
    near = [name for name in by_lower_case if is_abbreviation_of(value.lower(), name)]
    near += difflib.get_close_matches(value.lower(), by_lower_case, n=1, cutoff=0.65)
    return f" (did you mean {by_lower_case[near[0]]!r}?)" if near else ""


def is_abbreviation_of(text: str, name: str) -> bool:
    """Return whether ``text`` abbreviates the words of ``name``: lr or learn_rate for learning_rate."""
    words = name.split("_")
    parts = text.split("_") if "_" in text else list(text)
    return len(parts) == len(words) > 1 and all(p and w.startswith(p) for p, w in zip(parts, words, strict=True))
