"""The workers of this process, shared by all its threads and environments.

Workers start when first needed and end with the process. After a fork the child has none and starts its own. Nothing
here uses ``signal``, the main thread or an event loop. Waiting for a free worker is not part of a comparison's time.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

LIMIT_S = 2.0
START_LIMIT_S = 180.0
GRACE_S = 1.0  # beyond the limit, after which the worker itself is taken for dead
_SCRIPT = Path(__file__).with_name("worker.py")


class WorkerFault(RuntimeError):
    """The symbolic layer could not do its work; the message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """result: equal, different, or None: cannot tell. phase: "gold" or "answer".

    status: "ok", "timeout", "memory", or "starved": the time was up, and little of it was CPU time.
    """

    result: bool | None
    status: str
    phase: str
    seconds: float
    isolation: str


class _Worker:
    """One worker process and its pipes."""

    def __init__(self) -> None:
        if not sys.executable:
            raise WorkerFault("sys.executable is empty: no interpreter to start a symbolic worker with")
        with tempfile.TemporaryDirectory(prefix="marft-") as nowhere:
            self.process = subprocess.Popen(
                [sys.executable, "-I", str(_SCRIPT)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                cwd=nowhere, env={"OMP_NUM_THREADS": "1"}, start_new_session=True, bufsize=0,
            )  # fmt: skip
            self.buffer = b""
            try:
                self._send({"paths": [path for path in sys.path if path and Path(path).is_absolute()]})
                hello = self._receive(START_LIMIT_S)
            except BaseException:
                self.close()
                raise
        self.missing = str(hello["missing"])
        self.isolation = str(hello["lock"])

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._send(request)
        return self._receive(request["limit_s"] + GRACE_S)

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            data = json.dumps(message).encode() + b"\n"
            while data:
                data = data[self.process.stdin.write(data) or 0 :]
        except OSError as error:
            raise WorkerFault(f"the symbolic worker is gone ({error})") from error

    def _receive(self, limit_s: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        poll = select.poll()
        poll.register(self.process.stdout, select.POLLIN | select.POLLHUP)
        deadline = time.monotonic() + limit_s
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                raise WorkerFault(f"the symbolic worker did not answer within {limit_s:.0f} s")
            block = self.process.stdout.read(65536)
            if not block:
                raise WorkerFault("the symbolic worker ended by itself")
            self.buffer += block
        line, _, self.buffer = self.buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """Kill the worker's process group, and wait for it. Its child, a session of its own, ends with it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.drop()

    def drop(self) -> None:
        """Close this process's ends of the pipes."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def disown(self) -> None:
        """In a forked child: the worker is the parent's."""
        self.process.returncode = 0
        self.drop()


class Symbolic:
    """A pool of at most ``workers`` workers. ``with`` or ``close()`` ends them."""

    def __init__(self, workers: int | None = None, limit_s: float = LIMIT_S) -> None:
        self.size = workers or max(1, min(8, (os.cpu_count() or 1)))
        self.limit_s = limit_s
        self._reset()

    def _reset(self) -> None:
        self._all: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._free = threading.Semaphore(self.size)
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Symbolic:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warm_up(self) -> str:
        """Start a worker now instead of with the first comparison; says what is locked. WorkerFault where it cannot."""
        with self._borrowed() as worker:
            return worker.isolation

    def ask(self, op: str, answer: Any, gold: Any, limit_s: float | None = None) -> Answer:
        """One comparison, op "trees" or "texts"; made twice where a child died. WorkerFault where it cannot be."""
        limit = self.limit_s if limit_s is None else limit_s
        request = {"op": op, "answer": _plain(answer), "gold": _plain(gold), "limit_s": limit}
        for attempt in (1, 2):
            with self._borrowed() as worker:
                started = time.monotonic()
                reply = worker.ask(request)
                isolation = worker.isolation
            if reply["status"] != "died":
                seconds = time.monotonic() - started
                return Answer(reply.get("result"), reply["status"], reply["phase"], seconds, isolation)
            if attempt == 2:
                raise WorkerFault("the symbolic worker's child died twice on one comparison")
        raise AssertionError

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[_Worker]:
        """A worker for this thread alone; it goes back unless something went wrong with it."""
        self._free.acquire()
        try:
            worker = self._take()
            try:
                yield worker
            except BaseException:
                self._discard(worker)
                raise
            with self._lock:
                self._idle.append(worker)
        finally:
            self._free.release()

    def _take(self) -> _Worker:
        with self._lock:
            if self._closed:
                raise WorkerFault("the pool of symbolic workers is closed")
            if self._idle:
                return self._idle.pop()
        try:
            worker = _Worker()
        except OSError as error:
            raise WorkerFault(f"a symbolic worker cannot be started ({error})") from error
        if worker.missing:
            worker.close()
            raise WorkerFault(f"symbolic comparison needs {worker.missing}: pip install marft-envs[math]")
        with self._lock:
            self._all.append(worker)
        return worker

    def _discard(self, worker: _Worker) -> None:
        with self._lock:
            if worker in self._all:
                self._all.remove(worker)
        worker.close()

    def close(self) -> None:
        """End all workers; safe to call again."""
        with self._lock:
            workers, self._all, self._idle, self._closed = self._all, [], [], True
        for worker in workers:
            worker.close()

    def forget(self) -> None:
        """In a forked child: leave the parent's workers alone and begin without any."""
        for worker in self._all:
            worker.disown()
        self._reset()


def _plain(value: Any) -> Any:
    """A tree as JSON: lists, fractions as text."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, (Fraction, int)) else value


_SHARED = Symbolic()
atexit.register(_SHARED.close)
os.register_at_fork(after_in_child=_SHARED.forget)


def shared_pool() -> Symbolic:
    """The pool of this process."""
    return _SHARED
