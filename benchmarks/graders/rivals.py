"""Graders to compare: functions from an item to True, False or None (failed) and seconds; and their measurement."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from benchmarks.graders.inputs import Item
from marft_envs.mathematics import grade

START_S = 60.0
Judge = Callable[[Item], tuple[bool | None, float]]

_SERVER = r"""
import json, sys, time
from math_verify import parse, verify
for line in sys.stdin:
    reply, gold = json.loads(line)
    started = time.perf_counter()
    try:
        result = bool(verify(parse("$" + gold + "$"), parse(reply)))
    except BaseException:
        result = None
    print(json.dumps([result, time.perf_counter() - started]), flush=True)
"""


def ours(item: Item) -> tuple[bool | None, float]:
    """Grade with ``marft_envs.mathematics.grade``."""
    started = time.perf_counter()
    verdict = grade(item.reply, item.gold)
    return (verdict.score == 1.0 if verdict.graded else None), time.perf_counter() - started


def strings(item: Item) -> tuple[bool | None, float]:
    """Compare the contents of the last ``\\boxed`` with the gold, as strings."""
    started = time.perf_counter()
    _, _, tail = item.reply.rpartition(r"\boxed{")
    return tail.rpartition("}")[0] == item.gold, time.perf_counter() - started


class MathVerify:
    """math-verify with its default settings, in a process of its own.

    Its timeouts use signals, so it runs in the main thread of that process. Seconds are measured inside the process.

    Args:
        hang_s: Seconds after which the process is killed and the reply counts as failed.
    """

    def __init__(self, hang_s: float) -> None:
        self.hang_s = hang_s
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> MathVerify:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def judge(self, item: Item) -> tuple[bool | None, float]:
        """Return math-verify's verdict and seconds.

        Returns:
            (verdict, seconds); the verdict is None if the process was killed or died.

        Raises:
            ImportError: math-verify is not installed.
        """
        return self._exchange(self.process or self._start(), item, self.hang_s)

    def _exchange(self, process: subprocess.Popen[str], item: Item, limit_s: float) -> tuple[bool | None, float]:
        assert process.stdin is not None and process.stdout is not None
        started = time.perf_counter()
        try:
            process.stdin.write(json.dumps([item.reply, item.gold]) + "\n")
            process.stdin.flush()
            ready = select.select([process.stdout], [], [], limit_s)[0]
            line = process.stdout.readline() if ready else ""
        except OSError:
            line = ""
        if not line:
            self._stop()
            return None, time.perf_counter() - started
        result, seconds = json.loads(line)
        return result, float(seconds)

    def _start(self) -> subprocess.Popen[str]:
        process = self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        # The first reply includes the imports, which are not part of the measured time.
        first, _ = self._exchange(process, Item(r"\boxed{1}", "1", True), START_S)
        if first is None:
            raise ImportError("math-verify does not start; install it with: pip install '.[math]' in the repository")
        return process

    def _stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    pipe.close()
            self.process.wait()
            self.process = None


def measure(judge: Judge, items: Sequence[Item]) -> dict[str, Any]:
    """Grade all items in order.

    Returns:
        Number of answers, answers per second, median and 99th percentile in ms, worst time in s, and the numbers of
        false accepts, false rejects and failures.
    """
    seconds, accepted, rejected, failed = [], 0, 0, 0
    for item in items:
        result, taken = judge(item)
        seconds.append(taken)
        failed += result is None
        accepted += result is True and not item.correct
        rejected += result is False and item.correct
    ordered = sorted(seconds)
    return {
        "answers": len(items),
        "per_s": len(items) / max(sum(seconds), 1e-9),
        "p50_ms": ordered[len(ordered) // 2] * 1e3,
        "p99_ms": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] * 1e3,
        "worst_s": ordered[-1],
        "false_accepts": accepted,
        "false_rejects": rejected,
        "failed": failed,
    }
