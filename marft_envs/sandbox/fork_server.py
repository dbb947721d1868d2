"""Client side of a fork server: starts the server process, sends it one run at a time, and detects its death."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marft_envs.sandbox.cgroups import Cgroup
from marft_envs.sandbox.records import Limits, SandboxUnavailable

_START = Path(__file__).parent / "inside" / "start.py"
# A server must not have a second thread when it enters the namespaces and when it forks.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1")
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "LD_BIND_NOW": "1", **_ONE_THREAD}
_START_S = 60.0
_GRACE_S = 10.0
WALL_LIMITS = 10.5
"""Wall limits after which a run has certainly ended: the server ends a busy program after ten of them."""


class RunLost(RuntimeError):
    """A run has no result, through no fault of the program. It may be repeated."""

    event = "the run was lost"


class ServerDied(RunLost):
    """The server ended or did not answer in time."""

    event = "the server died"


@dataclass(frozen=True)
class ServerReport:
    """How a child process ended.

    Attributes:
        end_reason: "by itself", "cpu", "idle", "undecided", "memory", "threads", "killed" or "fault: ...".
        exit_code: Exit code of the process, or minus the number of the signal that ended it.
        cpu_s: CPU time in seconds.
        wall_s: Wall time in seconds.
    """

    end_reason: str
    exit_code: int
    cpu_s: float
    wall_s: float

    @property
    def was_killed_by_the_host(self) -> bool:
        """Whether another process of the host killed it, or the kernel, because the host has no memory left.

        The seccomp filter does not let a program send SIGKILL to itself.
        """
        return self.end_reason == "by itself" and self.exit_code == -signal.SIGKILL


class ForkServer:
    """One fork server process. It ends with this process, however this process ends.

    Args:
        level: Isolation level of its children.
        packages: Folder that contains numpy, which the server then imports; None for a server without numpy.
        cgroup: Cgroup of its children, which is removed when the server is closed; None if their memory and threads are
            only counted.

    Raises:
        SandboxUnavailable: If the server cannot start at this level.
        OSError: If this process cannot start it, for example because it has too many open files.
    """

    def __init__(self, level: str, packages: Path | None = None, cgroup: Cgroup | None = None) -> None:
        self.level, self.cgroup = level, cgroup
        self._control, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Not -I, which ignores the environment: it must fix the hash seed, so that sets have the same order and a
        # program the same verdict in every run.
        command = [sys.executable, "-P", "-s", "-S", "-X", "utf8", str(_START)]
        with contextlib.ExitStack() as on_error:
            on_error.callback(self._control.close)
            with server_end, _handle_of_this_process() as caller:
                command += [level, str(server_end.fileno()), str(packages or ""), str(caller)]
                command.append(str(cgroup.folder) if cgroup else "")
                self._process = subprocess.Popen(
                    command,
                    env=_ENVIRONMENT,
                    cwd="/",
                    pass_fds=[server_end.fileno(), caller],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # a Ctrl-C in the terminal is for the caller only
                )
            on_error.callback(self.close)
            _ALL.add(self)
            self._wait_until_ready()
            on_error.pop_all()

    def _wait_until_ready(self) -> None:
        try:
            answer = self._receive(_START_S)
        except ServerDied as death:
            raise SandboxUnavailable(f"level {self.level}: the server did not start ({death})") from death
        if answer != b"ready":
            raise SandboxUnavailable(f"level {self.level}: {answer.decode(errors='replace')}")

    @property
    def pid(self) -> int:
        """Process id of the server as it was started."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the server, which must be idle, can take a run."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)  # an idle server sends nothing but the end of the stream
        has_its_cgroup = self.cgroup is None or self.cgroup.exists()
        return has_its_cgroup and self._process.poll() is None and not poll.poll(0)

    def begin(self, limits: Limits, descriptors: list[int], patience: float = 1.0) -> None:
        """Start a run.

        Args:
            limits: Limits of the run.
            descriptors: The spec of the child, followed by the files that become its descriptors 0, 1, 2, ...
            patience: Wall limits after which the run is stopped if it is idle.

        Raises:
            ServerDied: If the server has ended.
        """
        job = {
            "cpu_s": limits.cpu_s,
            "wall_s": limits.wall_s,
            "memory_bytes": limits.memory_mib << 20,
            "output_bytes": limits.output_mib << 20,
            "patience": patience,
        }
        try:
            socket.send_fds(self._control, [json.dumps(job).encode()], descriptors)
        except OSError as fault:
            raise ServerDied(str(fault)) from fault

    def wait(self, limits: Limits) -> ServerReport:
        """Wait for the end of the current run. Raises ServerDied if there is no report in time."""
        return ServerReport(**json.loads(self._receive(WALL_LIMITS * limits.wall_s + _GRACE_S)))

    def kill_run(self) -> None:
        """Kill the current run. Its report is still sent."""
        try:
            self._control.send(b"kill")
        except OSError as fault:
            raise ServerDied(str(fault)) from fault

    def has_report(self, timeout_s: float) -> bool:
        """Wait for the end of the current run. Return whether it ended in time."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        return bool(poll.poll(1000 * timeout_s))

    def _receive(self, timeout_s: float) -> bytes:
        try:
            message = self._control.recv(1 << 16) if self.has_report(timeout_s) else b""
        except OSError as fault:
            raise ServerDied(str(fault)) from fault
        if not message:
            raise ServerDied(f"no answer within {timeout_s:.0f} s" if self._process.poll() is None else "it has ended")
        return message

    def close(self) -> None:
        """Kill the server and its current run."""
        self._control.close()
        self._process.kill()
        self._process.wait()
        if self.cgroup is not None:
            self.cgroup.remove()

    def forget(self) -> None:
        """Close the socket in a forked copy of this process. The server belongs to the original process."""
        self._control.close()
        if self.cgroup is not None:
            self.cgroup.forget()
        self._process.returncode = 0  # otherwise Popen would wait for a process that is not a child


@contextlib.contextmanager
def _handle_of_this_process() -> Iterator[int]:
    """Open a pidfd of this process, from which another process learns when this one ends."""
    handle = os.pidfd_open(os.getpid())
    try:
        yield handle
    finally:
        os.close(handle)


_ALL: weakref.WeakSet[ForkServer] = weakref.WeakSet()


def _forget_all() -> None:
    for server in list(_ALL):
        server.forget()


os.register_at_fork(after_in_child=_forget_all)


def encode_spec(spec: dict[str, Any]) -> bytes:
    """Return the spec of a child in the format that the child reads."""
    return json.dumps(spec).encode()
