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
from pathlib import Path
from typing import Any

from . import child, process_end
from .confinement import Confinement
from .temporary_files import empty
from .watch import Job, Watch

_FIRST_FREE = 20  # the descriptors below are the child's own files
_ROOM = 512 << 20
"""Address space beyond the memory limit, for the stacks of 64 threads, of which most is never resident."""


def serve(control: socket.socket, caller: int, confinement: Confinement, scratch: Path | None) -> None:
    """Run jobs until the other side closes the control socket, or the caller's process has ended.

    Args:
        control: Socket to the caller.
        caller: Descriptor (pidfd) of the caller's process. A copy of that process may hold the other end of the socket.
        confinement: Restrictions of the children.
        scratch: Folder in which programs may write, emptied after each run; None if there is none.
    """
    process_end.prepare()
    gc.collect()
    gc.freeze()  # otherwise the collector writes to, and so copies, every page in every child
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(caller, select.POLLIN)
    while caller not in {descriptor for descriptor, _ in poll.poll()}:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 8)
        if not message:
            return
        if message != b"kill":  # a late "kill" is for a job that has ended
            report = _run(control, caller, confinement, Job(**json.loads(message)), descriptors)
            if scratch is not None:
                empty(scratch)
            control.send(json.dumps(report).encode())


def _run(
    control: socket.socket, caller: int, confinement: Confinement, job: Job, descriptors: list[int]
) -> dict[str, Any]:
    cgroup = confinement.cgroup
    if cgroup is not None:
        cgroup.set_limit(confinement.base_resident + job.memory_bytes, job.output_bytes)
    confinement.count_tasks()
    server = os.getpid()
    fault_reader, fault_writer = os.pipe()
    started = time.monotonic()
    pid = os.fork() if cgroup is None else cgroup.fork()
    if pid == 0:
        _run_child(control, confinement, job, descriptors, server, fault_writer)
    for descriptor in (*descriptors, fault_writer):
        os.close(descriptor)
    try:
        fault = os.read(fault_reader, 2000)  # returns when the confined child closes its end
    finally:
        os.close(fault_reader)
    watch = Watch(pid, job, started, confinement.base_resident)
    end_reason = watch.until_end(control, caller)
    _, status, usage = os.wait4(pid, 0)
    exit_code = os.waitstatus_to_exitcode(status)
    exhausted = cgroup is not None and exit_code == -signal.SIGKILL and cgroup.was_exhausted()
    if end_reason == "by itself" and (exhausted or watch.is_too_large(usage.ru_maxrss << 10)):
        end_reason = "memory"
    return {
        "end_reason": f"fault: {fault.decode()}" if fault else end_reason,
        "exit_code": exit_code,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.monotonic() - started,
    }


def _run_child(
    control: socket.socket, confinement: Confinement, job: Job, descriptors: list[int], server: int, fault_writer: int
) -> None:
    """Arrange the descriptors, confine this process and run the job. Never returns."""
    try:
        if confinement.cgroup is not None:
            confinement.cgroup.enter()
        control.close()
        spec_fd, *streams = descriptors
        spec = json.loads(_read_all(spec_fd))
        for number, descriptor in enumerate([_copy_above(fd) for fd in streams]):
            os.dup2(descriptor, number)
        fault_writer = _copy_above(fault_writer)
        needed = sorted(fd for fd in (fault_writer, confinement.ruleset) if fd is not None)
        _close_others(len(streams), needed)
        confinement.confine(server, job.cpu_s, job.memory_bytes + _ROOM, job.output_bytes)
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
