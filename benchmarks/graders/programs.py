"""Benchmark of the sandbox: verdicts on code cases, and programs per second.

    python benchmarks/grading.py programs --seconds 3    a table: our sandbox at each level, and alternatives

``benchmarks/grading.py cases FILE`` judges code cases with ``judge_code``. The alternatives start a process for each
test: a new Python interpreter; the same in bubblewrap, if it is installed; a multiprocessing manager and process, as
the graders of HumanEval and LiveCodeBench do. Only our sandbox and bubblewrap isolate a program.
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
"""Fields by which a code case is recognised."""
PROGRAMS = {
    "plain": "print(sum(map(int, input().split())))",
    "contest imports": "import sys, math, heapq, bisect, itertools, functools\nfrom collections import *\n"
    "print(sum(map(int, input().split())))",
    "numpy": "import numpy as np\nprint(np.array(input().split(), dtype=int).sum())",
}
TESTS = (1, 10, 50)
Runner = Callable[[str, list[tuple[str, str]]], bool]
"""Function of a program and the (input, output) of its tests; returns whether the program passes all tests."""


# ---- the cases


def judge_code(case: dict[str, Any]) -> tuple[str, float]:
    """Judge a code case; a hostile program in a private mount namespace.

    Args:
        case: Case with the fields that ``grading.py cases --help`` describes.

    Returns:
        What is wrong with the verdict (empty if nothing), and the seconds.
    """
    started = time.perf_counter()
    isolate = case.get("category") == "hostile" and not in_private_namespace()
    mistake = _judge_in_namespace(case) if isolate else _judge(case)
    return mistake, time.perf_counter() - started


def _judge(case: dict[str, Any]) -> str:
    limits = Limits(cpu_s=case.get("time_limit", 5))
    report = run_tests(
        case["program"], case["tests"], case["kind"], checker=case.get("checker"), limits=limits,
        prelude=case.get("prelude", case["kind"] == "call"), stop_early=True,
    )  # fmt: skip
    verdict = report.verdict()
    correct = case["expected"] == "any" or (verdict.score == 1.0) == (case["expected"] == "pass")
    if verdict.graded and correct:
        return ""
    return f"expected {case['expected']}, got {verdict.outcome} ({verdict.reason[:200]!a})"


def in_private_namespace() -> bool:
    """Return whether this process has a mount namespace of its own; False if that cannot be determined."""
    try:
        return Path("/proc/self/ns/mnt").readlink() != Path("/proc/1/ns/mnt").readlink()
    except OSError:
        return False


def _judge_in_namespace(case: dict[str, Any]) -> str:
    private = ["unshare", "-m", "--propagation", "private"]
    if os.geteuid() != 0:
        private = ["unshare", "-U", "--map-current-user", *private[1:]]
    if not shutil.which("unshare") or subprocess.run([*private, "true"], capture_output=True).returncode:
        return "not run: the program is hostile, and no private mount namespace can be made on this machine"
    words = [*private, sys.executable, str(Path(__file__).resolve()), "--judge"]
    done = subprocess.run(words, input=json.dumps(case), capture_output=True, text=True, timeout=300)
    return done.stdout if done.returncode == 0 else f"the judge failed: {done.stderr[-300:]}"


# ---- the speed


def ours(sandbox: LocalSandbox) -> Runner:
    """Return a runner for our sandbox, which calls the function that also grades."""

    def run(program: str, tests: list[tuple[str, str]]) -> bool:
        listed = [{"input": text, "output": expected} for text, expected in tests]
        return run_tests(program, listed, sandbox=sandbox).passed == len(tests)

    return run


def cold(prefix: Sequence[str] = ()) -> Runner:
    """Return a runner that starts a new interpreter for each test, after the words of ``prefix``."""

    def run(program: str, tests: list[tuple[str, str]]) -> bool:
        words = [*prefix, sys.executable, "-c", program]
        return all(
            subprocess.run(words, input=text, capture_output=True, text=True, timeout=60).stdout == expected
            for text, expected in tests
        )

    return run


def manager() -> Runner:
    """Return a runner that forks a process for each test, which appends its verdict to a list of a manager."""
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


def _execute(program: str, text: str, expected: str, results: Any) -> None:
    sys.stdin = io.StringIO(text)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(program, {"__name__": "__main__"})
    results.append(output.getvalue() == expected)


def bubblewrap() -> list[str]:
    """Return a command prefix: the interpreter's files are readable; there is no network, host process or home."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    folders = dict.fromkeys(("/usr", "/lib", "/lib64", sys.base_prefix, sys.prefix))
    return words + [word for folder in folders if Path(folder).exists() for word in ("--ro-bind", folder, folder)]


def runners() -> Iterator[tuple[str, Runner]]:
    """Yield (name, runner) for everything that works on this machine; report the rest on stderr."""
    for level in STRONG:
        try:
            sandbox = LocalSandbox(level)
            yield f"ours: {sandbox.level}", ours(sandbox)
        except SandboxUnavailable as reason:
            print(f"ours: {level}: not available ({reason})", file=sys.stderr)
    yield "cold python", cold()
    if shutil.which("bwrap") and not subprocess.run([*bubblewrap(), "true"], capture_output=True).returncode:
        yield "bubblewrap + python", cold(bubblewrap())
    else:
        print("bubblewrap: not installed, or not working on this machine", file=sys.stderr)
    yield "manager + process", manager()


def measure(runner: Runner, program: str, tests: int, workers: int, seconds: float) -> dict[str, Any]:
    """Run a program repeatedly in ``workers`` threads.

    Args:
        runner: How to run it.
        program: Source that prints the sum of its two inputs.
        tests: Number of tests per run.
        workers: Number of threads.
        seconds: Duration. Each thread does at least one run, after one that is not timed, which may start servers.

    Returns:
        Programs and tests per second, median and 99th percentile of a run in ms, and the number of wrong verdicts.
    """
    data = [(f"{n} {n + 1}\n", f"{2 * n + 1}\n") for n in range(tests)]
    together = threading.Barrier(workers)

    def first(_: int) -> bool:
        together.wait()  # all at once, so that each thread starts a server of its own
        return runner(program, data)

    with ThreadPoolExecutor(workers) as threads:
        wrong = workers - sum(threads.map(first, range(workers)))
    started = time.perf_counter()

    def work(_: int) -> list[tuple[float, bool]]:
        found: list[tuple[float, bool]] = []
        while time.perf_counter() - started < seconds or not found:
            before = time.perf_counter()
            passed = runner(program, data)
            found.append((time.perf_counter() - before, passed))
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
        "wrong": wrong + sum(not passed for _, passed in done),
    }


@contextlib.contextmanager
def busy(times: int) -> Iterator[None]:
    """Keep ``times`` busy processes per core alive in the block."""
    words = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(words) for _ in range(times * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_speed(seconds: float, load: int, write: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """Measure every program, number of tests and runner, and print a Markdown table.

    Args:
        seconds: Duration of each line.
        load: Busy processes per core during the measurement.
        write: Prints a line.
    """
    workers = os.cpu_count() or 1
    rows: list[dict[str, Any]] = []
    write("| program | tests | runner | programs/s | tests/s | p50 ms | p99 ms | wrong | vs cold |")
    write("|---|---|---|---|---|---|---|---|---|")
    compared = list(runners())
    with busy(load):
        for name, program in PROGRAMS.items():
            for tests in TESTS:
                group = [
                    {
                        "program": name,
                        "tests": tests,
                        "runner": label,
                        **measure(runner, program, tests, workers, seconds),
                    }
                    for label, runner in compared
                ]
                base = next(row["programs_per_s"] for row in group if row["runner"] == "cold python")
                for row in group:
                    write(_line(row, row["programs_per_s"] / base))
                rows += group
    return rows


def _line(row: dict[str, Any], ratio: float) -> str:
    numbers = f"{row['programs_per_s']:.1f} | {row['tests_per_s']:.0f} | {row['p50_ms']:.1f} | {row['p99_ms']:.1f}"
    return f"| {row['program']} | {row['tests']} | {row['runner']} | {numbers} | {row['wrong']} | {ratio:.1f} |"


def main(words: Sequence[str] | None = None) -> int:
    """Judge one case from standard input, in a process of its own (see ``_judge_in_namespace``). Return 0."""
    parser = argparse.ArgumentParser(prog="programs.py", description="Judge one code case, from standard input.")
    parser.add_argument("--judge", action="store_true", required=True, help="print what is wrong with the verdict")
    parser.parse_args(words)
    print(_judge(json.load(sys.stdin)), end="")
    return 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the speed table."""
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds for each line of the table (default: 3)")
    parser.add_argument(
        "--load", type=int, default=0, help="busy processes per core during the measurement (default: 0)"
    )


if __name__ == "__main__":
    sys.exit(main())
