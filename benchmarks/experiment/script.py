"""What the scripts of this folder share: how they begin and end. Nothing slow is imported before it is needed.

Exit codes: 2, a wrong option or input; 1, the disk; 130 and 143, stopped by Ctrl-C and by SIGTERM. Each is one line.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from baselines.interrupts import Interrupted, exit_on_signal, interruptible, report_interrupt


def command_line(*more: str) -> str:
    """The command as it was typed, with the words ``more`` at its end (once)."""
    return shlex.join([Path(sys.executable).name, *(word for word in sys.argv if word not in more), *more])


def begin(name: str, stopped: str = "stopped") -> None:
    """Before a script's slow imports: say on stderr that it has begun. Until ``run`` a signal prints ``stopped`` and
    ends the process."""
    exit_on_signal(stopped)
    print(f"{name}: loading torch and transformers ...", file=sys.stderr, flush=True)


def run(name: str, work: Callable[[], int], advice: str = "") -> int:
    """The exit code of ``work()``, or of what ended it. advice: what to do after a signal, and on a full
    disk once there is room."""
    from baselines.models.load import ModelCorrupt, ModelNotFound
    from baselines.runs.checkpoint import CheckpointError, is_full

    try:
        with interruptible():
            return work()
    except Interrupted as stop:
        return report_interrupt(stop, advice)
    except (ValueError, TypeError, FileNotFoundError, ModelNotFound, ModelCorrupt) as fault:
        print(f"{name}: {fault}", file=sys.stderr)
        return 2
    except CheckpointError as fault:
        print(f"{name}: {fault}", file=sys.stderr)
        return 1
    except OSError as fault:
        where = f"{fault.filename}: " if fault.filename else ""
        what_to_do = ("; make room" + (advice and f", then {advice}")) if is_full(fault) else ""
        print(f"{name}: {where}{fault.strerror or fault}{what_to_do}", file=sys.stderr)
        return 1
