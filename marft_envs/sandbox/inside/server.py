"""Fork server: forks a confined child for each job, enforces its time limits, and reports how it ended.

It runs one job at a time. The server never reads a program, an input or an expected value: they are in descriptors that
only the child reads. Therefore nothing of one run is in the memory of the next.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import child
from .confinement import Confinement

_FIRST_FREE = 20  # the descriptors below are the child's own files
_BUSY_SHARE = 0.1
"""A program is busy if it used, or was ready to use, this share of one core during a window of wall time."""
_MAX_WALL_LIMITS = 10
"""Wall limits after which a busy program is undecided. With a tenth of a core the CPU limit ends it first."""


@dataclass(frozen=True)
class Job:
    """Limits of one run. cpu_s decides the outcome; wall_s stops a program that is idle."""

    cpu_s: float
    wall_s: float
    memory_bytes: int
    output_bytes: int


def serve(control: socket.socket, confinement: Confinement) -> None:
    """Run jobs until the other side closes the control socket."""
    gc.collect()
    gc.freeze()  # otherwise the collector writes to, and so copies, every page in every child
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 8)
        if not message:
            return
        if message != b"kill":  # a late "kill" is for a job that has ended
            report = _run(control, confinement, Job(**json.loads(message)), descriptors)
            control.send(json.dumps(report).encode())


def _run(control: socket.socket, confinement: Confinement, job: Job, descriptors: list[int]) -> dict[str, Any]:
    confinement.count_tasks()
    server = os.getpid()
    fault_reader, fault_writer = os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _run_child(control, confinement, job, descriptors, server, fault_writer)
    for descriptor in (*descriptors, fault_writer):
        os.close(descriptor)
    try:
        fault = os.read(fault_reader, 2000)  # returns when the confined child closes its end
    finally:
        os.close(fault_reader)
    end_reason = _watch(pid, job, control, started)
    _, status, usage = os.wait4(pid, 0)
    return {
        "end_reason": f"fault: {fault.decode()}" if fault else end_reason,
        "exit_code": os.waitstatus_to_exitcode(status),
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.monotonic() - started,
    }


def _run_child(
    control: socket.socket, confinement: Confinement, job: Job, descriptors: list[int], server: int, fault_writer: int
) -> None:
    """Arrange the descriptors, confine this process and run the job. Never returns."""
    try:
        signal.set_wakeup_fd(-1)
        control.close()
        spec_fd, *streams = descriptors
        spec = json.loads(_read_all(spec_fd))
        for number, descriptor in enumerate([_copy_above(fd) for fd in streams]):
            os.dup2(descriptor, number)
        fault_writer = _copy_above(fault_writer)
        needed = sorted(fd for fd in (fault_writer, confinement.ruleset) if fd is not None)
        _close_others(len(streams), needed)
        confinement.confine(server, job.cpu_s, job.memory_bytes, job.output_bytes)
    except BaseException as error:
        os.write(fault_writer, f"{type(error).__name__}: {error}".encode()[:500])
        os._exit(1)
    os.close(fault_writer)
    gc.enable()
    child.run(spec)
    os._exit(1)


def _copy_above(descriptor: int) -> int:
    """Return a copy whose number is above those of the child's own files."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)


def _close_others(first: int, needed: list[int]) -> None:
    """Close all descriptors from ``first`` on, except those of the sorted list ``needed``."""
    for descriptor in needed:
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, 1 << 16)


def _read_all(descriptor: int) -> bytes:
    """Return the contents of the file from its beginning, independent of its offset."""
    size = os.fstat(descriptor).st_size
    parts, offset = [], 0
    while offset < size:
        parts.append(os.pread(descriptor, size - offset, offset))
        offset += len(parts[-1])
    return b"".join(parts)


def _watch(pid: int, job: Job, control: socket.socket, started: float) -> str:
    """Wait until the child has ended; kill it when a limit is reached.

    Only CPU time decides, because the load of the machine must not. A program that reaches the wall limit is stopped if
    it was idle during the last window. A busy program gets further windows of half the wall limit each, and after ten
    wall limits it is undecided.

    Returns:
        "by itself", or why the child was killed: "cpu", "idle", "undecided" or "killed" (at the caller's request).
    """
    handle = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(control, select.POLLIN)
    deadline, window_start, work_before = started + job.wall_s, started, 0.0
    try:
        while True:
            cpu_s, now = _cpu_s(pid), time.monotonic()
            wait = min(job.cpu_s - cpu_s, deadline - now)
            ready = {fd for fd, _ in poll.poll(max(1.0, 1000 * wait + 1))}
            if handle in ready:
                return "by itself"
            if ready:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                control.recv(16)
                return "killed"
            cpu_s, now = _cpu_s(pid), time.monotonic()
            why = ""
            if cpu_s >= job.cpu_s:
                why = "cpu"
            elif now >= deadline:
                work = cpu_s + _waited_s(pid)
                busy = work - work_before >= _BUSY_SHARE * (now - window_start)
                if not busy:
                    why = "idle"
                elif now - started >= _MAX_WALL_LIMITS * job.wall_s:
                    why = "undecided"
                deadline, window_start, work_before = now + job.wall_s / 2, now, work
            if why:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return why
    finally:
        os.close(handle)


def _cpu_s(pid: int) -> float:
    """Return the CPU time of another process so far, 0 after its end.

    The clock id is computed from the process id as in man 2 clock_getres (CLOCK_PROCESS_CPUTIME_ID of a pid).
    """
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0


def _waited_s(pid: int) -> float:
    """Return how long its threads were ready to run but had no core; 0 if the kernel does not count it."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((thread / "schedstat").read_text().split()[1]) for thread in threads) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
