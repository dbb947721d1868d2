"""Run a function in a fresh Python with another PYTHONHASHSEED, so that what depends on the process shows."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from marft_envs.testing.checking import NotChecked, fail

TIMEOUT_S = 300
_CHILD = "from marft_envs.testing.processes import child; child()"


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(*arguments)`` computed in another process; function, arguments and result are pickled.

    NotChecked where they cannot be found from another process (a lambda, a local function, a class of a script): that
    is no fault of what is checked.
    """
    try:
        payload = pickle.dumps((function, arguments))
    except Exception as fault:  # pickle raises whatever an object's own hooks raise
        raise NotChecked(f"another process cannot make it, because it does not pickle ({_short(fault)})") from fault
    own = os.environ.get("PYTHONHASHSEED")
    environment = os.environ | {
        "PYTHONHASHSEED": "2" if own == "1" else "1",
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),  # noqa: PTH109  # a text for a variable
    }
    done = subprocess.run(
        [sys.executable, "-c", _CHILD], input=payload, capture_output=True, env=environment, timeout=TIMEOUT_S
    )
    if done.returncode != 0 or not done.stdout:
        fail(f"a fresh process ended with code {done.returncode}: {done.stderr.decode(errors='replace')[-400:]}")
    kind, result = pickle.loads(done.stdout)
    if kind == "not found":
        raise NotChecked(f"another process cannot import it ({result})")
    if kind == "raised":
        own = "; expected a name that a new process can import, as in 'my_tasks:coins_v0'"
        fail(f"in a fresh process it raised {result}{own if result.startswith('UnknownEnvironment') else ''}")
    return result


def child() -> None:
    """The other side: reads from stdin, answers on stdout; what the function prints goes to stderr."""
    answer, sys.stdout = sys.stdout.buffer, sys.stderr
    answer.write(_answer(sys.stdin.buffer.read()))


def _answer(payload: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(payload)
    except (ImportError, AttributeError) as fault:
        return pickle.dumps(("not found", _short(fault)))
    try:
        return pickle.dumps(("value", function(*arguments)))
    except Exception as fault:
        return pickle.dumps(("raised", _short(fault)))


def _short(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault!s:.300}"
