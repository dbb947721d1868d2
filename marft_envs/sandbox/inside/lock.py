"""What a child does to itself before it runs a program: limits, an ordinary user, Landlock, the filter; in this order.

Facts behind it: RLIMIT_NPROC does nothing for uid 0, so root's children become nobody; a process that has changed its
user is not dumpable, and could then not open its own /proc/self/fd.
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

NOBODY = 65534
_PDEATHSIG, _DUMPABLE, _KEEPCAPS, _NO_NEW_PRIVS = 1, 4, 8, 38  # prctl
_KILL = 9
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITIES_V3, _READ_SEARCH = 0x20080522, 1 << 2
_TASKS, _FILES, _STACK = 64, 64, 256 << 20
_COUNT_EVERY_S = 1.0

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Lock:
    """What all children of a server share. ruleset: of Landlock, None at the level "rlimits" (no wall at all).

    drop_user: whether children become nobody. keep_read: nobody could not read the interpreter (a home of mode 0700):
    they keep the one capability that reads, within what Landlock allows. base_bytes: the server's own address space.
    """

    ruleset: int | None
    drop_user: bool
    keep_read: bool
    base_bytes: int
    tasks: int = 0
    counted: float = 0.0

    @classmethod
    def prepare(cls, ruleset: int | None, places: Iterable[Path]) -> Lock:
        """The lock for this process's children. places: folders that they must be able to read."""
        drop = os.geteuid() == 0 and ruleset is not None and _is_mapped(NOBODY)
        if ruleset is not None:
            seccomp.prepare()
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        keep_read = os.geteuid() == 0 and not all(map(_all_may_read, places))
        return cls(ruleset, drop, keep_read, pages * resource.getpagesize())

    def count_tasks(self) -> None:
        """How many threads the children's user has now: RLIMIT_NPROC counts all of them. At most once a second."""
        now = time.monotonic()
        if now - self.counted < _COUNT_EVERY_S and self.counted:
            return
        self.counted, self.tasks = now, 0
        user = NOBODY if self.drop_user else os.geteuid()
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    if folder.stat().st_uid == user:
                        self.tasks += len(list((folder / "task").iterdir()))
                except OSError:
                    continue  # it has ended

    def close_on(self, server: int, cpu_s: float, memory_bytes: int, output_bytes: int) -> None:
        """Lock the calling process. Raises OSError if any part does not hold: then nothing may be run."""
        os.setsid()
        self._limit(cpu_s, memory_bytes, output_bytes)
        if self.drop_user:
            _libc.prctl(_KEEPCAPS, int(self.keep_read), 0, 0, 0)
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        if self.ruleset is not None:
            _keep_capabilities(_READ_SEARCH if self.keep_read else 0)
        _libc.prctl(_DUMPABLE, 1, 0, 0, 0)
        if _libc.prctl(_PDEATHSIG, _KILL, 0, 0, 0) or os.getppid() != server:
            raise OSError("the server has ended")
        if self.ruleset is None:
            return
        if _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs")
        landlock.restrict(self.ruleset)
        os.close(self.ruleset)
        seccomp.load()

    def _limit(self, cpu_s: float, memory_bytes: int, output_bytes: int) -> None:
        seconds = int(cpu_s) + 2  # the server looks at the clock; this is for threads on many cores
        for what, soft in (
            (resource.RLIMIT_AS, self.base_bytes + memory_bytes),
            (resource.RLIMIT_CPU, seconds),
            (resource.RLIMIT_FSIZE, output_bytes),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, _FILES),
            (resource.RLIMIT_NPROC, self.tasks + _TASKS),
            (resource.RLIMIT_MSGQUEUE, 0),
            (resource.RLIMIT_STACK, _STACK),
        ):
            hard = resource.getrlimit(what)[1]
            value = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
            resource.setrlimit(what, (value, value))


def _keep_capabilities(kept: int) -> None:
    """Drop every capability but ``kept``; OSError if that fails."""
    header = struct.pack("Ii", _CAPABILITIES_V3, 0)
    sets = struct.pack("IIIIII", kept, kept, 0, 0, 0, 0)
    if _libc.syscall(_CAPSET[os.uname().machine], header, sets):
        raise OSError(ctypes.get_errno(), f"capset: {os.strerror(ctypes.get_errno())}")


def _is_mapped(user: int) -> bool:
    """Whether the user exists in this user namespace."""
    rows = [map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(first <= user < first + count for first, _, count in rows)


def _all_may_read(folder: Path) -> bool:
    """Whether everybody may list ``folder`` and pass through what is above it."""
    modes = [(place.stat().st_mode, stat.S_IXOTH) for place in folder.resolve().parents]
    modes.append((folder.stat().st_mode, stat.S_IXOTH | stat.S_IROTH))
    return all(mode & wanted == wanted for mode, wanted in modes)
