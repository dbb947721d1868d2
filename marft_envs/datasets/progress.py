"""One line on standard error while rows are read, once that takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")
PATIENCE_S = 1.0
EVERY_S = 0.5


def shown(label: str, items: Sequence[_Item]) -> Iterator[_Item]:
    """The items, with "label: 3200 of 7473 rows" now and then; a terminal's line is overwritten."""
    started = last = time.monotonic()
    terminal = sys.stderr is not None and sys.stderr.isatty()
    said = False
    for number, item in enumerate(items):
        yield item
        now = time.monotonic()
        if now - started > PATIENCE_S and now - last > (EVERY_S if terminal else 10 * EVERY_S):
            last, said = now, True
            print(f"{label}: {number + 1} of {len(items)} rows", end="\r" if terminal else "\n", file=sys.stderr)
    if said and terminal:
        print(f"{label}: {len(items)} of {len(items)} rows", file=sys.stderr)
