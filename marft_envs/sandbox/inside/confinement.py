"""Confinement of a child process before it runs a program.

The order is: resource limits, an unprivileged user, Landlock, the seccomp filter. Two facts determine it.
RLIMIT_NPROC has no effect for uid 0, so the children of root become another user. A process that has changed its
user is not dumpable and cannot open its own /proc/self/fd, so the child is made dumpable again.

RLIMIT_NPROC counts all threads of a user. The children of each server of root are a user of their own, so that the
programs of two servers do not share a limit. Elsewhere they share the caller's user, and the server counts the threads
of its child instead.
"""

from __future__ import annotations

import ctypes
import os
import resource
import stat
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import landlock, seccomp
from .cgroup import Cgroup

NOBODY = 65534
_FIRST_USER = 0x70000000  # far from the users of the host, of containers and of systemd
_PDEATHSIG, _DUMPABLE, _KEEPCAPS, _NO_NEW_PRIVS = 1, 4, 8, 38  # prctl
_KILL = 9
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITIES_V3, _READ_SEARCH = 0x20080522, 1 << 2
MAX_THREADS = 64
_SHARED_THREADS = 512  # bounds how many threads a program starts before the server counts them
_FILES, _SIGNALS, _STACK = 64, 256, 256 << 20
_COUNT_EVERY_S = 1.0

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Confinement:
    """The restrictions that all children of a server share.

    Attributes:
        ruleset: Descriptor of the Landlock ruleset; None at the level "rlimits", which does not isolate.
        user: User id of the children; None if they keep that of the caller.
        keep_read: Whether children keep CAP_DAC_READ_SEARCH. They need it if other users cannot read the interpreter,
            for example below a home of mode 0700. Landlock still limits what they read.
        base_bytes: Address space of the server itself, in bytes.
        base_resident: Resident memory of the server itself, in bytes.
        tasks: Number of threads of the children's user at the last count.
        counted: Time of the last count, in seconds of the monotonic clock.
        cgroup: Cgroup of the children, None if the host does not permit one. The server counts their memory and threads
            in either case.
    """

    ruleset: int | None
    user: int | None
    keep_read: bool
    base_bytes: int
    base_resident: int
    tasks: int = 0
    counted: float = 0.0
    cgroup: Cgroup | None = None

    @classmethod
    def prepare(cls, ruleset: int | None, required: Iterable[Path], cgroup: Cgroup | None = None) -> Confinement:
        """Return the confinement for the children of this process.

        Args:
            ruleset: Descriptor of a Landlock ruleset, None for resource limits only.
            required: Folders that the children must be able to read.
            cgroup: Cgroup of the children.
        """
        user = _unused_user() if os.geteuid() == 0 and ruleset is not None else None
        if ruleset is not None:
            seccomp.prepare()
        pages, resident = map(int, Path("/proc/self/statm").read_text().split()[:2])
        keep_read = os.geteuid() == 0 and not all(map(_is_world_readable, required))
        page = resource.getpagesize()
        return cls(ruleset, user, keep_read, pages * page, resident * page, cgroup=cgroup)

    @property
    def has_own_user(self) -> bool:
        """Whether no other process has the children's user id."""
        return self.user not in (None, NOBODY)

    def count_tasks(self) -> None:
        """Count the threads of the children's user, at most once a second. RLIMIT_NPROC includes all of them."""
        if self.has_own_user:
            return
        now = time.monotonic()
        if now - self.counted < _COUNT_EVERY_S and self.counted:
            return
        self.counted, self.tasks = now, 0
        user = os.geteuid() if self.user is None else self.user
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    if folder.stat().st_uid == user:
                        self.tasks += len(list((folder / "task").iterdir()))
                except OSError:
                    continue  # the process has ended

    def confine(self, server: int, cpu_s: float, memory_bytes: int, output_bytes: int) -> None:
        """Confine the calling process, permanently.

        Args:
            server: Process id of the parent, whose death ends this process.
            cpu_s: CPU time of the run, in seconds.
            memory_bytes: Address space beyond that of the server, in bytes.
            output_bytes: Largest size of a file that the process writes, in bytes.

        Raises:
            OSError: If any restriction cannot be applied. Nothing may be run in that case.
        """
        os.setsid()
        self._set_limits(cpu_s, memory_bytes, output_bytes)
        if self.user is not None:
            # Without KEEPCAPS the change of user clears every capability.
            _libc.prctl(_KEEPCAPS, int(self.keep_read), 0, 0, 0)
            os.setgroups([])
            os.setresgid(self.user, self.user, self.user)
            os.setresuid(self.user, self.user, self.user)
        if self.ruleset is not None:
            _keep_capabilities(_READ_SEARCH if self.keep_read else 0)
        _libc.prctl(_DUMPABLE, 1, 0, 0, 0)
        # A change of user clears the parent-death signal, so it is set after it. The parent may have died before.
        if _libc.prctl(_PDEATHSIG, _KILL, 0, 0, 0) or os.getppid() != server:
            raise OSError("the server has ended")
        if self.ruleset is None:
            return
        if _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs")
        landlock.restrict(self.ruleset)
        os.close(self.ruleset)
        seccomp.load()  # last: it refuses most of the calls above

    def _set_limits(self, cpu_s: float, memory_bytes: int, output_bytes: int) -> None:
        seconds = int(cpu_s) + 2  # the server enforces cpu_s; this is the backstop for threads on many cores
        for limit, soft in (
            (resource.RLIMIT_AS, self.base_bytes + memory_bytes),
            (resource.RLIMIT_CPU, seconds),
            (resource.RLIMIT_FSIZE, output_bytes),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, _FILES),
            (resource.RLIMIT_NPROC, MAX_THREADS if self.has_own_user else self.tasks + _SHARED_THREADS),
            (resource.RLIMIT_SIGPENDING, _SIGNALS),
            (resource.RLIMIT_MSGQUEUE, 0),
            (resource.RLIMIT_STACK, _STACK),
        ):
            hard = resource.getrlimit(limit)[1]
            value = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
            resource.setrlimit(limit, (value, value))


def _keep_capabilities(mask: int) -> None:
    """Drop every capability that is not in ``mask``. Raises OSError if that fails."""
    header = struct.pack("Ii", _CAPABILITIES_V3, 0)
    sets = struct.pack("IIIIII", mask, mask, 0, 0, 0, 0)
    if _libc.syscall(_CAPSET[os.uname().machine], header, sets):
        raise OSError(ctypes.get_errno(), f"capset: {os.strerror(ctypes.get_errno())}")


def _unused_user() -> int | None:
    """Return a random user id that no process has, nobody if only common ids exist here, None if nobody does not."""
    user = _FIRST_USER + int.from_bytes(os.urandom(3))
    return next((found for found in (user, NOBODY) if _is_mapped(found)), None)


def _is_mapped(user: int) -> bool:
    """Return whether the user exists in this user namespace."""
    rows = [map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(first <= user < first + count for first, _, count in rows)


def _is_world_readable(folder: Path) -> bool:
    """Return whether every user may list ``folder`` and traverse the folders above it."""
    modes = [(parent.stat().st_mode, stat.S_IXOTH) for parent in folder.resolve().parents]
    modes.append((folder.stat().st_mode, stat.S_IXOTH | stat.S_IROTH))
    return all(mode & required == required for mode, required in modes)
