"""Programs: how quick is the sandbox, and are the verdicts on a case file right?

    python benchmarks/grading.py programs --seconds 3    a table: ours at each level, and what others do

``benchmarks/grading.py cases FILE`` judges the code cases with ``judge_code``. Rivals, each a fresh process for a test:
``python`` started cold; the same in bubblewrap, where it is installed; a multiprocessing manager and process, as the
HumanEval and LiveCodeBench graders have. Only the first two lines of the table put a wall around a program.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __package__ in (None, ""):
    sys.path.insert(0, str(ROOT))

from marft_envs.coding import run_tests  # noqa: E402
from marft_envs.sandbox import STRONG, Limits, LocalSandbox, SandboxUnavailable  # noqa: E402

FIELDS = frozenset(("program", "tests", "kind", "expected"))
"""What tells a code case."""
PROGRAMS = {
    "plain": "print(sum(map(int, input().split())))",
    "contest imports": "import sys, math, heapq, bisect, itertools, functools\nfrom collections import *\n"
    "print(sum(map(int, input().split())))",
    "numpy": "import numpy as np\nprint(np.array(input().split(), dtype=int).sum())",
}
TESTS = (1, 10, 50)
Runner = Callable[[str, list[tuple[str, str]]], bool]
"""(program, (input, output) of each test) -> whether all were passed."""


# ---- the cases


def judge_code(case: dict[str, Any]) -> tuple[str, float]:
    """("" or what is wrong with the verdict, seconds). A hostile program is judged in a private mount namespace."""
    started = time.perf_counter()
    apart = case.get("category") == "hostile" and not in_private_namespace()
    wrong = _judge_apart(case) if apart else _judge(case)
    return wrong, time.perf_counter() - started


def _judge(case: dict[str, Any]) -> str:
    limits = Limits(cpu_s=case.get("time_limit", 5))
    report = run_tests(
        case["program"], case["tests"], case["kind"], checker=case.get("checker"), limits=limits, stop_early=True
    )
    verdict = report.verdict()
    right = case["expected"] == "any" or (verdict.score == 1.0) == (case["expected"] == "pass")
    if verdict.graded and right:
        return ""
    return f"expected {case['expected']}, got {verdict.outcome} ({verdict.reason[:200]!a})"


def in_private_namespace() -> bool:
    """Whether mounts made here are seen by nobody else; a process that cannot be compared with the first is not."""
    try:
        return Path("/proc/self/ns/mnt").readlink() != Path("/proc/1/ns/mnt").readlink()
    except OSError:
        return False


def _judge_apart(case: dict[str, Any]) -> str:
    private = ["unshare", "-m", "--propagation", "private"]
    if os.geteuid() != 0:
        private = ["unshare", "-U", "--map-current-user", *private[1:]]
    if not shutil.which("unshare") or subprocess.run([*private, "true"], capture_output=True).returncode:
        return "not run: it is hostile, and no private mount namespace can be made here"
    words = [*private, sys.executable, str(Path(__file__).resolve()), "--judge"]
    done = subprocess.run(words, input=json.dumps(case), capture_output=True, text=True, timeout=300)
    return done.stdout if done.returncode == 0 else f"the judge failed: {done.stderr[-300:]}"


# ---- the speed


def ours(sandbox: LocalSandbox) -> Runner:
    """Our own sandbox, through the same function that grades."""

    def run(program: str, tests: list[tuple[str, str]]) -> bool:
        listed = [{"input": given, "output": wanted} for given, wanted in tests]
        return run_tests(program, listed, sandbox=sandbox).passed == len(tests)

    return run


def cold(prefix: Sequence[str] = ()) -> Runner:
    """A new interpreter for each test."""

    def run(program: str, tests: list[tuple[str, str]]) -> bool:
        words = [*prefix, sys.executable, "-c", program]
        return all(
            subprocess.run(words, input=given, capture_output=True, text=True, timeout=60).stdout == wanted
            for given, wanted in tests
        )

    return run


def manager() -> Runner:
    """A manager's list, and a forked process that executes the program and appends the verdict to it."""
    context = multiprocessing.get_context("fork")

    def run(program: str, tests: list[tuple[str, str]]) -> bool:
        for test in tests:
            with context.Manager() as server:
                results = server.list()
                process = context.Process(target=_execute, args=(program, *test, results))
                process.start()
                process.join(60)
                if list(results) != [True]:
                    return False
        return True

    return run


def _execute(program: str, given: str, wanted: str, results: Any) -> None:
    sys.stdin = io.StringIO(given)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(program, {"__name__": "__main__"})
    results.append(output.getvalue() == wanted)


def bubblewrap() -> list[str]:
    """A prefix that gives a program the interpreter's files, and no network, host process or home."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    places = dict.fromkeys(("/usr", "/lib", "/lib64", sys.base_prefix, sys.prefix))
    return words + [word for place in places if Path(place).exists() for word in ("--ro-bind", place, place)]


def runners() -> Iterator[tuple[str, Runner]]:
    """What can be compared here; what cannot is said."""
    for level in STRONG:
        try:
            sandbox = LocalSandbox(level)
            yield f"ours: {sandbox.level}", ours(sandbox)
        except SandboxUnavailable as reason:
            print(f"ours: {level}: not here ({reason})", file=sys.stderr)
    yield "cold python", cold()
    if shutil.which("bwrap") and not subprocess.run([*bubblewrap(), "true"], capture_output=True).returncode:
        yield "bubblewrap + python", cold(bubblewrap())
    else:
        print("bubblewrap: not installed, or it does not work here", file=sys.stderr)
    yield "manager + process", manager()


def measure(runner: Runner, program: str, tests: int, workers: int, seconds: float) -> dict[str, Any]:
    """Programs for about so many seconds, by ``workers`` threads. What each starts for its first is not timed."""
    data = [(f"{n} {n + 1}\n", f"{2 * n + 1}\n") for n in range(tests)]
    together = threading.Barrier(workers)

    def first(_: int) -> bool:
        together.wait()  # so that each has a server of its own afterwards
        return runner(program, data)

    with ThreadPoolExecutor(workers) as threads:
        wrong = workers - sum(threads.map(first, range(workers)))
    started = time.perf_counter()

    def work(_: int) -> list[tuple[float, bool]]:
        found: list[tuple[float, bool]] = []
        while time.perf_counter() - started < seconds or not found:
            before = time.perf_counter()
            right = runner(program, data)
            found.append((time.perf_counter() - before, right))
        return found

    with ThreadPoolExecutor(workers) as threads:
        done = [one for part in threads.map(work, range(workers)) for one in part]
    spent = time.perf_counter() - started
    times = sorted(1000 * one for one, _ in done)
    return {
        "programs_per_s": len(done) / spent,
        "tests_per_s": tests * len(done) / spent,
        "p50_ms": statistics.median(times),
        "p99_ms": times[min(len(times) - 1, int(0.99 * len(times)))],
        "wrong": wrong + sum(not right for _, right in done),
    }


@contextlib.contextmanager
def busy(times: int) -> Iterator[None]:
    """So many busy processes for each core."""
    words = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(words) for _ in range(times * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_speed(seconds: float, load: int, say: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """A line for each program, number of tests and runner; load: busy processes for each core beside them."""
    workers = os.cpu_count() or 1
    rows: list[dict[str, Any]] = []
    say("| program | tests | runner | programs/s | tests/s | p50 ms | p99 ms | wrong | vs cold |")
    say("|---|---|---|---|---|---|---|---|---|")
    compared = list(runners())
    with busy(load):
        for name, program in PROGRAMS.items():
            for tests in TESTS:
                cell = [
                    {"program": name, "tests": tests, "runner": who, **measure(how, program, tests, workers, seconds)}
                    for who, how in compared
                ]
                base = next(row["programs_per_s"] for row in cell if row["runner"] == "cold python")
                for row in cell:
                    say(_line(row, row["programs_per_s"] / base))
                rows += cell
    return rows


def _line(row: dict[str, Any], ratio: float) -> str:
    numbers = f"{row['programs_per_s']:.1f} | {row['tests_per_s']:.0f} | {row['p50_ms']:.1f} | {row['p99_ms']:.1f}"
    return f"| {row['program']} | {row['tests']} | {row['runner']} | {numbers} | {row['wrong']} | {ratio:.1f} |"


def main(words: Sequence[str] | None = None) -> int:
    """Judge one case in a process apart (see ``_judge_apart``); 0."""
    parser = argparse.ArgumentParser(prog="code_grading.py", description="Judge one code case, from standard input.")
    parser.add_argument("--judge", action="store_true", required=True, help="print what is wrong with the verdict")
    parser.parse_args(words)
    print(_judge(json.load(sys.stdin)), end="")
    return 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Those of the speed table."""
    parser.add_argument("--seconds", type=float, default=3.0, help="for each line of the table (default 3)")
    parser.add_argument("--load", type=int, default=0, help="busy processes for each core, beside (default 0)")


if __name__ == "__main__":
    sys.exit(main())
