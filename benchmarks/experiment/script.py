"""Start of a benchmark script: the command as typed, and signals while slow modules are imported.

The end of a script, with its exit codes, is ``baselines.command_line.run_command``.
"""

from __future__ import annotations

import shlex
import sys

from baselines.command_line import exit_on_signal, interpreter


def command_line(*more: str) -> str:
    """Return the command as typed, with the words ``more`` at its end (once)."""
    return shlex.join([interpreter(), *(word for word in sys.argv if word not in more), *more])


def announce_imports(name: str, advice: str = "") -> None:
    """Report on stderr that torch is being imported, which takes seconds, and end the process on a signal meanwhile.

    Call it after the command line is parsed and before the imports. ``run_command`` takes over the signals. Nothing
    happens if torch has been imported already.

    Args:
        name: Name of the script.
        advice: What the user can do after a signal, for example "resume with: ...".
    """
    if "torch" in sys.modules:
        return
    exit_on_signal("; ".join(filter(None, ("stopped", advice))))
    print(f"{name}: loading torch and transformers ...", file=sys.stderr, flush=True)
