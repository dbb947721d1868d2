"""Sandbox on this machine: each test runs in a new confined process, forked from a warm server."""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import warnings
from collections.abc import Sequence
from dataclasses import replace

from marft_envs.sandbox.fork_server import WALL_LIMITS, ForkServer, RunLost, ServerReport, encode_spec
from marft_envs.sandbox.memory_files import MemoryFiles, read_file
from marft_envs.sandbox.records import (
    DEFAULT_LIMITS,
    Asserts,
    Call,
    Limits,
    ProgramRun,
    Result,
    RunStatus,
    SandboxUnavailable,
    Stdin,
    Test,
    UnsafeSandboxWarning,
)
from marft_envs.sandbox.server_pool import LEVELS, STRONG, UNSAFE, Pool, numpy_folder

_NUMPY = re.compile(r"\b(numpy|np)\b")
_TRACE_BYTES = 4096
# A program waits for its tester between two calls, and the tester for the program during a call; the load of the
# machine decides how long. The program is undecided after ten wall limits at most; the tester's limit must come later.
_PATIENCE_WITH_TESTER, _PATIENCE_OF_TESTER = 3.0, 10.3
_UNSAFE_MESSAGE = "programs run with resource limits only and can harm this host"
_log = logging.getLogger(__name__)


class LocalSandbox:
    """Sandbox that runs programs in confined processes of this machine.

    Landlock, a seccomp filter and resource limits confine each process. Where the host permits it, the process is also
    inside namespaces. No process is started before the first run. Threads may share one sandbox.

    Args:
        level: Isolation level, "namespace" or "landlock"; None for the strongest one that is available on this host.
        allow_unsafe: Run programs without isolation if no level is available, or with level="rlimits". Warns at every
            run.

    Raises:
        ValueError: If ``level`` is unknown, or is "rlimits" without ``allow_unsafe=True``.
    """

    def __init__(self, level: str | None = None, *, allow_unsafe: bool = False) -> None:
        if level not in (None, *LEVELS):
            raise ValueError(f"level={level!r}: expected one of {', '.join(LEVELS)} or None")
        if level == UNSAFE and not allow_unsafe:
            raise ValueError(
                f"level={level!r} does not isolate programs: pass allow_unsafe=True as well if they may harm this host"
            )
        self.allow_unsafe = allow_unsafe
        self._pool = Pool(level)

    @property
    def level(self) -> str:
        """The isolation level in use. Raises SandboxUnavailable if none is available."""
        try:
            try:
                return self._pool.level
            except SandboxUnavailable as refusal:
                if not self.allow_unsafe or self._pool.requested_level is not None:
                    raise
                warnings.warn(
                    f"no isolation level is available on this host ({refusal})", UnsafeSandboxWarning, stacklevel=2
                )
                self._pool = Pool(UNSAFE)
                return self._pool.level
        except (OSError, RunLost) as fault:
            raise SandboxUnavailable(f"this process cannot start the sandbox: {fault}") from fault

    @property
    def limited_by(self) -> str:
        """What limits memory and threads of programs beside the resource limits: "cgroup", or "counting" alone.

        It is "cgroup" where this process may create cgroups (version 2), see docs/grading.md. Elsewhere a log record of
        level INFO has the reason. Raises SandboxUnavailable if no isolation level is available.
        """
        return self._pool.limited_by if self.level else ""

    def run(
        self,
        program: str,
        tests: Sequence[Test],
        limits: Limits = DEFAULT_LIMITS,
        *,
        prelude: bool = False,
    ) -> Result:
        """Run the program once for each test, in a new process each time.

        A run whose server or process is killed is repeated once; if that happens again, the status of the run is FAULT.
        So it is if this process has no descriptor or memory left for the run.

        Args:
            program: Source of a Python program.
            tests: The tests.
            limits: Limits of each run.
            prelude: Whether the imports that are customary in programming contests precede the program.

        Returns:
            One run for each test, and the isolation level.

        Raises:
            SandboxUnavailable: If no isolation level is available. No other exception is raised.
        """
        level = self.level
        if level not in STRONG:
            warnings.warn(_UNSAFE_MESSAGE, UnsafeSandboxWarning, stacklevel=2)
            _log.warning(_UNSAFE_MESSAGE)  # Python shows a warning once for each line of code, so log it as well
        return Result(tuple(self._run_twice(program, test, limits, prelude) for test in tests), level)

    def close(self) -> None:
        """End the idle servers. The next run starts new ones."""
        self._pool.close()

    def _run_twice(self, program: str, test: Test, limits: Limits, prelude: bool) -> ProgramRun:
        detail = ""
        for repeated in (False, True):
            try:
                return self._run(program, test, limits, prelude, repeated)
            except RunLost as loss:
                detail = f"{loss.event} twice: {loss}"
            except OSError as fault:
                return ProgramRun(RunStatus.FAULT, detail=f"this process cannot run the program: {fault}")
        return ProgramRun(RunStatus.FAULT, detail=detail)

    def _run(self, program: str, test: Test, limits: Limits, prelude: bool, repeated: bool) -> ProgramRun:
        """Run the program once. repeated: use new servers. Raises RunLost if there is no result."""
        sources = program + test.code if isinstance(test, Asserts) else program
        kind, tester_kind = (
            ("numpy", "numpy tester") if _NUMPY.search(sources) and numpy_folder() else ("slim", "tester")
        )
        spec = {"source": program, "prelude": prelude}
        with self._pool.borrow(kind, new=repeated) as server:
            # The files are closed before a server runs the next program, in whose cgroup their memory would count.
            if isinstance(test, Asserts):
                with self._pool.borrow(tester_kind, new=repeated) as tester, MemoryFiles() as files:
                    return _run_asserts(server, tester, spec, test, limits, files)
            with MemoryFiles() as files:
                return _run_alone(server, spec, test, limits, files)


def _run_alone(
    server: ForkServer, spec: dict[str, object], test: Stdin | Call, limits: Limits, files: MemoryFiles
) -> ProgramRun:
    """Run the program in one process."""
    stdout, stderr, value = files.empty(), files.empty(), files.empty()
    if isinstance(test, Stdin):
        spec |= {"role": "main", "crlf": "\r\n" in test.text}
        stdin, others = test.text.encode("utf-8", "replace"), []
    else:
        spec |= {"role": "call", "function": test.function, "arguments": test.arguments}
        stdin, others = b"", [value]
    server.begin(limits, [files.sealed(encode_spec(spec)), files.sealed(stdin), stdout, stderr, *others])
    run = _as_run(server.wait(limits), stdout, stderr, limits, value)
    if isinstance(test, Call):
        run = replace(run, value=read_file(value, limits.output_mib << 20).decode("utf-8", "replace"))
    return run


def _as_run(report: ServerReport, stdout: int, stderr: int, limits: Limits, *others: int) -> ProgramRun:
    """Return the run that a report and the child's output files describe. others: further output files."""
    max_bytes = limits.output_mib << 20
    full = any(os.fstat(descriptor).st_size >= max_bytes for descriptor in (stdout, stderr, *others))
    output = read_file(stdout, max_bytes)
    trace = read_file(stderr, _TRACE_BYTES, tail=True).decode("utf-8", "replace")
    last_line = next((line for line in reversed(trace.splitlines()) if line.strip()), "").strip()[:300]
    status, detail = _status_of(report, full, last_line, limits)
    return ProgramRun(status, output.decode("utf-8", "replace"), "", detail, report.cpu_s, report.wall_s)


def _status_of(report: ServerReport, full: bool, last_line: str, limits: Limits) -> tuple[RunStatus, str]:
    """Return (status, detail). full: an output file reached its limit. last_line: the last line of stderr.

    Raises:
        RunLost: If the host killed the process.
    """
    if report.end_reason == "undecided":
        return RunStatus.FAULT, f"still busy after {report.wall_s:.0f} s with {report.cpu_s:.1f} s of CPU time"
    if report.end_reason.startswith("fault"):
        return RunStatus.FAULT, report.end_reason
    if report.end_reason in ("cpu", "idle") or report.cpu_s > limits.cpu_s:
        used = f"{report.cpu_s:.2f} s of CPU time, limit {limits.cpu_s:g} s"
        return RunStatus.TIMEOUT, f"idle for too long ({used})" if report.end_reason == "idle" else used
    if full:
        return RunStatus.OUTPUT_LIMIT, f"wrote {limits.output_mib} MiB"
    if report.end_reason == "memory" or (report.exit_code != 0 and last_line.startswith("MemoryError")):
        return RunStatus.MEMORY, f"more than {limits.memory_mib} MiB"
    if report.end_reason == "threads":
        return RunStatus.RUNTIME_ERROR, "too many threads"
    if report.exit_code == 0:
        return RunStatus.DONE, ""
    _check_not_killed(report)
    return RunStatus.RUNTIME_ERROR, last_line or f"exit code {report.exit_code}"


def _check_not_killed(report: ServerReport) -> None:
    """Raise RunLost if the host killed the process."""
    if report.was_killed_by_the_host:
        raise RunLost("killed by another process of the host, possibly because its memory was exhausted")


def _run_asserts(
    server: ForkServer,
    tester: ForkServer,
    spec: dict[str, object],
    test: Asserts,
    limits: Limits,
    files: MemoryFiles,
) -> ProgramRun:
    """Run the program in one process and the assertions in another. The result is in a file of the tester process."""
    program_end, tester_end = socket.socketpair()
    token = secrets.token_hex(16)
    program_spec = {"role": "serve", **spec}
    tester_spec: dict[str, object] = {"role": "test", "source": test.code, "function": test.function, "token": token}
    tester_spec |= {"builtins": list(test.builtins), "classes": test.classes}
    stdout, stderr, tester_stdout, tester_stderr, result_file = (files.empty() for _ in range(5))
    stdin = files.sealed(b"")
    with program_end, tester_end:
        program_files = [files.sealed(encode_spec(program_spec)), stdin, stdout, stderr, program_end.fileno()]
        server.begin(limits, program_files, _PATIENCE_WITH_TESTER)
        tester_files = [stdin, tester_stdout, tester_stderr, tester_end.fileno(), result_file]
        tester.begin(limits, [files.sealed(encode_spec(tester_spec)), *tester_files], _PATIENCE_OF_TESTER)
    tester.has_report(WALL_LIMITS * limits.wall_s)
    tester_report = tester.wait(limits)
    server.kill_run()
    report = server.wait(limits)
    _check_not_killed(tester_report)
    run = _as_run(report, stdout, stderr, limits)
    result = read_file(result_file, 4096).decode("utf-8", "replace")
    if result == token and tester_report.end_reason == "by itself":
        return replace(run, status=RunStatus.DONE, detail="")
    if result.startswith("fault"):
        return replace(run, status=RunStatus.FAULT, detail=result[6:300])
    if tester_report.end_reason.startswith(("fault", "undecided")):
        return replace(run, status=RunStatus.FAULT, detail=f"the tester: {tester_report.end_reason}")
    if result.startswith("wrong"):
        return replace(run, status=RunStatus.WRONG, detail=f"AssertionError {result[5:]}"[:300].strip())
    if report.end_reason in ("killed", "by itself") and result.startswith("error"):
        return replace(run, status=RunStatus.RUNTIME_ERROR, detail=result[6:300])
    if run.status is RunStatus.DONE or report.end_reason == "killed":
        detail = result[:300] or f"the tests ended: {tester_report.end_reason}"
        return replace(run, status=RunStatus.RUNTIME_ERROR, detail=detail)
    return run
