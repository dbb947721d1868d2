"""What the scripts of this folder share: being stopped with one line, at any time. Imports nothing slow."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """Ctrl-C or SIGTERM. code: what the process ends with, 128 + the signal's number."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


def command_line(*more: str) -> str:
    """The command as it was typed, with the words ``more`` at its end (once)."""
    return shlex.join([Path(sys.executable).name, *(word for word in sys.argv if word not in more), *more])


def end_at_once(line: str) -> None:
    """While a script is being imported: a signal prints the line and ends the process."""

    def end(number: int, frame: FrameType | None) -> None:
        os.write(2, f"\n{line}\n".encode())
        os._exit(128 + number)

    for number in _SIGNALS:
        signal.signal(number, end)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Inside, the first signal raises Stopped; later ones are ignored, so that what is under way can be closed."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
