"""The trainer's side of one fork server: started fresh, asked for one run at a time, known to be dead when it is."""

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


class ServerDied(RuntimeError):
    """The server ended, or did not answer in time; what it ran has no result."""


@dataclass(frozen=True)
class Report:
    """How a child ended. ended: "by itself", "cpu", "idle", "undecided", "killed" or "fault: ...".

    status: exit code, or minus the signal.
    """

    ended: str
    status: int
    cpu_s: float
    wall_s: float


class Server:
    """A fork server of one level. packages: the folder of numpy, which it then has loaded; None without."""

    def __init__(self, level: str, packages: Path | None = None) -> None:
        self.level = level
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, tempfile.TemporaryDirectory(prefix="marft-sandbox-") as new_root:
            Path(new_root).chmod(0o755)
            # -I would be -E -P -s: here the environment is ours, and fixes the order of sets for the same verdict twice
            words = [sys.executable, "-P", "-s", "-S", "-X", "utf8", str(_START)]
            words += [level, str(theirs.fileno()), str(packages or ""), new_root]
            self._process = subprocess.Popen(
                words,
                env=_ENVIRONMENT,
                cwd="/",
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            theirs.close()
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
        """Of the process that was started."""
        return self._process.pid

    def begin(self, limits: Limits, descriptors: list[int]) -> None:
        """Start a run. descriptors: the spec, then what become 0, 1, 2, ... in the child. Raises ServerDied."""
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

    def wait(self, limits: Limits) -> Report:
        """The end of the run that was begun. Raises ServerDied."""
        return Report(**json.loads(self._receive(10.5 * limits.wall_s + _GRACE_S)))

    def kill_run(self) -> None:
        """End the run before its time; its report still comes."""
        try:
            self._control.send(b"kill")
        except OSError as fault:
            raise ServerDied(str(fault)) from fault

    def fileno(self) -> int:
        """Readable when a report is there: for ``select``."""
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
        """End the server and what it runs."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def forget(self) -> None:
        """In a forked copy of the trainer: drop the descriptor, and leave the process to the original."""
        self._control.close()
        self._process.returncode = 0  # not ours: Popen must not wait for it


def send_spec(spec: dict[str, Any]) -> bytes:
    """The spec of a child as it reads it."""
    return json.dumps(spec).encode()


__all__ = ["Report", "Server", "ServerDied", "send_spec"]
