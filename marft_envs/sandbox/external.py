"""Sandbox provided by a command of the user's, which answers the requests described in ``protocol``.

>>> from marft_envs.sandbox import ExternalSandbox
>>> sandbox = ExternalSandbox(["docker", "run", "-i", "--rm", "--network", "none", "my-image",
...                            "python", "-m", "marft_envs.sandbox.runner"])

The command is responsible for the isolation. Before the first program runs, the sandbox only checks that the command
runs programs and reports success and failure correctly.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import IO, Any

from marft_envs.sandbox.fork_server import WALL_LIMITS
from marft_envs.sandbox.protocol import BadMessage, read_reply, request_of
from marft_envs.sandbox.records import (
    DEFAULT_LIMITS,
    Limits,
    ProgramRun,
    Result,
    RunStatus,
    SandboxUnavailable,
    Stdin,
    Test,
)

_START_S, _GRACE_S = 60.0, 10.0
_PATIENCE_S = 5.0
_BLOCK = 1 << 16
_STDERR_BYTES = 300  # length of the end of a command's standard error that is stored for messages
_LARGEST_PIPE = 1 << 20  # bytes; the kernel allows no larger pipe to an ordinary user
_TRIALS = (
    ("print(int(input()) + 1)", RunStatus.DONE, "42\n"),
    ("raise SystemExit(3)", RunStatus.RUNTIME_ERROR, ""),
)


class CommandDied(RuntimeError):
    """The command ended or did not answer in time. Its current run has no result."""


class ExternalSandbox:
    """Sandbox that runs programs through a command of the user's.

    A process of the command is started when a run needs one, and reused for later runs. It ends with ``close`` or with
    this process. Threads may share one sandbox: each run has a process of the command to itself.

    Args:
        command: The command as a sequence of words, such as ``["ssh", "host", "runner"]``.

    Raises:
        ValueError: If ``command`` is not a sequence of words.
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
        self._lock, self._trial_lock = threading.Lock(), threading.Lock()
        self._idle: list[_Runner] = []
        self._passed_trial = False
        weakref.finalize(self, _close_all, self._idle)  # also runs at the end of the process

    def run(
        self, program: str, tests: Sequence[Test], limits: Limits = DEFAULT_LIMITS, *, prelude: bool = False
    ) -> Result:
        """Run the program once for each test, as ``Sandbox.run``.

        A run whose command dies is repeated once; if the command dies again, the status of the run is FAULT. An invalid
        reply is a FAULT as well.

        Args:
            program: Source of a Python program.
            tests: The tests.
            limits: Limits of each run.
            prelude: Whether the imports that are customary in programming contests precede the program.

        Returns:
            One run for each test. The isolation is "external (NAME)", with the name that the command reports.

        Raises:
            SandboxUnavailable: If the command cannot be started or does not run programs.
        """
        self._ensure_trial()
        replies = [self._run_twice(request_of(program, test, limits, prelude), limits) for test in tests]
        names = dict.fromkeys(isolation for _, isolation in replies if isolation)
        return Result(tuple(run for run, _ in replies), f"external ({', '.join(names)})" if names else "external")

    def close(self) -> None:
        """End the idle processes of the command. The next run starts new ones."""
        with self._lock:
            _close_all(self._idle)

    def __getstate__(self) -> dict[str, Any]:
        return {"command": self.command}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["command"])  # type: ignore[misc]

    def _forget(self) -> None:
        """Drop the processes in a forked copy of this process. They belong to the original process."""
        while self._idle:
            self._idle.pop().forget()
        self._reset()

    def _ensure_trial(self) -> None:
        """Run a program that succeeds and one that fails, once, and check what the command reports."""
        with self._trial_lock:
            for program, status, stdout in () if self._passed_trial else _TRIALS:
                run, _ = self._run_twice(request_of(program, Stdin("41"), DEFAULT_LIMITS, False), DEFAULT_LIMITS)
                if (run.status, run.stdout) != (status, stdout):
                    raise SandboxUnavailable(
                        f"the command {' '.join(self.command)!r:.200} does not run programs: for {program!r} it "
                        f"reported {run.status} with output {run.stdout!r:.40} ({run.detail}), expected {status} with "
                        f"{stdout!r}"
                    )
            self._passed_trial = True

    def _run_twice(self, request: dict[str, Any], limits: Limits) -> tuple[ProgramRun, str]:
        line = json.dumps(request).encode() + b"\n"
        for attempt in (1, 2):
            try:
                with self._borrow() as runner:
                    return read_reply(json.loads(runner.ask(line, limits)))
            except (BadMessage, ValueError) as error:
                return ProgramRun(RunStatus.FAULT, detail=f"the command: {error}"[:300]), ""
            except CommandDied as death:
                if attempt == 2:
                    return ProgramRun(RunStatus.FAULT, detail=f"the command died twice: {death}"[:500]), ""
        raise AssertionError("unreachable")

    @contextlib.contextmanager
    def _borrow(self) -> Iterator[_Runner]:
        """Give the caller exclusive use of a process of the command. It is closed if the caller raises an error."""
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
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
            )
        except OSError as fault:
            raise SandboxUnavailable(f"the command {' '.join(command)!r:.200} cannot be started: {fault}") from fault
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._in, self._out = self._process.stdin, self._process.stdout
        os.set_blocking(self._in.fileno(), False)
        self._start_s = _START_S  # added to the time limit of the first run
        try:
            self._stderr = _StderrReader(self._process.stderr)
        except (OSError, RuntimeError) as fault:  # too many open files, or too many threads
            self._close_streams()
            self._process.kill()
            self._process.wait()
            raise SandboxUnavailable(f"the standard error of the command cannot be read: {fault}") from fault

    def is_alive(self) -> bool:
        """Return whether the process still runs. Closes the runner if it does not."""
        if self._process.poll() is None:
            return True
        self.close()
        return False

    def ask(self, line: bytes, limits: Limits) -> bytes:
        """Send one request and return the reply, of bounded length. Raises CommandDied if there is none."""
        deadline = time.monotonic() + WALL_LIMITS * limits.wall_s + _GRACE_S + self._start_s
        # JSON takes up to six characters for one, and a reply has three strings.
        max_bytes = (limits.output_mib << 20) * 6 * 3 + _BLOCK
        self._start_s = 0.0
        if self._has_output() and os.read(self._out.fileno(), _BLOCK):
            raise CommandDied("it wrote more than one line for one request")
        unsent, reply = memoryview(line), bytearray()
        while b"\n" not in reply[-_BLOCK:]:
            if len(reply) > max_bytes:
                raise CommandDied(f"a reply of more than {max_bytes} bytes")
            self._wait(deadline, writing=bool(unsent))
            if unsent:
                unsent = unsent[self._write(unsent) :]
            if self._has_output():
                block = os.read(self._out.fileno(), _BLOCK)
                if not block:
                    raise CommandDied(f"it ended without a reply{self._last_stderr_line()}")
                reply += block
        if reply.index(b"\n") != len(reply) - 1:
            raise CommandDied("it wrote more than one line for one request")
        return bytes(reply)

    def _wait(self, deadline: float, writing: bool) -> None:
        poll = select.poll()  # select.select does not support descriptors above 1023
        poll.register(self._out, select.POLLIN)
        if writing:
            poll.register(self._in, select.POLLOUT)
        seconds = deadline - time.monotonic()
        if seconds <= 0 or not poll.poll(seconds * 1000):
            raise CommandDied(f"no reply in time{self._last_stderr_line()}")

    def _has_output(self) -> bool:
        """Return whether there is output to read, or the end of the output."""
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        return bool(poll.poll(0))

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._in.fileno(), data[:_BLOCK])
        except BlockingIOError:
            return 0
        except OSError as fault:
            raise CommandDied(f"it does not read ({fault}){self._last_stderr_line()}") from fault

    def _last_stderr_line(self) -> str:
        """Return the last line that the command wrote to standard error, for a message."""
        text = self._stderr.tail().decode(errors="replace").strip()
        return f": {text.splitlines()[-1]}" if text else ""

    def close(self) -> None:
        """End the process: close its input, then terminate it (a container's client passes that on), then kill it."""
        self._close_streams()
        for next_step in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(_PATIENCE_S)
                break
            except subprocess.TimeoutExpired:
                next_step()
        self._process.wait()
        self._stderr.close()  # last, because a process that writes while it ends must not block

    def forget(self) -> None:
        """Close the descriptors in a forked copy of this process. The command belongs to the original process."""
        self._close_streams()
        self._stderr.forget()
        self._process.returncode = 0  # otherwise Popen would wait for a process that is not a child

    def _close_streams(self) -> None:
        for stream in (self._in, self._out):
            with contextlib.suppress(OSError):
                stream.close()


class _StderrReader:
    """Thread that reads a pipe continuously and keeps its last bytes. The writer never waits; memory is bounded."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe, self._tail = pipe, bytearray()
        self._lock = threading.RLock()
        with contextlib.ExitStack() as on_error:
            on_error.callback(pipe.close)
            os.set_blocking(pipe.fileno(), False)
            # Closing the write end of this pipe ends the thread. The end of the command's output does not suffice,
            # because a process that the command has started may still hold its standard error open.
            stop_reader, stop_writer = os.pipe()
            self._stop_reader = os.fdopen(stop_reader, "rb", buffering=0)
            self._stop_writer = os.fdopen(stop_writer, "wb", buffering=0)
            on_error.callback(self.forget)
            self._thread = threading.Thread(target=self._read_until_stopped, name="sandbox-stderr", daemon=True)
            self._thread.start()
            on_error.pop_all()

    def tail(self) -> bytes:
        """Return the last bytes of what was written before this call."""
        with self._lock:
            self._read_available()
            return bytes(self._tail)

    def close(self) -> None:
        """End the thread and close the descriptors."""
        self._stop_writer.close()
        self._thread.join()
        self.forget()

    def forget(self) -> None:
        """Close the descriptors. For a forked copy of this process, which does not have the thread."""
        for file in (self._stop_writer, self._stop_reader, self._pipe):
            file.close()

    def _read_until_stopped(self) -> None:
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        poll.register(self._stop_reader, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._stop_reader.fileno() in ready or not self._read_available():
                return

    def _read_available(self) -> bool:
        """Read what the pipe contains, at most as much as a pipe can hold. Return False at the end of the output."""
        with self._lock:  # so that a block is in the tail before ``tail`` returns
            for _ in range(_LARGEST_PIPE // _BLOCK):
                try:
                    block = os.read(self._pipe.fileno(), _BLOCK)
                except BlockingIOError:
                    break
                if not block:
                    return False
                self._tail += block
                del self._tail[:-_STDERR_BYTES]
        return True


def _close_all(idle: list[_Runner]) -> None:
    while idle:
        idle.pop().close()


_ALL: weakref.WeakSet[ExternalSandbox] = weakref.WeakSet()


def _forget_all() -> None:
    for sandbox in list(_ALL):
        sandbox._forget()


os.register_at_fork(after_in_child=_forget_all)
