"""Fixed-width layout of the report: tables that wrap by columns, and how figures are written."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

WIDTH = 110
NOTHING = "-"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], keys: int = 1) -> str:
    """Fixed-width table; columns that exceed WIDTH go to a further block, which repeats the first `keys` columns."""
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    blocks: list[list[int]] = [[]]
    for column in range(keys, len(headings)):
        used = 2 + sum(widths[i] + 2 for i in [*range(keys), *blocks[-1]])
        if blocks[-1] and used + widths[column] > WIDTH:
            blocks.append([])
        blocks[-1].append(column)
    lines = []
    for block in blocks:
        for row in [headings, *rows]:
            left = [row[i].ljust(widths[i]) for i in range(keys)]
            lines.append("  ".join(["", *left, *(row[i].rjust(widths[i]) for i in block)]).rstrip())
    return "\n".join(lines)


def percent(value: float | None) -> str:
    """Fraction as a percentage with one decimal."""
    return NOTHING if value is None else f"{100 * value:.1f}"


def points(value: float | None) -> str:
    """Difference of fractions in signed percentage points; nothing but zero prints as 0.0 without a sign."""
    text = NOTHING if value is None else f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def with_interval(found: dict[str, Any]) -> str:
    """`81.9 [79.0, 84.8]`; the part of an interval outside 0 to 100 % is cut."""
    low, high = found["low"], found["high"]
    inside = [None if edge is None else min(1.0, max(0.0, edge)) for edge in (low, high)]
    return f"{percent(found['mean']):>5} {bracket(inside[0], inside[1], percent)}"


def bracket(low: float | None, high: float | None, write: Callable[[float | None], str]) -> str:
    return "[no interval]" if low is None or high is None else f"[{write(low)}, {write(high)}]"


def p_value(value: float | None) -> str:
    return NOTHING if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def plain(value: Any) -> str:
    return ", ".join(f"{key} {inner}" for key, inner in value.items()) if isinstance(value, dict) else str(value)


def wrapped(text: str, indent: str, *, whole_words: bool = False) -> list[str]:
    """whole_words: no break at a hyphen or inside a long word, so that a command can be copied."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=not whole_words,
        break_long_words=not whole_words,
    )


def short(value: float) -> str:
    """Two significant digits below 10, so that 0.0031 and 2.9 both read well."""
    return f"{value:.2g}" if abs(value) < 9.95 else f"{value:.1f}" if abs(value) < 1000 else f"{value:.0f}"


def rate(value: float | None) -> str:
    """A learning rate as people write it: 0.0003."""
    return NOTHING if value is None else f"{value:g}"
