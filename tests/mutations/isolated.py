"""Tests of a copy of the repository in a process of its own, forked from one that has imported torch already.

Importing torch, transformers and peft takes longer than most tests of the list.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

PASSED, CAUGHT, ERROR = "passed", "caught", "ERROR"
PRELOADED = ["torch", "transformers.models.llama.modeling_llama", "peft", "pytest", "hypothesis"]


@dataclass(frozen=True)
class Result:
    """The result of some tests.

    Attributes:
        outcome: ``PASSED``, ``CAUGHT`` if a test failed, or ``ERROR`` if the tests could not run.
        detail: The first test that failed and its message, or the reason of an error.
    """

    outcome: str
    detail: str


def run_tests(folder: Path, tests: Sequence[str], limit_s: float) -> Result:
    """Run tests of a copy of the repository until one fails.

    Args:
        folder: The copy.
        tests: Files or node ids.
        limit_s: Seconds after which the process is killed.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(str(folder), list(tests), sender))
    process.start()
    sender.close()
    try:
        if not receiver.poll(limit_s):
            process.kill()
            return Result(ERROR, f"no result after {limit_s:.0f} s")
        return Result(*receiver.recv())
    except EOFError:
        return Result(ERROR, "the process ended without a result")
    finally:
        process.join()
        receiver.close()


def _child(folder: str, tests: list[str], sender: Connection) -> None:
    """Run pytest in the copy and send (outcome, detail)."""
    import pytest

    os.chdir(folder)
    # The copy precedes the checkout on the path; pytest also puts its root folder there.
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    first = _FirstFailure()
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--rootdir", folder, "-c", f"{folder}/pyproject.toml"]
    code = pytest.main([*options, *tests], plugins=[first])
    import baselines

    if not str(baselines.__file__).startswith(folder):
        sender.send((ERROR, f"the tests imported {baselines.__file__}, expected the copy in {folder}"))
    elif code == pytest.ExitCode.OK:
        sender.send((PASSED, f"no test of {', '.join(tests)} fails"))
    elif code == pytest.ExitCode.TESTS_FAILED and first.failure:
        sender.send((CAUGHT, first.failure))
    else:
        sender.send((ERROR, f"pytest ended with {code!r}: {first.failure}"))


class _FirstFailure:
    """A plugin of pytest that stores the first failure: the test and the first line of its message."""

    failure = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failure:
            self.failure = f"{report.nodeid.removeprefix('tests/baselines/')}: {_message(report)}"

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.failure:
            self.failure = f"{report.nodeid} cannot be collected: {str(report.longrepr).splitlines()[-1]}"


def _message(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else str(report.longrepr)).splitlines()
    return lines[0].removeprefix("AssertionError: ") if lines else ""
