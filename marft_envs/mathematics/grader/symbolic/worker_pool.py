"""The pool of symbolic workers, shared by all threads and environments of a process.

A worker starts when it is first needed and ends with the process. A forked child starts workers of its own. The pool
uses no signal handlers and no event loop, and works in any thread. The time of a comparison does not include waiting
for a free worker.
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

from marft_envs.mathematics.grader.sample_points import Point
from marft_envs.mathematics.grader.tree_value import Node

LIMIT_S = 2.0
START_LIMIT_S = 180.0
GRACE_S = 1.0  # a worker that has not replied this long after the limit has failed
_SCRIPT = Path(__file__).with_name("worker.py")


class WorkerFault(RuntimeError):
    """The symbolic layer failed, and the comparison could not be made; the message names the reason."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome of one comparison.

    Attributes:
        result: Whether the two are equal; None if that could not be decided.
        status: "ok", "timeout", "memory" (a limit was exceeded), or "starved" (a time-out in which the child got so
            little CPU time that it is no evidence against the answer).
        phase: "gold" if the comparison ended before the gold was evaluated, else "answer".
        seconds: The wall time of the comparison.
        isolation: The confinement of the worker's child.
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
            raise WorkerFault("sys.executable is empty, so no symbolic worker can be started")
        # The folder is deleted below, while the worker keeps it as its working directory: no file can be created there.
        with tempfile.TemporaryDirectory(prefix="marft-") as working_directory:
            self.process = subprocess.Popen(
                [sys.executable, "-I", str(_SCRIPT)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                cwd=working_directory, env={"OMP_NUM_THREADS": "1"}, start_new_session=True, bufsize=0,
            )  # fmt: skip
            self.buffer = b""
            try:
                self._send({"paths": [path for path in sys.path if path and Path(path).is_absolute()]})
                greeting = self._receive(START_LIMIT_S)
            except BaseException:
                self.close()
                raise
        self.missing = str(greeting["missing"])
        self.isolation = str(greeting["isolation"])

    def request(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the reply; raise WorkerFault if the worker fails."""
        self._send(message)
        return self._receive(message["limit_s"] + GRACE_S)

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            data = json.dumps(message).encode() + b"\n"
            while data:
                data = data[self.process.stdin.write(data) or 0 :]
        except OSError as error:
            raise WorkerFault(f"the symbolic worker has ended ({error})") from error

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
                raise WorkerFault("the symbolic worker ended unexpectedly")
            self.buffer += block
        line, _, self.buffer = self.buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """Kill the worker's process group and wait for it.

        The child is in a session of its own, and ends through its parent-death signal.
        """
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.close_pipes()

    def close_pipes(self) -> None:
        """Close this process's ends of the pipes."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def disown(self) -> None:
        """Release a worker that belongs to the parent, in a forked child."""
        self.process.returncode = 0  # Popen then neither waits for the worker nor warns that it still runs
        self.close_pipes()


class WorkerPool:
    """A pool of symbolic workers, usable from any thread. ``close``, or the end of a ``with`` block, stops them.

    Args:
        workers: The largest number of workers; None for one per CPU core, at most eight.
        limit_s: The default wall-time limit of a comparison, in seconds.
    """

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

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warm_up(self) -> str:
        """Start a worker now, so that the first comparison need not wait for it.

        Returns:
            The confinement of the worker's child, such as "landlock".

        Raises:
            WorkerFault: No worker can be started.
        """
        with self._borrowed() as worker:
            return worker.isolation

    def compare_trees(
        self, answer: Node, gold: Node, points: list[Point], digits: int, limit_s: float | None = None
    ) -> Comparison:
        """Compare two expression trees by their values; see ``compare`` for the outcome and the errors.

        Args:
            answer: The tree of the answer.
            gold: The tree of the gold.
            points: The points at which they are compared; one empty point if there are no symbols.
            digits: The number of digits to which they must agree.
            limit_s: The wall-time limit in seconds; None for the pool's.
        """
        request = {"op": "trees", "answer": _to_json(answer), "gold": _to_json(gold), "digits": digits}
        return self.compare(
            {**request, "points": [{name: str(value) for name, value in point.items()} for point in points]}, limit_s
        )

    def compare_latex(self, answer: str, gold: str, limit_s: float | None = None) -> Comparison:
        """Compare two normalized LaTeX strings; see ``compare`` for the outcome and the errors."""
        return self.compare({"op": "latex", "answer": answer, "gold": gold}, limit_s)

    def compare(self, request: dict[str, Any], limit_s: float | None = None) -> Comparison:
        """Make one comparison; if the worker's child dies, try once more.

        Args:
            request: The request without its time limit, see ``worker.py``.
            limit_s: The wall-time limit in seconds; None for the pool's.

        Returns:
            The outcome.

        Raises:
            WorkerFault: The worker failed, or the child died twice.
        """
        request = {**request, "limit_s": self.limit_s if limit_s is None else limit_s}
        for attempt in (1, 2):
            with self._borrowed() as worker:
                started = time.monotonic()
                reply = worker.request(request)
                isolation = worker.isolation
            if reply["status"] != "died":
                seconds = time.monotonic() - started
                return Comparison(reply.get("result"), reply["status"], reply["phase"], seconds, isolation)
            if attempt == 2:
                raise WorkerFault("the symbolic worker's child died twice on one comparison")
        raise AssertionError

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[_Worker]:
        """Lend a worker to the calling thread. After an exception its state is unknown, so it is stopped."""
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
        """Return an idle worker, or start one; the lock is not held during the start, which takes seconds."""
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
            raise WorkerFault(f"symbolic comparison needs {worker.missing}: pip install '.[math]' in the repository")
        with self._lock:
            self._all.append(worker)
        return worker

    def _discard(self, worker: _Worker) -> None:
        with self._lock:
            if worker in self._all:
                self._all.remove(worker)
        worker.close()

    def close(self) -> None:
        """Stop all workers. Further calls have no effect."""
        with self._lock:
            workers, self._all, self._idle, self._closed = self._all, [], [], True
        for worker in workers:
            worker.close()

    def forget(self) -> None:
        """Release the parent's workers in a forked child, and start without workers."""
        for worker in self._all:
            worker.disown()
        self._reset()


def _to_json(value: Any) -> Any:
    """Return a tree as JSON data: tuples become lists, and numbers become strings."""
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    return str(value) if isinstance(value, (Fraction, int)) else value


_SHARED = WorkerPool()
atexit.register(_SHARED.close)
os.register_at_fork(after_in_child=_SHARED.forget)


def shared_pool() -> WorkerPool:
    """Return the pool that all comparisons of this process use."""
    return _SHARED
