"""The fork server: waits for a job, forks a child that locks itself, watches its time, reports how it ended.

One job at a time. The server never sees a program, an input or an expected value: they are in descriptors that only the
child reads. So nothing of one run is in the memory of the next.
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
from .lock import Lock

_SPARE = 20  # descriptors below are the child's own
_BUSY_SHARE = 0.1
"""Of a window of wall time: a program that used, or waited in vain for, this much of a core is at work."""
_MOST_WALL = 10
"""How often the wall limit passes before a program at work stays undecided; the CPU limit comes first at 1/10 core."""


@dataclass(frozen=True)
class Job:
    """limits of one run. cpu_s decides; wall_s is the backstop."""

    cpu_s: float
    wall_s: float
    memory_bytes: int
    output_bytes: int


def serve(control: socket.socket, lock: Lock) -> None:
    """Run jobs until the trainer goes."""
    gc.collect()
    gc.freeze()  # the collector would touch, and so copy, every page in every child
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 8)
        if not message:
            return
        if message != b"kill":  # a late one, for a job that has ended
            answer = _run(control, lock, Job(**json.loads(message)), descriptors)
            control.send(json.dumps(answer).encode())


def _run(control: socket.socket, lock: Lock, job: Job, descriptors: list[int]) -> dict[str, Any]:
    lock.count_tasks()
    server = os.getpid()
    told, tell = os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _be_child(control, lock, job, descriptors, server, tell)
    for descriptor in (*descriptors, tell):
        os.close(descriptor)
    try:
        fault = os.read(told, 2000)  # ends when the child is locked, which closes its side
    finally:
        os.close(told)
    ended = _watch(pid, job, control, started)
    _, status, usage = os.wait4(pid, 0)
    return {
        "ended": f"fault: {fault.decode()}" if fault else ended,
        "status": os.waitstatus_to_exitcode(status),
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.monotonic() - started,
    }


def _be_child(control: socket.socket, lock: Lock, job: Job, descriptors: list[int], server: int, tell: int) -> None:
    """Arrange the descriptors, lock, run; never returns."""
    try:
        signal.set_wakeup_fd(-1)
        control.close()
        spec_fd, *streams = descriptors
        spec = json.loads(_read_all(spec_fd))
        for number, descriptor in enumerate([_lifted(fd) for fd in streams]):
            os.dup2(descriptor, number)
        tell = _lifted(tell)
        kept = sorted(fd for fd in (tell, lock.ruleset) if fd is not None)
        _close_others(len(streams), kept)
        lock.close_on(server, job.cpu_s, job.memory_bytes, job.output_bytes)
    except BaseException as error:
        os.write(tell, f"{type(error).__name__}: {error}".encode()[:500])
        os._exit(1)
    os.close(tell)
    gc.enable()
    child.run(spec)
    os._exit(1)


def _lifted(descriptor: int) -> int:
    """A copy above all numbers that will be filled."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _SPARE)


def _close_others(first: int, kept: list[int]) -> None:
    for descriptor in kept:
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, 1 << 16)


def _read_all(descriptor: int) -> bytes:
    """From its beginning, whatever its offset."""
    size = os.fstat(descriptor).st_size
    parts, at = [], 0
    while at < size:
        parts.append(os.pread(descriptor, size - at, at))
        at += len(parts[-1])
    return b"".join(parts)


def _watch(pid: int, job: Job, control: socket.socket, started: float) -> str:
    """Wait for the child's end: "by itself", or why it was killed."""
    handle = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(control, select.POLLIN)
    deadline, window_start, at_work = started + job.wall_s, started, 0.0
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
                busy = work - at_work >= _BUSY_SHARE * (now - window_start)
                if not busy:
                    why = "idle"
                elif now - started >= _MOST_WALL * job.wall_s:
                    why = "undecided"
                deadline, window_start, at_work = now + job.wall_s / 2, now, work
            if why:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return why
    finally:
        os.close(handle)


def _cpu_s(pid: int) -> float:
    """The CPU time of another process so far, by its clock (man 2 clock_getres: CLOCK_PROCESS_CPUTIME_ID of a pid)."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0  # it has ended


def _waited_s(pid: int) -> float:
    """How long its threads were ready to run and had no core; 0 where the kernel does not count."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((thread / "schedstat").read_text().split()[1]) for thread in threads) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
