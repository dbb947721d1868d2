"""Words and functions that users give: the name of a tool, D as a function, a reward; or a clear error."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any


def some_word(name: str, value: Any) -> str:
    """``value``, a text with something in it. TypeError for another type, ValueError for "" and for blanks alone."""
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r:.80}: got {type(value).__name__}, expected a word")
    if not value.strip():
        raise ValueError(f"{name}={value!r:.80}: expected a word, not a blank")
    return value


def repeated(values: Iterable[Any]) -> list[Any]:
    """Those that stand there more than once, each once, in order."""
    several = list(values)
    return list(dict.fromkeys(value for value in several if several.count(value) > 1))


def name_of(function: Any) -> str:
    """How a function is called in texts for people."""
    return str(getattr(function, "__name__", type(function).__name__))


def check_function(
    name: str, value: Any, arguments: Sequence[str], *, keywords: bool = False, classes: bool = False
) -> None:
    """TypeError where ``value`` cannot be called with ``arguments``, by place or as ``keywords``.

    classes: whether a class will do, such as ``str``; where our own classes are given, what was forgotten is to make
    an instance. A function without a signature, as some built-in ones are, is taken as it is.
    """
    told = f"{'the keywords ' * keywords}({', '.join(arguments)})" if arguments else "no arguments"
    wanted = f"a function of {told}"
    if not callable(value):
        raise TypeError(f"{name}={value!r:.80}: got {type(value).__name__}, expected {wanted}")
    if inspect.isclass(value) and not classes:
        raise TypeError(f"{name}={name_of(value)}: got the class, expected an instance of it or {wanted}")
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return
    try:
        signature.bind(*() if keywords else arguments, **dict.fromkeys(arguments) if keywords else {})
    except TypeError as fault:
        raise TypeError(f"{name}={name_of(value)}: takes {signature}, expected {wanted}") from fault
