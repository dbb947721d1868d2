"""The symbolic worker, a script that the pool runs as ``python -I worker.py``.

It imports math-verify and its dependencies once, prepares the confinement, and forks a child that makes the
comparisons. A child that exceeds its time is killed and replaced, which takes milliseconds, because a fork inherits the
imported modules.

Messages on standard input and output are JSON objects, one per line:

| message | fields |
|---|---|
| first input | paths: the entries of sys.path |
| first output | ready; missing: the module that could not be imported; isolation: the confinement of the child |
| request | op: "trees" or "latex"; answer; gold; limit_s; for trees also points and digits |
| reply | status; result; phase |

status: "ok", "timeout", "starved" (a time-out in which the child got little CPU time), "memory", "crashed" (its own
instructions have ended the child, for example by a stack overflow) or "died" (of another cause). phase: "gold" until
the gold has been evaluated, then "answer".
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

MEMORY_BYTES = 2**30
CPU_SECONDS = 4
REQUESTS_PER_CHILD = 500
FAIR_SHARE = 0.15
"""The share of the time limit that a child must have had as CPU time for its time-out to count as "timeout".

With less, the load of the machine, not the answer, may have caused the time-out, and the status is "starved".
"""
INSIDE = Path(__file__).resolve().parents[3] / "sandbox" / "inside"
PACKAGES = ("math_verify", "latex2sympy2_extended", "sympy", "mpmath", "antlr4", "gmpy2")
_NO_NEW_PRIVILEGES, _PARENT_DEATH_SIGNAL = 38, 1
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
_NEW_USER_SPACE, _NEW_NETWORK = 0x10000000, 0x40000000


def main() -> None:
    """Serve requests from standard input until it is closed or the parent has ended."""
    parent = os.getppid()
    requests = Lines(0)
    first = requests.read(parent)
    if first is None:
        return
    sys.path += [path for path in first["paths"] if path not in sys.path]
    child_process, missing = load_child_process()
    confinement, isolation = prepare_confinement()
    write(1, {"ready": not missing, "missing": missing, "isolation": isolation})
    child = Child(child_process, confinement)
    while (request := requests.read(parent)) is not None:
        reply = child.ask(request)
        if reply["status"] != "ok" or child.served >= REQUESTS_PER_CHILD:
            # A new child after every failure, since its memory may be exhausted, and from time to time, since
            # SymPy's caches grow and RLIMIT_CPU counts the whole life of a process.
            child.kill()
            child = Child(child_process, confinement)
        write(1, reply)
    child.kill()


def load_child_process() -> tuple[ModuleType | None, str]:
    """Return (the module child_process.py, "") or (None, the name of the module that it could not import)."""
    folder = Path(__file__).resolve().parent
    try:
        load("marft_tree_value", folder.parent / "tree_value.py")
        return load("marft_child_process", folder / "child_process.py"), ""
    except ImportError as error:
        return None, error.name or str(error)


def load(name: str, path: Path) -> ModuleType:
    """Import a file by its path, under a name that does not import the package ``marft_envs`` with it."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def prepare_confinement() -> tuple[Any, str]:
    """Return (the sandbox's ``Confinement`` for children, "landlock"), or (None, "rlimits ...") without Landlock.

    In the second case the worker itself gives up its privileges and its network, if that is allowed.
    """
    confinement = None
    with contextlib.suppress(OSError, ImportError):
        confinement = sandbox_confinement()
    for limit, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, 32)):
        resource.setrlimit(limit, (value, value))
    if confinement is not None:
        return confinement, "landlock"
    isolation = "rlimits"
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        if libc.unshare(_NEW_NETWORK) == 0 or libc.unshare(_NEW_USER_SPACE | _NEW_NETWORK) == 0:
            isolation += ", no network"
    return None, isolation


def sandbox_confinement() -> Any:
    """Return the confinement of ``marft_envs.sandbox``; raise OSError if the machine does not support it.

    Children can read the standard library and PACKAGES, which import some of their modules only when they are used.
    """
    start = load("marft_start", INSIDE / "start.py")
    inside = start.load_package()
    readable = inside["readable_paths"].find(None)
    packages = tuple({Path(found) for name in PACKAGES for found in getattr(sys.modules.get(name), "__path__", ())})
    readable = dataclasses.replace(readable, trees=(*readable.trees, *packages))
    ruleset = start.make_ruleset(inside, readable)
    return inside["confinement"].Confinement.prepare(ruleset, [readable.stdlib, *packages])


class Child:
    """A forked process that makes comparisons, each within a time limit."""

    def __init__(self, child_process: ModuleType | None, confinement: Any) -> None:
        child_in, self.write_to = os.pipe()
        self.read_from, child_out = os.pipe()
        self.served = 0
        worker = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            # Without the worker's ends, the child notices when the worker closes them, and cannot write to the pool.
            for unused in (0, 1, self.write_to, self.read_from):
                os.close(unused)
            try:
                confine(confinement, worker)
                serve(child_process, child_in, child_out, worker)
            finally:
                os._exit(1)  # never return into the worker's loop
        os.close(child_in)
        os.close(child_out)
        self.lines = Lines(self.read_from)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the child's reply, or a reply whose status describes how the child failed."""
        self.served += 1
        limit_s = float(request["limit_s"])
        deadline, cpu_before = time.monotonic() + limit_s, cpu_s(self.pid)
        phase = "gold"
        try:
            write(self.write_to, request)
        except BrokenPipeError:
            return {"status": "died", "phase": phase}
        while True:
            reply = self.lines.read_until(deadline)
            if reply is None:
                if self.lines.ended:
                    return {"status": "crashed" if self.ended_by_itself() else "died", "phase": phase}
                # Without a CPU clock cpu_s is infinite, the difference is NaN, and no time-out counts as "starved".
                starved = cpu_s(self.pid) - cpu_before < FAIR_SHARE * limit_s
                return {"status": "starved" if starved else "timeout", "phase": phase}
            if "status" in reply:
                return {**reply, "phase": phase}
            phase = reply["phase"]

    def ended_by_itself(self) -> bool:
        """Return whether a signal that a process's own instructions cause has ended the child, whose pipe is closed."""
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if ended is not None:
                return ended.si_code in (os.CLD_KILLED, os.CLD_DUMPED) and ended.si_status in _CRASHES
            time.sleep(0.001)
        return False

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.write_to)
        os.close(self.read_from)


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process in seconds, or infinity if the kernel does not report it."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # the clock id of a pid, see MAKE_PROCESS_CPUCLOCK in Linux
    except (OSError, AttributeError):
        return float("inf")


def confine(confinement: Any, worker: int) -> None:
    """Confine the calling child permanently: with the sandbox's confinement, or with resource limits alone."""
    if confinement is not None:
        # RLIMIT_CPU covers all comparisons of the child; the worker enforces the time limit of each one.
        confinement.confine(worker, REQUESTS_PER_CHILD * CPU_SECONDS, MEMORY_BYTES - confinement.base_bytes, 0)
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def serve(child_process: ModuleType | None, source: int, target: int, worker: int) -> None:
    """Make comparisons until the worker has ended; report MemoryError as a status.

    SymPy raises exceptions of many kinds where it cannot decide.
    """
    lines = Lines(source)
    while (request := lines.read(worker)) is not None:
        try:
            result = None
            if child_process is not None:
                result = child_process.run(request, lambda: write(target, {"phase": "answer"}))
            reply = {"status": "ok", "result": result}
        except MemoryError:
            reply = {"status": "memory"}
        except Exception:
            reply = {"status": "ok", "result": None}
        write(target, reply)


class Lines:
    """A reader of JSON objects, one per line, from a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.buffer = b""
        self.ended = False

    def read(self, parent: int) -> dict[str, Any] | None:
        """Return the next object; None at the end of the stream or when ``parent`` has ended.

        The parent is checked every second, because another process may hold the other end of the pipe open.
        """
        while os.getppid() == parent:
            message = self.read_until(time.monotonic() + 1.0)
            if message is not None or self.ended:
                return message
        return None

    def read_until(self, deadline: float) -> dict[str, Any] | None:
        """Return the next object; None at the deadline, or at the end of the stream, where ``ended`` is set."""
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.descriptor], [], [], left)[0]:
                return None
            block = os.read(self.descriptor, 65536)
            if not block:
                self.ended = True
                return None
            self.buffer += block
        line, _, self.buffer = self.buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message


def write(descriptor: int, message: dict[str, Any]) -> None:
    """Write a JSON object and a newline; a pipe may accept only a part at a time."""
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    main()
