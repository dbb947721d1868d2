"""Layout of the text report: fixed-width tables that wrap by columns, and number formats."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 110
NOTHING = "-"


@dataclass(frozen=True)
class Table:
    """A table of the report, which is written as text and as HTML.

    Attributes:
        title: Title; may have several lines. "" if the table continues the one before it.
        headings: Headings of the columns.
        rows: Cells of each row.
        keys: Number of label columns.
        notes: Lines below the table, as text; each continues the one before it if it is indented by four.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int = 1
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Return the table as text."""
        return "\n".join(
            [*([self.title] if self.title else []), table(self.headings, self.rows, self.keys), *self.notes]
        )


Block = Table | str
"""A table, or a paragraph, of which the report is made."""


def blocks_text(blocks: Sequence[Block]) -> list[str]:
    """Return the blocks as text, one string for each table with those that continue it."""
    parts: list[str] = []
    for block in blocks:
        if isinstance(block, Table) and not block.title and parts:
            parts[-1] += "\n" + block.text()
        else:
            parts.append(block if isinstance(block, str) else block.text())
    return parts


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], keys: int = 1) -> str:
    """Return a fixed-width table.

    Args:
        headings: Headings of the columns.
        rows: Cells of each row.
        keys: Number of label columns. Columns that exceed WIDTH continue in a further block, which repeats the labels.
    """
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
    """Format a fraction as a percentage with one decimal."""
    return NOTHING if value is None else f"{100 * value:.1f}"


def points(value: float | None) -> str:
    """Format a difference of fractions in percentage points with a sign; what rounds to zero is 0.0 without one."""
    text = NOTHING if value is None else f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def with_interval(found: dict[str, Any]) -> str:
    """Format an accuracy as ``81.9 [79.0, 84.8]``, with the interval clipped to 0 to 100 %."""
    low, high = found["low"], found["high"]
    inside = [None if edge is None else min(1.0, max(0.0, edge)) for edge in (low, high)]
    return f"{percent(found['mean']):>5} {bracket(inside[0], inside[1], percent)}"


def bracket(low: float | None, high: float | None, write: Callable[[float | None], str]) -> str:
    """Format an interval; ``write`` formats its ends."""
    return "[no interval]" if low is None or high is None else f"[{write(low)}, {write(high)}]"


def p_value(value: float | None) -> str:
    """Format a p value with three decimals."""
    return NOTHING if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def plain(value: Any) -> str:
    """Format a mapping as ``key value, key value``, and anything else as str does."""
    return ", ".join(f"{key} {inner}" for key, inner in value.items()) if isinstance(value, dict) else str(value)


def wrapped(text: str, indent: str, *, whole_words: bool = False) -> list[str]:
    """Wrap text into lines of at most WIDTH characters.

    Args:
        text: Text without line breaks.
        indent: Indentation of the first line; the others are indented by two more characters.
        whole_words: Do not break at hyphens or inside long words, so that a command can be copied.
    """
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=not whole_words,
        break_long_words=not whole_words,
    )


def short(value: float) -> str:
    """Format a number with two significant digits below 10, so that 0.0031 and 2.9 are both readable."""
    return f"{value:.2g}" if abs(value) < 9.95 else f"{value:.1f}" if abs(value) < 1000 else f"{value:.0f}"


def rate(value: float | None) -> str:
    """Format a learning rate, for example 0.0003."""
    return NOTHING if value is None else f"{value:g}"
