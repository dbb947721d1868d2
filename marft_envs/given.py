"""Words that users give: a finishing word, the name of a tool; or a clear error."""

from __future__ import annotations

from collections.abc import Iterable
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
