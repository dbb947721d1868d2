"""Limits of a cgroup (version 2) in which the children of a server run, one at a time.

The kernel enforces these limits at every allocation, and counts what the resident memory of a process does not include:
the buffers of pipes and sockets, output, temporary files. They are therefore wider than the limit of resident memory,
by what a program may have beside it. A program within that limit does not notice the cgroup.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from pathlib import Path

_OUTPUT_FILES = 3
_KERNEL = 64 << 20
"""Temporary files (16 MiB), the buffers of 64 descriptors (about 30 MiB), page tables and the stacks of threads."""
_EVENTS_BYTES = 4096
_CLONE3 = 435  # of every architecture
_INTO_CGROUP, _CHILD_SETTID, _CHILD_CLEARTID = 1 << 33, 1 << 24, 1 << 21
_PR_GET_TID_ADDRESS = 40

_python = ctypes.PyDLL(None)  # keeps the interpreter's lock during a call, as os.fork does


class Cgroup:
    """The cgroup of a server's children.

    Args:
        folder: Its folder. It need not be reachable later, when the server is in a mount namespace.
        max_threads: Threads that may live at once.

    Raises:
        OSError: If the limits cannot be set.
    """

    def __init__(self, folder: Path, max_threads: int) -> None:
        (folder / "memory.oom.group").write_text("1")
        (folder / "pids.max").write_text(f"{max_threads}")
        if (folder / "memory.swap.max").exists():  # not in a kernel without swap
            (folder / "memory.swap.max").write_text("0")
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self._processes = os.open(folder / "cgroup.procs", os.O_WRONLY)
        self._maximum = os.open(folder / "memory.max", os.O_WRONLY)
        self._events = os.open(folder / "memory.events", os.O_RDONLY)
        self._max_bytes = 0
        self._seen = self._read_events()
        self._tid_address, self._is_inside = _tid_address(), False

    def set_limit(self, memory_bytes: int, output_bytes: int) -> None:
        """Set the memory limit of the next child.

        Args:
            memory_bytes: Limit of resident memory, including that of the server, of which a child may have a copy.
            output_bytes: Largest size of each of its output files.
        """
        max_bytes = memory_bytes + _OUTPUT_FILES * output_bytes + _KERNEL
        if max_bytes != self._max_bytes:
            os.pwrite(self._maximum, b"%d" % max_bytes, 0)
            self._max_bytes = max_bytes

    def fork(self) -> int:
        """Fork as ``os.fork``. The child calls ``enter`` before anything else.

        The kernel starts the child in the cgroup if it can (clone3, since Linux 5.7). To move a running process takes
        about 20 ms, unless another one was moved shortly before, because the kernel waits for all processors (RCU).
        """
        pid = self._clone() if self._tid_address else -1
        self._is_inside = pid == 0
        return os.fork() if pid < 0 else pid

    def enter(self) -> None:
        """Move the calling process into the cgroup unless it has been started there."""
        if not self._is_inside:
            os.write(self._processes, b"0")

    def _clone(self) -> int:
        """Fork into the cgroup. Return the child's process id, 0 in the child, a negative number if it fails.

        These are the steps of ``os.fork``, and the flags that the C library's ``fork`` uses, which has no argument for
        a cgroup. The thread id in the C library's record of the main thread must become that of the child.
        """
        flags = _INTO_CGROUP | _CHILD_SETTID | _CHILD_CLEARTID
        arguments = struct.pack("11Q", flags, 0, self._tid_address, 0, signal.SIGCHLD, *[0] * 5, self._folder)
        _python.PyOS_BeforeFork()
        pid: int = _python.syscall(_CLONE3, arguments, len(arguments))
        if pid == 0:
            _python.PyOS_AfterFork_Child()
        else:
            _python.PyOS_AfterFork_Parent()
        return pid

    def was_exhausted(self) -> bool:
        """Return whether the kernel has killed a process at the memory limit of this cgroup since the last call.

        The kernel also kills if the host, or a cgroup above, has no memory left. Then this limit is not reached.
        """
        before, self._seen = self._seen, self._read_events()
        return all(self._seen[name] > before[name] for name in ("oom", "oom_kill"))

    def _read_events(self) -> dict[str, int]:
        rows = (line.split() for line in os.pread(self._events, _EVENTS_BYTES, 0).decode().splitlines())
        return {name: int(count) for name, count in rows}


def _tid_address() -> int:
    """Return the address at which the C library stores the thread id of the calling thread, 0 if it is not known."""
    address = ctypes.c_void_p()
    failed = _python.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0)
    return 0 if failed else address.value or 0
