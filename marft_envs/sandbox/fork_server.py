"""Client side of a fork server: starts the server process, sends it one run at a time, and detects its death."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marft_envs.sandbox.records import Limits, SandboxUnavailable

_START = Path(__file__).parent / "inside" / "start.py"
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "LD_BIND_NOW": "1"}
_START_S = 60.0
_GRACE_S = 10.0
WALL_LIMITS = 10.5
"""Wall limits after which a run has certainly ended: the server ends a busy program after ten of them."""


class ServerDied(RuntimeError):
    """The server ended or did not answer in time. Its current run has no result."""


@dataclass(frozen=True)
class ServerReport:
    """How a child process ended.

    Attributes:
        end_reason: "by itself", "cpu", "idle", "undecided", "killed" or "fault: ...".
        exit_code: Exit code of the process, or minus the number of the signal that ended it.
        cpu_s: CPU time in seconds.
        wall_s: Wall time in seconds.
    """

    end_reason: str
    exit_code: int
    cpu_s: float
    wall_s: float


class ForkServer:
    """One fork server process.

    Args:
        level: Isolation level of its children.
        packages: Folder that contains numpy, which the server then imports; None for a server without numpy.

    Raises:
        SandboxUnavailable: If the server cannot start at this level.
    """

    def __init__(self, level: str, packages: Path | None = None) -> None:
        self.level = level
        self._control, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with server_end, tempfile.TemporaryDirectory(prefix="marft-sandbox-") as new_root:
            Path(new_root).chmod(0o755)
            # Not -I, which ignores the environment: it must fix the hash seed, so that sets have the same order and a
            # program the same verdict in every run.
            command = [sys.executable, "-P", "-s", "-S", "-X", "utf8", str(_START)]
            command += [level, str(server_end.fileno()), str(packages or ""), new_root]
            self._process = subprocess.Popen(
                command,
                env=_ENVIRONMENT,
                cwd="/",
                pass_fds=[server_end.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            server_end.close()
            try:
                answer = self._receive(_START_S)
            except ServerDied as death:
                self.close()
                raise SandboxUnavailable(f"level {level}: the server did not start ({death})") from death
        if answer != b"ready":
            self.close()
            raise SandboxUnavailable(f"level {level}: {answer.decode(errors='replace')}")

    @property
    def pid(self) -> int:
        """Process id of the server as it was started."""
        return self._process.pid

    def begin(self, limits: Limits, descriptors: list[int]) -> None:
        """Start a run.

        Args:
            limits: Limits of the run.
            descriptors: The spec of the child, followed by the files that become its descriptors 0, 1, 2, ...

        Raises:
            ServerDied: If the server has ended.
        """
        job = {
            "cpu_s": limits.cpu_s,
            "wall_s": limits.wall_s,
            "memory_bytes": limits.memory_mib << 20,
            "output_bytes": limits.output_mib << 20,
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

    def fileno(self) -> int:
        """Return a descriptor for ``select``, readable when a report is available."""
        return self._control.fileno()

    def _receive(self, timeout_s: float) -> bytes:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        try:
            message = self._control.recv(1 << 16) if poll.poll(1000 * timeout_s) else b""
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

    def forget(self) -> None:
        """Close the socket in a forked copy of this process. The server belongs to the original process."""
        self._control.close()
        self._process.returncode = 0  # otherwise Popen would wait for a process that is not a child


def encode_spec(spec: dict[str, Any]) -> bytes:
    """Return the spec of a child in the format that the child reads."""
    return json.dumps(spec).encode()
