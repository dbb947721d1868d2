"""A progress bar for loops that may take long."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

DELAY_S = 1.0
_LOG_INTERVAL_S = 10.0
_T = TypeVar("_T")


def progress_bar(items: Iterable[_T], description: str, unit: str = "row") -> Iterator[_T]:
    """Yield the items, and show a tqdm bar on standard error once that takes longer than ``DELAY_S``.

    Args:
        items: What to iterate over; the bar shows a total if it has a length.
        description: Text before the bar.
        unit: Name of one item.
    """
    from tqdm import tqdm  # importing it takes 80 ms, and most processes read no rows

    class Bar(tqdm):
        monitor_interval = 0  # no background thread: this process may fork later

    to_terminal = sys.stderr is not None and sys.stderr.isatty()
    yield from Bar(
        items,
        desc=description,
        unit=f" {unit}s",
        delay=DELAY_S,
        mininterval=0.1 if to_terminal else _LOG_INTERVAL_S,
        disable=sys.stderr is None,
    )
