"""What the scripts of this folder share: how they end. Nothing slow is imported before it is needed.

Exit codes: 2, a wrong option or input; 1, the disk; 130 and 143, stopped by Ctrl-C and by SIGTERM. Each is one line.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
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


def run(name: str, work: Callable[[], int], stopped: str) -> int:
    """The exit code of ``work()``, or of what ended it. stopped: what to say after a signal."""
    from baselines.models import ModelCorrupt, ModelNotFound

    try:
        with stoppable():
            return work()
    except Stopped as signalled:
        print(f"\n{stopped}", file=sys.stderr)
        return signalled.code
    except (ValueError, TypeError, FileNotFoundError, ModelNotFound, ModelCorrupt) as fault:
        print(f"{name}: {fault}", file=sys.stderr)
        return 2
    except OSError as fault:
        where = f"{fault.filename}: " if fault.filename else ""
        print(f"{name}: {where}{fault.strerror or fault}", file=sys.stderr)
        return 1
