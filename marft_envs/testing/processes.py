"""Run a function in a new Python process with another PYTHONHASHSEED, to find results that depend on the process."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from marft_envs.registry.registry import registering_module
from marft_envs.testing.checking import NotChecked, fail

TIMEOUT_S = 300
_CHILD = "from marft_envs.testing.processes import child; child()"


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``, computed in a new process.

    The function, the arguments and the result are pickled.

    Raises:
        NotChecked: Another process cannot import the function or an argument (a lambda, a local function, a class of a
            script). This is not an error of the environment.
        ConformanceError: The function raised, or the process failed.
    """
    try:
        payload = pickle.dumps((function, arguments))
    except Exception as fault:  # __reduce__ and __getstate__ may raise anything
        raise NotChecked(f"another process cannot make it, because it does not pickle ({_short(fault)})") from fault
    own_seed = os.environ.get("PYTHONHASHSEED")
    environment = os.environ | {
        "PYTHONHASHSEED": "2" if own_seed == "1" else "1",
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),  # noqa: PTH109 - needs a string
    }
    done = subprocess.run(
        [sys.executable, "-c", _CHILD], input=payload, capture_output=True, env=environment, timeout=TIMEOUT_S
    )
    if done.returncode != 0 or not done.stdout:
        fail(f"a new process exited with code {done.returncode}: {done.stderr.decode(errors='replace')[-400:]}")
    kind, result = pickle.loads(done.stdout)
    if kind == "not found":
        raise NotChecked(f"another process cannot import it ({result})")
    if kind == "raised":
        fail(f"in a new process it raised {result}{_hint(result)}")
    return result


def _hint(raised: str) -> str:
    """Return a hint if a new process does not know the name of an environment, with the module that registers it."""
    unknown = re.match(r"UnknownEnvironment: environment '(\w+)'", raised)
    if not unknown:
        return ""
    module = registering_module(unknown[1])
    if module == "__main__":
        return "; expected a task in a module that a new process can import, not in the script that runs the check"
    name = f"{module or 'my_tasks'}:{unknown[1]}"
    return f"; expected a name that a new process can import, such as {name!r}"


def child() -> None:
    """Read a pickled call from stdin and write its result to stdout. What the function prints goes to stderr."""
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
