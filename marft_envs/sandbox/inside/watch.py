"""Limits of a running child: CPU time, idle time, resident memory and threads."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from .confinement import MAX_THREADS

_SAMPLE_S = 0.02
_BUSY_SHARE = 0.1
"""A program is busy if it used, or was kept from using, this share of one core during a window of wall time."""
_MAX_WALL_LIMITS = 10
"""Wall limits after which a busy program is undecided. With a tenth of a core the CPU limit ends it first."""
_PAGE = resource.getpagesize()
_THREADS, _RESIDENT = 17, 21  # fields of /proc/PID/stat after the name, from 0


@dataclass(frozen=True)
class Job:
    """Limits of one run. cpu_s decides the outcome; wall_s stops a program that is idle.

    A process that waits for another one is idle as long as the other works. ``patience`` is the number of wall limits
    for which it may be.
    """

    cpu_s: float
    wall_s: float
    memory_bytes: int
    output_bytes: int
    patience: float = 1.0


class Watch:
    """Observation of one child by its parent.

    Args:
        pid: Process id of the child.
        job: Its limits.
        started: Start of the run, in seconds of the monotonic clock.
        base_resident: Resident memory that the child has from its parent, in bytes.
    """

    def __init__(self, pid: int, job: Job, started: float, base_resident: int) -> None:
        self._pid, self._job, self._started, self._base = pid, job, started, base_resident
        self._deadline = started + job.patience * job.wall_s
        self._window_start, self._work_before = started, 0.0

    def until_end(self, control: socket.socket, caller: int) -> str:
        """Wait until the child has ended; kill it when a limit is reached.

        Only CPU time decides, because the load of the machine must not. A program that reaches the wall limit is
        stopped if it was idle during the last window. A busy program gets further windows of half the wall limit each,
        and after ten wall limits it is undecided.

        Args:
            control: Socket to the caller, on which a message or its end means to kill the child.
            caller: Descriptor of the caller's process, whose end means the same.

        Returns:
            "by itself", or why the child was killed: "cpu", "idle", "undecided", "memory", "threads" or "killed" (at
            the caller's request).
        """
        handle = os.pidfd_open(self._pid)
        poll = select.poll()
        for descriptor in (handle, control, caller):
            poll.register(descriptor, select.POLLIN)
        try:
            while True:
                left_s = min(self._job.cpu_s - cpu_s(self._pid), self._deadline - time.monotonic(), _SAMPLE_S)
                ready = {descriptor for descriptor, _ in poll.poll(max(1.0, 1000 * left_s + 1))}
                if handle in ready:
                    return "by itself"
                why = "killed" if ready else self._exceeded()
                if why:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    if control.fileno() in ready:
                        control.recv(16)
                    return why
        finally:
            os.close(handle)

    def is_too_large(self, resident_bytes: int) -> bool:
        """Return whether that much resident memory is more than the limit."""
        return resident_bytes - self._base > self._job.memory_bytes

    def _exceeded(self) -> str:
        """Return the name of the limit that the child has reached, an empty string if it has reached none."""
        used_s, now = cpu_s(self._pid), time.monotonic()
        if used_s >= self._job.cpu_s:
            return "cpu"
        threads, resident = _size(self._pid)
        if self.is_too_large(resident):
            return "memory"
        if threads > MAX_THREADS:
            return "threads"
        return self._idle_or_undecided(used_s, now) if now >= self._deadline else ""

    def _idle_or_undecided(self, used_s: float, now: float) -> str:
        work = used_s + _kept_waiting_s(self._pid)
        busy = work - self._work_before >= _BUSY_SHARE * (now - self._window_start)
        self._deadline, self._window_start, self._work_before = now + self._job.wall_s / 2, now, work
        if not busy:
            return "idle"
        return "undecided" if now - self._started >= _MAX_WALL_LIMITS * self._job.wall_s else ""


def cpu_s(pid: int) -> float:
    """Return the CPU time of another process so far, 0 after its end.

    The clock id is computed from the process id as in man 2 clock_getres (CLOCK_PROCESS_CPUTIME_ID of a pid).
    """
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0


def _size(pid: int) -> tuple[int, int]:
    """Return (number of threads, resident memory in bytes) of a process; zeros after its end."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0
    return int(fields[_THREADS]), int(fields[_RESIDENT]) * _PAGE


def _kept_waiting_s(pid: int) -> float:
    """Return how long other processes have kept a thread of the process from running, for the thread kept longest.

    A thread that was ready to run has waited for a core. This is not the doing of other processes where

    * it had given up the core itself, for example to sleep: only the share of involuntary switches counts;
    * another thread of the process had the core: their CPU time is subtracted.

    Without this, threads that sleep and wake at the same moment would look like a program that a busy host holds up.
    Returns 0 if the kernel does not count these times.
    """
    rows = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            ran_ns, waited_ns = map(int, (thread / "schedstat").read_text().split()[:2])
            *_, voluntary, involuntary = (int(line.split()[-1]) for line in _last_lines(thread / "status"))
            rows.append((ran_ns, waited_ns * involuntary / max(1, voluntary + involuntary)))
    except (OSError, ValueError, IndexError):
        pass  # a thread has ended
    all_ran_ns = sum(ran_ns for ran_ns, _ in rows)
    return max((waited_ns - (all_ran_ns - ran_ns) for ran_ns, waited_ns in rows), default=0.0) / 1e9


def _last_lines(path: Path) -> list[str]:
    """Return the two last lines: the numbers of voluntary and of involuntary switches."""
    return [line for line in path.read_text().splitlines() if "ctxt_switches" in line]
