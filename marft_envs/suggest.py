"""What an error says of a name that is not known: those that are, and the nearest one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


def expected(name: str, value: Any, known: Iterable[Any], also: str = "") -> str:
    """The message for an argument ``name`` whose ``value`` is none of ``known``.

    ``dataset='gsm9k': expected one of gsm8k, svamp (did you mean 'gsm8k'?)``. also: what else is allowed, put after the
    names: ", or a marft_envs.Team". Values that are not all texts are written as in Python: ``None, 'human'``.
    """
    values = tuple(known)
    write = str if all(isinstance(item, str) for item in values) else repr
    return f"{name}={value!r:.80}: expected one of {', '.join(map(write, values))}{also}{did_you_mean(value, values)}"


def did_you_mean(value: Any, known: Iterable[Any]) -> str:
    """ " (did you mean 'gsm8k'?)" for a text like one of ``known``, or short for it, whatever its case; "" where none
    is near. known: texts, or a table from a text to how it is to be written."""
    if not isinstance(value, str):
        return ""
    written = known if isinstance(known, Mapping) else {item: item for item in known if isinstance(item, str)}
    by_lower_case = {item.lower(): text for item, text in written.items()}
    near = [name for name in by_lower_case if is_short_for(value.lower(), name)]
    near += difflib.get_close_matches(value.lower(), by_lower_case, n=1, cutoff=0.65)
    return f" (did you mean {by_lower_case[near[0]]!r}?)" if near else ""


def is_short_for(text: str, name: str) -> bool:
    """Whether ``text`` is the beginnings of the name's words: lr or learn_rate for learning_rate."""
    words = name.split("_")
    parts = text.split("_") if "_" in text else list(text)
    return len(parts) == len(words) > 1 and all(p and w.startswith(p) for p, w in zip(parts, words, strict=True))
