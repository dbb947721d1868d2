"""The servers of a process: started when they are needed, kept warm, shared by its threads, self-tested first."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from marft_envs.sandbox.host import Server, ServerDied
from marft_envs.sandbox.records import SandboxUnavailable
from marft_envs.sandbox.self_check import check_server

STRONG = ("namespace", "landlock")
"""The levels that are walls, the strongest first; "landlock" is the floor."""
UNSAFE = "rlimits"
LEVELS = (*STRONG, UNSAFE)
KINDS = ("slim", "numpy", "tester")
"""Servers by what they have loaded. Testers have a server apart: a program is forked from one that never saw a test."""


class Pool:
    """Servers of one level. level: None for the strongest that holds here."""

    def __init__(self, level: str | None) -> None:
        self._wanted = level
        self._lock = threading.RLock()
        self._idle: dict[str, list[Server]] = {kind: [] for kind in KINDS}
        self._level: str | None = None
        weakref.finalize(self, _each, self._idle, Server.close)  # also at the end of the process
        _POOLS.add(self)

    @property
    def level(self) -> str:
        """The level that is used. Raises SandboxUnavailable, naming what is missing on each."""
        with self._lock:
            if self._level is None:
                self._level = self._choose()
            return self._level

    @contextlib.contextmanager
    def borrow(self, kind: str) -> Iterator[Server]:
        """A server of ``kind`` for the caller alone. One that dies in the caller's hands is replaced later."""
        server = self._take(kind)
        try:
            yield server
        except BaseException:
            server.close()  # dead, or in the middle of a run
            raise
        with self._lock:
            self._idle[kind].append(server)

    def close(self) -> None:
        """End all idle servers."""
        with self._lock:
            _each(self._idle, Server.close)

    def forget(self) -> None:
        """After a fork of the trainer: the servers are the parent's."""
        self._lock = threading.RLock()
        _each(self._idle, Server.forget)

    def _take(self, kind: str) -> Server:
        level = self.level
        with self._lock:
            if self._idle[kind]:
                return self._idle[kind].pop()
        return _start(level, kind)

    def _choose(self) -> str:
        if self._wanted is not None:
            self._idle["slim"].append(_start(self._wanted, "slim"))
            return self._wanted
        missing = []
        for level in STRONG:
            try:
                self._idle["slim"].append(_start(level, "slim"))
                return level
            except SandboxUnavailable as reason:
                missing.append(str(reason))
        raise SandboxUnavailable(_REFUSAL.format(missing="; ".join(missing)))


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()
_REFUSAL = (
    "no program is run here, because it could harm this host: {missing}. Ways out: a Linux kernel with Landlock (5.13 "
    "or newer); a command that runs programs in a container, a VM or on another machine, sandbox=[its words], for "
    "example docker run -i --rm --network none IMAGE python -m marft_envs.sandbox.runner (docs/grading.md, Programs "
    "elsewhere); an object of your own with run(program, tests, limits), such as one over a WASM runtime, sandbox=it; "
    "or, where a program may do whatever it likes, allow_unsafe=True"
)


def _start(level: str, kind: str) -> Server:
    """A server that has passed the self-test (which "rlimits" cannot)."""
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailable(f"level {level} needs Linux, this is {sys.platform}")
    server = Server(level, numpy_folder() if kind == "numpy" else None)
    try:
        if level in STRONG:
            check_server(server)
    except (SandboxUnavailable, ServerDied) as fault:
        server.close()
        raise SandboxUnavailable(f"level {level}: {fault}") from fault
    return server


def numpy_folder() -> Path | None:
    """Where numpy is installed for this interpreter."""
    spec = find_spec("numpy")
    return Path(spec.origin).parents[1] if spec is not None and spec.origin else None


def _each(idle: dict[str, list[Server]], action: Callable[[Server], None]) -> None:
    for servers in idle.values():
        while servers:
            action(servers.pop())


def _forget_all() -> None:
    for pool in list(_POOLS):
        pool.forget()


os.register_at_fork(after_in_child=_forget_all)
