"""Ctrl-C and SIGTERM: one line and an exit code, never a traceback. Imports nothing that takes time."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """The process was asked to end. code: what it exits with, 130 after Ctrl-C and 143 after SIGTERM."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


def exit_on_signal(line: str) -> None:
    """Until ``interruptible``: a signal prints the line and ends the process, which has begun nothing yet (it is still
    importing)."""

    def leave(number: int, frame: FrameType | None) -> None:
        os.write(2, f"\n{line}\n".encode())
        os._exit(128 + number)

    for number in _SIGNALS:
        signal.signal(number, leave)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block the first of either signal raises Interrupted; later ones are ignored, so that what is under way can
    be closed. Outside the main thread, where that cannot be, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    before = [signal.signal(number, stop) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def report_interrupt(stop: Interrupted, advice: str = "") -> int:
    """One line on stderr -> the exit code."""
    print(f"\nstopped{'; ' + advice if advice else ''}", file=sys.stderr)
    return stop.code
