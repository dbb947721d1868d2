"""Programs in a sandbox of the user's: a command that answers the requests of ``protocol``.

>>> from marft_envs.sandbox import ExternalSandbox
>>> place = ExternalSandbox(["docker", "run", "-i", "--rm", "--network", "none", "my-image",
...                          "python", "-m", "marft_envs.sandbox.runner"])

What holds a program there is the command's to promise; that it runs programs at all, and tells a failure from a
success, is tried before the first one.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from marft_envs.sandbox.protocol import BadMessage, read_reply, request_of
from marft_envs.sandbox.records import DEFAULT_LIMITS, Ending, Limits, Result, Run, SandboxUnavailable, Stdin, Test

_START_S, _GRACE_S = 60.0, 10.0
_WALL_LIMITS = 10.5  # a busy machine may give a program ten times its wall limit before it is undecided
_PATIENCE_S = 5.0
_BLOCK = 1 << 16
_MOST_SAID, _LAST_SAID = 1 << 18, 300  # bytes of standard error: what may lie there, and what a message quotes
_PUNCH_HOLE = 0x3  # with the size kept
_LOOK_S = 1.0  # how often what a command says is cut while its reply is awaited
_TRIALS = (("print(int(input()) + 1)", Ending.DONE, "42\n"), ("raise SystemExit(3)", Ending.RUNTIME_ERROR, ""))


class CommandDied(RuntimeError):
    """The command ended, or did not answer in time; what it ran has no result."""


class ExternalSandbox:
    """Programs run by a command of the user's. Threads may share it: each run has a process of the command to itself.

    command: its words; it is started when needed, kept for the next run, and ended with ``close`` or this process.
    """

    def __init__(self, command: Sequence[str]) -> None:
        if isinstance(command, str) or not command or not all(isinstance(word, str) and word for word in command):
            raise ValueError(
                f"command={command!r:.80}: expected a sequence of words, such as ['ssh', 'host', 'runner']"
            )
        self.command = tuple(command)
        self._reset()
        _ALL.add(self)

    def _reset(self) -> None:
        self._lock, self._trial = threading.Lock(), threading.Lock()
        self._idle: list[_Runner] = []
        self._tried = False
        weakref.finalize(self, _end_all, self._idle)  # also at the end of the process

    def run(
        self, program: str, tests: Sequence[Test], limits: Limits = DEFAULT_LIMITS, *, prelude: bool = False
    ) -> Result:
        """As ``Sandbox.run``. A run whose command died is repeated once, then it is a FAULT, and so is nonsense.

        Raises SandboxUnavailable where the command cannot be started or does not run programs.
        """
        self._try_out()
        told = [self._run_twice(request_of(program, test, limits, prelude), limits) for test in tests]
        names = dict.fromkeys(isolation for _, isolation in told if isolation)
        return Result(tuple(run for run, _ in told), f"external ({', '.join(names)})" if names else "external")

    def close(self) -> None:
        """End the idle processes of the command; the next run starts new ones."""
        with self._lock:
            _end_all(self._idle)

    def __getstate__(self) -> dict[str, Any]:
        return {"command": self.command}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["command"])  # type: ignore[misc]

    def _forget(self) -> None:
        """In a forked copy of the trainer: the processes are the original's."""
        while self._idle:
            self._idle.pop().forget()
        self._reset()

    def _try_out(self) -> None:
        """Once: a program that is right and one that fails."""
        with self._trial:
            for program, ending, stdout in () if self._tried else _TRIALS:
                run, _ = self._run_twice(request_of(program, Stdin("41"), DEFAULT_LIMITS, False), DEFAULT_LIMITS)
                if (run.ending, run.stdout) != (ending, stdout):
                    raise SandboxUnavailable(
                        f"the command {' '.join(self.command)!r:.200} does not run programs: of {program!r} it says "
                        f"{run.ending} with output {run.stdout!r:.40} ({run.detail}), expected {ending} with {stdout!r}"
                    )
            self._tried = True

    def _run_twice(self, request: dict[str, Any], limits: Limits) -> tuple[Run, str]:
        line = json.dumps(request).encode() + b"\n"
        for attempt in (1, 2):
            try:
                with self._borrowed() as runner:
                    return read_reply(json.loads(runner.ask(line, limits)))
            except (BadMessage, ValueError) as nonsense:
                return Run(Ending.FAULT, detail=f"the command: {nonsense}"[:300]), ""
            except CommandDied as death:
                if attempt == 2:
                    return Run(Ending.FAULT, detail=f"the command died twice: {death}"[:500]), ""
        raise AssertionError("unreachable")

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[_Runner]:
        """A process of the command for the caller alone; it goes back unless something went wrong."""
        with self._lock:
            runner = self._idle.pop() if self._idle else None
        if runner is None or not runner.is_alive():
            runner = _Runner(self.command)
        try:
            yield runner
        except BaseException:
            runner.close()
            raise
        with self._lock:
            self._idle.append(runner)


class _Runner:
    """One process of the command."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        _append_only(self._errors.fileno())
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
            )
        except OSError as fault:
            self._errors.close()
            raise SandboxUnavailable(f"the command {' '.join(command)!r:.200} cannot be started: {fault}") from fault
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        os.set_blocking(self._in.fileno(), False)
        self._start_s = _START_S  # beside the first run's time

    def is_alive(self) -> bool:
        """False after its end; it is closed then."""
        if self._process.poll() is None:
            return True
        self.close()
        return False

    def ask(self, line: bytes, limits: Limits) -> bytes:
        """The reply to one request, of bounded length. CommandDied without one."""
        deadline = time.monotonic() + _WALL_LIMITS * limits.wall_s + _GRACE_S + self._start_s
        most = (limits.output_mib << 20) * 6 * 3 + _BLOCK  # JSON may take six characters for one; three texts
        self._start_s = 0.0
        if self._has_output() and os.read(self._out.fileno(), _BLOCK):
            raise CommandDied("it wrote more than one line for one request")
        left, reply = memoryview(line), bytearray()
        while b"\n" not in reply[-_BLOCK:]:
            if len(reply) > most:
                raise CommandDied(f"a reply of more than {most} bytes")
            self._wait(deadline, writing=bool(left))
            if left:
                left = left[self._write(left) :]
            if self._has_output():
                block = os.read(self._out.fileno(), _BLOCK)
                if not block:
                    raise CommandDied(f"it ended without a reply{self._last_words()}")
                reply += block
        if reply.index(b"\n") != len(reply) - 1:
            raise CommandDied("it wrote more than one line for one request")
        return bytes(reply)

    def _wait(self, deadline: float, writing: bool) -> None:
        poll = select.poll()  # select.select knows no descriptor above 1023
        poll.register(self._out, select.POLLIN)
        if writing:
            poll.register(self._in, select.POLLOUT)
        while (seconds := deadline - time.monotonic()) > 0:
            self._cut_errors()
            if poll.poll(min(seconds, _LOOK_S) * 1000):
                return
        raise CommandDied(f"no reply in time{self._last_words()}")

    def _has_output(self) -> bool:
        """Also at its end."""
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        return bool(poll.poll(0))

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._in.fileno(), data[:_BLOCK])
        except BlockingIOError:
            return 0
        except OSError as fault:
            raise CommandDied(f"it does not read ({fault}){self._last_words()}") from fault

    def _last_words(self) -> str:
        """The end of what it wrote to standard error."""
        text = self._last_said().decode(errors="replace").strip()
        return f": {text.splitlines()[-1]}" if text else ""

    def _last_said(self) -> bytes:
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), _LAST_SAID, max(0, size - _LAST_SAID))

    def _cut_errors(self) -> None:
        """Keep only the newest of what it wrote to standard error, once that is much; the command never waits for it.

        The beginning of the file gives its room back, so that nothing of the end is lost. Where that cannot be, the
        file is made anew, and what is written in just that moment is lost.
        """
        file = self._errors.fileno()
        held = os.fstat(file)
        if held.st_blocks * 512 > _MOST_SAID and not _free_beginning(file, held.st_size - _LAST_SAID):
            newest = self._last_said()
            os.ftruncate(file, 0)
            os.write(file, newest)

    def close(self) -> None:
        """End the process: its input ends; it is asked to end, which a container's client passes on; it is killed."""
        self._close_files()
        for then in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(_PATIENCE_S)
                return
            except subprocess.TimeoutExpired:
                then()
        self._process.wait()

    def forget(self) -> None:
        """In a forked copy of the trainer: close this side, and leave the process to the original."""
        self._close_files()
        self._process.returncode = 0

    def _close_files(self) -> None:
        for file in (self._in, self._out, self._errors):
            with contextlib.suppress(OSError):
                file.close()


def _free_beginning(file: int, size: int) -> bool:
    """Give back the room of the first ``size`` bytes, which then read as zeros; False where the system cannot."""
    free = getattr(ctypes.CDLL(None), "fallocate", None)  # Linux
    return free is not None and free(file, _PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(size)) == 0


def _append_only(file: int) -> None:
    """Whoever writes to the open file, by a copy of the descriptor too, writes at its end of that moment."""
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)


def _end_all(idle: list[_Runner]) -> None:
    while idle:
        idle.pop().close()


_ALL: weakref.WeakSet[ExternalSandbox] = weakref.WeakSet()


def _forget_all() -> None:
    for sandbox in list(_ALL):
        sandbox._forget()


os.register_at_fork(after_in_child=_forget_all)
