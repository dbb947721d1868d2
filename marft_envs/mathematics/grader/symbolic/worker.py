"""The worker: run as ``python -I worker.py``, it imports everything once, locks itself, and forks a child that
compares.

One JSON object a line. First in: {"paths": [...]}; first out: {"ready", "missing", "lock"}. Then each request
{"op", "answer", "gold", "limit_s"} gets one {"status", "result", "phase"}. status: "ok", "timeout", "starved" (a
time-out on a machine too busy to give the child the CPU), "memory" or "died";
phase: "gold" while only the gold was looked at, else "answer". The child that ran out of time is killed and replaced: a
fork of a process that has everything imported takes milliseconds.
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
"""Of the limit, in CPU time: of a child that had less nothing is said when its time is up. The load must not decide."""
INSIDE = Path(__file__).resolve().parents[3] / "sandbox" / "inside"
PACKAGES = ("math_verify", "latex2sympy2_extended", "sympy", "mpmath", "antlr4", "gmpy2")
_NO_NEW_PRIVILEGES, _PARENT_DEATH_SIGNAL = 38, 1
_NEW_USER_SPACE, _NEW_NETWORK = 0x10000000, 0x40000000


def main() -> None:
    """Serve requests from standard input until it ends or the parent is gone."""
    parent = os.getppid()
    requests = Lines(0)
    first = requests.read(parent)
    if first is None:
        return
    sys.path += [path for path in first["paths"] if path not in sys.path]
    compare, missing = load_compare()
    lock, held = make_lock()
    write(1, {"ready": not missing, "missing": missing, "lock": held})
    child = Child(compare, lock)
    while (request := requests.read(parent)) is not None:
        reply = child.ask(request)
        if reply["status"] != "ok" or child.served >= REQUESTS_PER_CHILD:
            child.kill()
            child = Child(compare, lock)
        write(1, reply)
    child.kill()


def load_compare() -> tuple[ModuleType | None, str]:
    """(compare.py, "") or (None, the module that it could not import)."""
    folder = Path(__file__).resolve().parent
    try:
        load("marft_tree_value", folder.parent / "tree_value.py")
        return load("marft_compare", folder / "compare.py"), ""
    except ImportError as error:
        return None, error.name or str(error)


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def make_lock() -> tuple[Any, str]:
    """(the sandbox's lock for children, what holds): Landlock, the filter of system calls and limits, as for programs.

    None where this machine has no such lock: then the worker gives up what it can, here, and children are limited.
    """
    lock = None
    with contextlib.suppress(OSError, ImportError):
        lock = sandbox_lock()
    for limit, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, 32)):
        resource.setrlimit(limit, (value, value))
    if lock is not None:
        return lock, "landlock"
    held = "rlimits"
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        if libc.unshare(_NEW_NETWORK) == 0 or libc.unshare(_NEW_USER_SPACE | _NEW_NETWORK) == 0:
            held += ", no network"
    return None, held


def sandbox_lock() -> Any:
    """The lock of ``marft_envs.sandbox``: children may read the standard library and the packages loaded here, as those
    import parts of themselves late. OSError where it does not hold."""
    start = load("marft_start", INSIDE / "start.py")
    inside = start.load_package()
    readable = inside["readable_paths"].find(None)
    packages = tuple({Path(found) for name in PACKAGES for found in getattr(sys.modules.get(name), "__path__", ())})
    readable = dataclasses.replace(readable, trees=(*readable.trees, *packages))
    ruleset = start.make_ruleset(inside, readable)
    return inside["confinement"].Confinement.prepare(ruleset, [readable.stdlib, *packages])


class Child:
    """A forked process that answers requests; ``ask`` gives it so long and no longer."""

    def __init__(self, compare: ModuleType | None, lock: Any) -> None:
        child_in, self.write_to = os.pipe()
        self.read_from, child_out = os.pipe()
        self.served = 0
        worker = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            for unused in (0, 1, self.write_to, self.read_from):
                os.close(unused)
            try:
                close(lock, worker)
                serve(compare, child_in, child_out, worker)
            finally:
                os._exit(1)
        os.close(child_in)
        os.close(child_out)
        self.lines = Lines(self.read_from)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The child's reply, or what became of the child."""
        self.served += 1
        limit_s = float(request["limit_s"])
        deadline, used = time.monotonic() + limit_s, cpu_s(self.pid)
        phase = "gold"
        try:
            write(self.write_to, request)
        except BrokenPipeError:
            return {"status": "died", "phase": phase}
        while True:
            reply = self.lines.read_until(deadline)
            if reply is None:
                if self.lines.ended:
                    return {"status": "died", "phase": phase}
                starved = cpu_s(self.pid) - used < FAIR_SHARE * limit_s  # never where the clock is unknown
                return {"status": "starved" if starved else "timeout", "phase": phase}
            if "status" in reply:
                return {**reply, "phase": phase}
            phase = reply["phase"]

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.write_to)
        os.close(self.read_from)


def cpu_s(pid: int) -> float:
    """The CPU time of a child so far (man 2 clock_getres: CLOCK_PROCESS_CPUTIME_ID of a pid), else infinite."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except (OSError, AttributeError):
        return float("inf")


def close(lock: Any, worker: int) -> None:
    """The child's own limits, for good, and the lock where there is one."""
    if lock is not None:
        # the time of one comparison is the worker's to watch
        lock.confine(worker, REQUESTS_PER_CHILD * CPU_SECONDS, MEMORY_BYTES - lock.base_bytes, 0)
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def serve(compare: ModuleType | None, source: int, target: int, worker: int) -> None:
    """The child's loop."""
    lines = Lines(source)
    while (request := lines.read(worker)) is not None:
        try:
            result = None
            if compare is not None:
                result = compare.run(request, lambda: write(target, {"phase": "answer"}))
            reply = {"status": "ok", "result": result}
        except MemoryError:
            reply = {"status": "memory"}
        except RecursionError:
            reply = {"status": "ok", "result": None}
        write(target, reply)


class Lines:
    """JSON objects, one a line, from a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.buffer = b""
        self.ended = False

    def read(self, parent: int) -> dict[str, Any] | None:
        """The next object; None at the end, and when ``parent`` is no longer this process's parent."""
        while os.getppid() == parent:
            found = self.read_until(time.monotonic() + 1.0)
            if found is not None or self.ended:
                return found
        return None

    def read_until(self, deadline: float) -> dict[str, Any] | None:
        """The next object; None when the time is up or, with ``ended`` set, at the end."""
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
        found: dict[str, Any] = json.loads(line)
        return found


def write(descriptor: int, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    main()
