"""Markdown table of the speed benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_COLUMNS = (
    ("group", "{}"), ("grader", "{}"), ("answers", "{}"), ("per_s", "{:.0f}"), ("p50_ms", "{:.3f}"),
    ("p99_ms", "{:.2f}"), ("worst_s", "{:.2f}"), ("false_accepts", "{}"), ("false_rejects", "{}"), ("failed", "{}"),
)  # fmt: skip


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table, followed by the ratio of our throughput to math-verify's for each group."""
    lines = ["| " + " | ".join(name for name, _ in _COLUMNS) + " |", "|" + "---|" * len(_COLUMNS)]
    lines += ["| " + " | ".join(form.format(row[name]) for name, form in _COLUMNS) + " |" for row in rows]
    for group in dict.fromkeys(row["group"] for row in rows):
        rates = {row["grader"]: row["per_s"] for row in rows if row["group"] == group}
        if rates.get("math-verify"):
            lines.append(f"{group}: ours is {rates['ours'] / rates['math-verify']:.1f} times math-verify")
    return "\n".join(lines)
