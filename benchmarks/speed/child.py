"""A side of the comparison that runs in a child process, with the Python of an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.speed.comparison import Seconds

Settings = dict[str, Any]


class ChildSide:
    """Does the work of a cell in a child process, when it is called.

    The process reads its settings, a JSON object, from the first line of stdin. Each further line starts a repetition,
    which the process answers with a line "seconds S" on stdout. Of other output only the last line is kept, as the
    reason of a failure.

    Args:
        python: The Python of the child's environment.
        program: The program that it runs.
        settings: Returns the settings; it is called once, before the process starts. "threads" is its number of
            threads.
        times: Factor of the seconds, for a process that does a part of the work.
        environment: Environment variables beside those of this process.
    """

    def __init__(
        self,
        python: Path,
        program: Path,
        settings: Callable[[], Settings],
        times: int = 1,
        environment: dict[str, str] | None = None,
    ) -> None:
        self._command = [str(python), str(program)]
        self._settings, self._times, self._environment = settings, times, environment or {}
        self._process: subprocess.Popen[str] | None = None

    def __call__(self) -> Seconds:
        """Return the seconds of one repetition. The first call starts the process.

        Raises:
            RuntimeError: The process ended. The message is the last line of its output.
        """
        if self._process is None:
            self._process = self._start()
        assert self._process.stdout is not None
        self._write("")
        last = "no message"
        for line in self._process.stdout:
            if line.startswith("seconds "):
                return {"total": self._times * float(line.split()[1])}
            last = line.strip() or last
        raise RuntimeError(last)

    def _start(self) -> subprocess.Popen[str]:
        settings, pipe = self._settings(), subprocess.PIPE
        variables = {**os.environ, "OMP_NUM_THREADS": str(settings["threads"]), **self._environment}
        self._process = subprocess.Popen(
            self._command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True, errors="replace", env=variables
        )
        self._write(json.dumps(settings))
        return self._process

    def _write(self, line: str) -> None:
        """Send a line to the process. That of a process that has ended is dropped: its output tells the reason."""
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
