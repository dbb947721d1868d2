"""Pool of fork servers: started on demand, self-tested, shared by the threads of a process."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from marft_envs.sandbox import cgroups
from marft_envs.sandbox.fork_server import ForkServer
from marft_envs.sandbox.records import SandboxUnavailable
from marft_envs.sandbox.self_check import check_server

LIMITED_BY = ("cgroup", "counting")
"""What limits the memory and the threads of programs. The counting is active beside a cgroup as well."""
STRONG = ("namespace", "landlock")
"""Levels that isolate a program, the strongest first."""
UNSAFE = "rlimits"
LEVELS = (*STRONG, UNSAFE)
SERVERS = ("slim", "numpy", "tester", "numpy tester")
"""Kinds of servers: the plain one, one that has numpy imported, and the same for tests.

Tests have a server of their own, so that a program is never forked from a process that has run a test.
"""


class Pool:
    """Idle fork servers of one isolation level.

    Args:
        level: Isolation level; None for the strongest one that is available on this host.
    """

    def __init__(self, level: str | None) -> None:
        self.requested_level = level
        self._lock = threading.RLock()
        self._idle: dict[str, list[ForkServer]] = {kind: [] for kind in SERVERS}
        self._level: str | None = None
        self._limited_by = LIMITED_BY[0]
        weakref.finalize(self, _empty, self._idle, ForkServer.close)  # also runs at the end of the process
        _POOLS.add(self)

    @property
    def level(self) -> str:
        """The isolation level in use.

        Raises:
            SandboxUnavailable: If there is none; the message has the reason for each level.
            RunLost, OSError: If a server was killed or this process cannot start one. Neither says that a level is not
                available.
        """
        with self._lock:
            if self._level is None:
                self._level = self._choose_level()
                _log.info("isolation level %s; memory and threads are limited by %s", self._level, self._limited_by)
            return self._level

    @property
    def limited_by(self) -> str:
        """One of ``LIMITED_BY``: "cgroup" if every server so far has a cgroup. Raises the same errors as ``level``."""
        with self._lock:
            return self._limited_by if self.level else ""

    @contextlib.contextmanager
    def borrow(self, kind: str, *, new: bool = False) -> Iterator[ForkServer]:
        """Give the caller exclusive use of a server. A server whose caller raises an error is closed.

        Args:
            kind: One of ``SERVERS``.
            new: Whether to start a server even if one is idle.

        Raises:
            SandboxUnavailable: If a server that isolates programs cannot be started.
            RunLost: If the server was killed while it started.
            OSError: If this process cannot start one, for example because it has too many open files.
        """
        server = self._take(kind, new)
        try:
            yield server
        except BaseException:
            server.close()  # it is dead, or still runs a job
            raise
        with self._lock:
            self._idle[kind].append(server)

    def close(self) -> None:
        """End all idle servers."""
        with self._lock:
            _empty(self._idle, ForkServer.close)

    def forget(self) -> None:
        """Drop the servers in a forked copy of this process. They belong to the original process."""
        self._lock = threading.RLock()
        _empty(self._idle, ForkServer.forget)

    def _take(self, kind: str, new: bool) -> ForkServer:
        level = self.level
        with self._lock:
            while self._idle[kind] and not new:
                server = self._idle[kind].pop()
                if server.is_alive():
                    return server
                server.close()
        return self._new_server(level, kind)

    def _new_server(self, level: str, kind: str) -> ForkServer:
        server = _start(level, kind)
        if server.cgroup is None:
            self._limited_by = "counting"
        return server

    def _choose_level(self) -> str:
        if self.requested_level is not None:
            self._idle["slim"].append(self._new_server(self.requested_level, "slim"))
            return self.requested_level
        missing = []
        for level in STRONG:
            try:
                self._idle["slim"].append(self._new_server(level, "slim"))
                return level
            except SandboxUnavailable as reason:
                missing.append(str(reason))
        raise SandboxUnavailable(_REFUSAL.format(missing="; ".join(missing)))


_log = logging.getLogger(__name__)
_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()
_REFUSAL = (
    "programs cannot be isolated on this host, so none is run: {missing}. Use one of these instead: (1) a Linux kernel "
    "with Landlock (5.13 or newer); (2) sandbox=[...], the words of a command that runs programs in a container, in a "
    "VM or on another machine, for example docker run -i --rm --network none IMAGE python -m "
    "marft_envs.sandbox.runner (see docs/grading.md, Programs elsewhere); (3) sandbox=object, your own object with "
    "the method run(program, tests, limits); (4) allow_unsafe=True, if programs may do anything to this host"
)


def _start(level: str, kind: str) -> ForkServer:
    """Return a new server, with a cgroup where the host permits it.

    The self-test runs in the cgroup, so it also finds that programs cannot enter it. The server has none in that case.
    """
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailable(f"level {level} needs Linux, this is {sys.platform}")
    packages = numpy_folder() if kind.startswith("numpy") else None
    try:
        if level in STRONG:
            return _start_tested(level, packages, cgroups.create())
    except (cgroups.CgroupUnavailable, SandboxUnavailable) as reason:
        _log.info("memory and threads of programs are counted, because they have no cgroup: %s", reason)
    return _start_tested(level, packages, None)


def _start_tested(level: str, packages: Path | None, cgroup: cgroups.Cgroup | None) -> ForkServer:
    """Return a new server that has passed the self-test. The level "rlimits" cannot pass it and is not tested."""
    with contextlib.ExitStack() as on_error:
        if cgroup is not None:
            on_error.callback(cgroup.remove)
        server = ForkServer(level, packages, cgroup)
        on_error.callback(server.close)
        if level in STRONG:
            try:
                check_server(server)
            except SandboxUnavailable as fault:
                raise SandboxUnavailable(f"level {level}: {fault}") from fault
        on_error.pop_all()
    return server


def numpy_folder() -> Path | None:
    """Return the folder in which this interpreter has numpy installed, None if it has not."""
    spec = find_spec("numpy")
    return Path(spec.origin).parents[1] if spec is not None and spec.origin else None


def _empty(idle: dict[str, list[ForkServer]], action: Callable[[ForkServer], None]) -> None:
    for servers in idle.values():
        while servers:
            action(servers.pop())


def _forget_all() -> None:
    for pool in list(_POOLS):
        pool.forget()


os.register_at_fork(after_in_child=_forget_all)
