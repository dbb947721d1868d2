"""Our own sandbox: a fresh locked process of a warm fork server for each test, on this machine."""

from __future__ import annotations

import logging
import os
import re
import secrets
import select
import socket
import warnings
from collections.abc import Sequence
from dataclasses import replace

from marft_envs.sandbox.host import Report, Server, ServerDied, send_spec
from marft_envs.sandbox.memory_files import Files, read
from marft_envs.sandbox.pool import LEVELS, STRONG, UNSAFE, Pool, numpy_folder
from marft_envs.sandbox.records import (
    DEFAULT_LIMITS,
    Asserts,
    Call,
    Ending,
    Limits,
    Result,
    Run,
    Stdin,
    Test,
    UnsafeSandbox,
)

_NUMPY = re.compile(r"\bnumpy\b")
_TRACE_BYTES = 4096
_SIGKILL = -9
_HARM = "programs run with resource limits only, and can harm this host"
_log = logging.getLogger(__name__)


class LocalSandbox:
    """Programs in processes of this machine, each locked by Landlock, seccomp and limits, and where the host allows it
    inside namespaces.

    level: "namespace" or "landlock"; None for the strongest that holds. allow_unsafe: run even where no wall holds,
    or with level="rlimits"; warns at every run. Nothing is started before the first run. Threads may share it.
    """

    def __init__(self, level: str | None = None, *, allow_unsafe: bool = False) -> None:
        if level not in (None, *LEVELS):
            raise ValueError(f"level={level!r}: expected one of {', '.join(LEVELS)} or None")
        if level == UNSAFE and not allow_unsafe:
            raise ValueError(f"level={level!r}: it is no wall at all; say allow_unsafe=True if that is acceptable")
        self.allow_unsafe = allow_unsafe
        self._pool = Pool(level)

    @property
    def level(self) -> str:
        """The level in use. Raises SandboxUnavailable where none holds."""
        if not self.allow_unsafe or self._pool._wanted is not None:
            return self._pool.level
        try:
            return self._pool.level
        except Exception as refusal:
            warnings.warn(f"no wall holds on this host ({refusal})", UnsafeSandbox, stacklevel=2)
            self._pool = Pool(UNSAFE)
            return self._pool.level

    def run(
        self,
        program: str,
        tests: Sequence[Test],
        limits: Limits = DEFAULT_LIMITS,
        *,
        prelude: bool = False,
    ) -> Result:
        """Every test in a fresh process. prelude: whether the customary imports are there before the program.

        A run whose server died is repeated once, then it is a FAULT. Raises SandboxUnavailable, and only that.
        """
        level = self.level
        if level not in STRONG:
            warnings.warn(_HARM, UnsafeSandbox, stacklevel=2)  # Python may show it once for each line
            _log.warning(_HARM)
        return Result(tuple(self._run_twice(program, test, limits, prelude) for test in tests), level)

    def close(self) -> None:
        """End the idle servers; the next run starts new ones."""
        self._pool.close()

    def _run_twice(self, program: str, test: Test, limits: Limits, prelude: bool) -> Run:
        for attempt in (1, 2):
            try:
                return self._run(program, test, limits, prelude)
            except ServerDied as death:
                if attempt == 2:
                    return Run(Ending.FAULT, detail=f"the server died twice: {death}")
        raise AssertionError("unreachable")

    def _run(self, program: str, test: Test, limits: Limits, prelude: bool) -> Run:
        kind = "numpy" if _NUMPY.search(program) and numpy_folder() else "slim"
        spec = {"source": program, "prelude": prelude}
        with Files() as files, self._pool.borrow(kind) as server:
            if isinstance(test, Asserts):
                with self._pool.borrow("tester") as tester:
                    return _run_asserts(server, tester, spec, test, limits, files)
            out, err, value = files.empty(), files.empty(), files.empty()
            if isinstance(test, Stdin):
                spec |= {"role": "main"}
                given, more = test.text.encode("utf-8", "replace"), []
            else:
                spec |= {"role": "call", "function": test.function, "arguments": test.arguments}
                given, more = b"", [value]
            server.begin(limits, [files.sealed(send_spec(spec)), files.sealed(given), out, err, *more])
            run = _ended(server.wait(limits), out, err, limits, value)
            if isinstance(test, Call):
                run = replace(run, value=read(value, limits.output_mib << 20).decode("utf-8", "replace"))
            return run


def _ended(report: Report, out: int, err: int, limits: Limits, *more: int) -> Run:
    """What a child left, named by how it ended. more: other files that it wrote."""
    most = limits.output_mib << 20
    full = any(os.fstat(descriptor).st_size >= most for descriptor in (out, err, *more))
    stdout = read(out, most)
    trace = read(err, _TRACE_BYTES, tail=True).decode("utf-8", "replace")
    last_line = next((line for line in reversed(trace.splitlines()) if line.strip()), "").strip()[:300]
    ending, detail = _name_of(report, full, last_line, limits)
    return Run(ending, stdout.decode("utf-8", "replace"), "", detail, report.cpu_s, report.wall_s)


def _name_of(report: Report, full: bool, last_line: str, limits: Limits) -> tuple[Ending, str]:
    if report.ended == "undecided":
        return Ending.FAULT, f"after {report.wall_s:.0f} s still at work with {report.cpu_s:.1f} s of CPU time"
    if report.ended.startswith("fault"):
        return Ending.FAULT, report.ended
    if report.ended in ("cpu", "idle") or report.cpu_s > limits.cpu_s:
        used = f"{report.cpu_s:.2f} s of CPU time, limit {limits.cpu_s:g} s"
        return Ending.TIMEOUT, f"idle for too long ({used})" if report.ended == "idle" else used
    if full:
        return Ending.OUTPUT_LIMIT, f"wrote {limits.output_mib} MiB"
    if report.status == 0:
        return Ending.DONE, ""
    if last_line.startswith("MemoryError"):
        return Ending.MEMORY, f"more than {limits.memory_mib} MiB"
    if report.ended == "by itself" and report.status == _SIGKILL:
        return Ending.FAULT, "killed from outside, perhaps for want of memory on the host"
    return Ending.RUNTIME_ERROR, last_line or f"exit code {report.status}"


def _run_asserts(
    server: Server, tester: Server, spec: dict[str, object], test: Asserts, limits: Limits, files: Files
) -> Run:
    """The program in one process, the tests in another; what the tester's own file says is the result."""
    ours, theirs = socket.socketpair()
    token = secrets.token_hex(16)
    served = {"role": "serve", **spec}
    tests: dict[str, object] = {"role": "test", "source": test.code, "function": test.function, "token": token}
    tests["builtins"] = list(test.builtins)
    out, err, tester_out, tester_err, said = (files.empty() for _ in range(5))
    nothing = files.sealed(b"")
    with ours, theirs:
        server.begin(limits, [files.sealed(send_spec(served)), nothing, out, err, theirs.fileno()])
        tester.begin(limits, [files.sealed(send_spec(tests)), nothing, tester_out, tester_err, ours.fileno(), said])
    select.select([tester], [], [], 10.5 * limits.wall_s)
    tested = tester.wait(limits)
    server.kill_run()
    report = server.wait(limits)
    run = _ended(report, out, err, limits)
    verdict = read(said, 4096).decode("utf-8", "replace")
    if verdict == token and tested.ended == "by itself":
        return replace(run, ending=Ending.DONE, detail="")
    if tested.ended.startswith(("fault", "undecided")):
        return replace(run, ending=Ending.FAULT, detail=f"the tester: {tested.ended}")
    if verdict.startswith("wrong"):
        return replace(run, ending=Ending.WRONG, detail=f"AssertionError {verdict[5:]}"[:300].strip())
    if report.ended in ("killed", "by itself") and verdict.startswith("error"):
        return replace(run, ending=Ending.RUNTIME_ERROR, detail=verdict[6:300])
    if run.ending is Ending.DONE or report.ended == "killed":
        return replace(run, ending=Ending.RUNTIME_ERROR, detail=verdict[:300] or f"the tests ended: {tested.ended}")
    return run
