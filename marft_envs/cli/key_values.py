"""Parser of KEY=VALUE arguments, shared by all commands."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Sequence
from typing import Any

_PLAIN = (str, int, float, bool, list, dict)


def parse_value(text: str) -> Any:
    """Parse a value in TOML or Python notation. Return any other text unchanged, as a string.

    ``3``, ``1e-3``, ``true``, ``[1, 2]`` and ``"quoted"`` are read as TOML; ``True``, ``None`` and ``(1, 2)`` as Python
    literals. Anything else, such as a date, is a string.
    """
    try:
        mapping = tomllib.loads(f"value = {text}")
        if len(mapping) == 1 and isinstance(mapping["value"], _PLAIN):
            return mapping["value"]
    except tomllib.TOMLDecodeError:
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def parse_key_values(flag: str, words: Sequence[str]) -> dict[str, Any]:
    """Return ``["rounds=2", "dataset=relay"]`` as a mapping.

    Args:
        flag: The flag that the words belong to, for the error message.
        words: What the user typed.

    Raises:
        ValueError: A word is not KEY=VALUE.
    """
    mapping = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise ValueError(f"{flag} {word}: expected KEY=VALUE, as in dataset=relay")
        mapping[key] = parse_value(text)
    return mapping
