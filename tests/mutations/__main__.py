"""Apply every listed mutation to a copy of the repository, run its tests, and print which test caught it.

    python -m tests.mutations            # all of them, two at a time
    python -m tests.mutations clip gate  # those whose name contains one of the words

Duration: a mutation takes as long as the tests that must catch it, and its line says how long; after 300 s they are
stopped, and it is not caught. All of them take the sum of these times, divided by --jobs.

Exit codes: 0, every mutation is caught; 1, one is not caught or does not apply, or a test fails without any mutation;
2, a wrong option.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from tests.mutations.isolated import CAUGHT, PASSED, Result, run_tests
from tests.mutations.listed import ROOT, Mutation, load

COPIED = ("baselines", "benchmarks", "marft_envs", "tests", "examples", "pyproject.toml")
LIMIT_S = 300.0  # for the tests of one mutation; a fault may loop for ever


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="run the mutations whose name contains one of these words")
    parser.add_argument("--jobs", type=int, default=2, help="mutations at a time (default: 2)")
    options = parser.parse_args(arguments)
    chosen = [m for m in load() if not options.words or any(word in m.name for word in options.words)]
    if not chosen:
        parser.error(f"words={options.words}: no mutation has one of them in its name")
    if options.jobs < 1:
        parser.error(f"--jobs={options.jobs}: expected at least 1")
    os.environ["OMP_NUM_THREADS"] = "1"
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="marft-mutations-") as folder:
        copies: Queue[Path] = Queue()
        for number in range(options.jobs):
            copies.put(copy_repository(Path(folder) / str(number)))
        with ThreadPoolExecutor(options.jobs) as threads:
            unmutated = threads.submit(failure_without_mutation, chosen, copies)
            results = list(threads.map(lambda m: run_mutation(m, copies), chosen))
            failure = unmutated.result()
    failed = [m.name for m, result in zip(chosen, results, strict=True) if result.outcome != CAUGHT]
    print(f"\n{len(chosen) - len(failed)} of {len(chosen)} mutations caught in {time.perf_counter() - start:.0f} s")
    for name in failed:
        print(f"not caught: {name}")
    if failure:
        print(f"without a mutation a test fails, so nothing above counts: {failure}")
    return int(bool(failed or failure))


def copy_repository(folder: Path) -> Path:
    """Copy what the tests need into a new folder and return it."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def failure_without_mutation(mutations: list[Mutation], copies: Queue[Path]) -> str:
    """Run the tests of all mutations on an unchanged copy and return the first failure; "" if all pass."""
    folder = copies.get()
    try:
        tests = list(dict.fromkeys(test for mutation in mutations for test in mutation.tests))
        result = run_tests(folder, tests, 5 * LIMIT_S)
        return "" if result.outcome == PASSED else f"{result.outcome} {result.detail}"
    finally:
        copies.put(folder)


def run_mutation(mutation: Mutation, copies: Queue[Path]) -> Result:
    """Apply one mutation to a copy, run its tests, print a row of the table, and return the result."""
    folder, start = copies.get(), time.perf_counter()
    path = folder / mutation.file
    text = path.read_text()
    try:
        problem = mutation.problem(text)
        if problem:
            result = Result("DOES NOT APPLY", problem)
        else:
            path.write_text(mutation.apply(text))
            result = run_tests(folder, mutation.tests, LIMIT_S)
    finally:
        path.write_text(text)
        copies.put(folder)
    outcome = "NOT CAUGHT" if result.outcome == PASSED else result.outcome
    print(f"{outcome:10} {time.perf_counter() - start:5.1f} s  {mutation.name}: {result.detail}", flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
