"""The verdict on every case, of the files in tests/cases and of a shared file, is correct at every isolation level.

The hostile programs run only in the sandbox under test, in a separate process in a private mount namespace, which this
test starts: ``python test_cases.py LEVEL``.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
OWN = ("code_cases", "assert_cases", "found_code_cases")
FILES = (
    ROOT.parent / "shared" / "cases" / "code_cases.jsonl",
    *(ROOT / "tests" / "cases" / f"{name}.jsonl" for name in OWN),
)
PRIVATE = ["unshare", "-m", "--propagation", "private"]
if os.geteuid() != 0:
    PRIVATE = ["unshare", "-U", "--map-current-user", *PRIVATE[1:]]


def read_cases():
    texts = [path.read_text(encoding="utf-8") for path in FILES if path.is_file()]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def as_parameter(case):
    """Return a case as a parameter. One that is decided the other way, with the reason in the file, must fail."""
    marks = [pytest.mark.xfail(strict=True, reason=case["decided"])] if "decided" in case else []
    return pytest.param(case, id=case["id"], marks=marks)


def start(level):
    """Start a process that grades all cases at one level, in a private mount namespace."""
    if not shutil.which("unshare") or subprocess.run([*PRIVATE, "true"], capture_output=True).returncode:
        pytest.skip("this machine allows no private mount namespace")
    return subprocess.Popen(
        [*PRIVATE, sys.executable, __file__, level],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


started = functools.cache(start)


def verdicts_of(process, timeout_s):
    """Return case id -> (outcome, score, reason, isolation)."""
    out, err = process.communicate(timeout=timeout_s)
    assert process.returncode == 0, err[-2000:]
    return json.loads(out)


@functools.cache
def verdicts(level):
    """Return the verdicts of a level."""
    return verdicts_of(started(level), 300)


@pytest.mark.xdist_group("code_cases")  # one process grades all cases of a level
@pytest.mark.parametrize("level", ["namespace", pytest.param("landlock", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", [as_parameter(case) for case in read_cases()])
def test_the_verdict_is_correct(case, level):
    outcome, score, reason, isolation = verdicts(level)[case["id"]]
    assert outcome != "not_graded", reason
    assert case["expected"] == "any" or (score == 1.0) == (case["expected"] == "pass"), (
        outcome,
        reason,
        case.get("reason"),
    )
    assert isolation == level


@pytest.mark.slow
def test_verdicts_are_the_same_on_a_machine_loaded_to_four_times_its_cores():
    """The busy processes are sessions of their own: Linux divides the cores among sessions first."""
    before = verdicts("namespace")
    words = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(words, start_new_session=True) for _ in range(4 * (os.cpu_count() or 1))]
    try:
        loaded = verdicts_of(start("namespace"), 1500)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert {key: verdict[:2] for key, verdict in loaded.items()} == {
        key: verdict[:2] for key, verdict in before.items()
    }


def test_the_shared_case_file_exists():
    if not FILES[0].is_file():
        pytest.skip(f"NO CASES: {FILES[0]} does not exist, so none of its cases was graded")
    assert len(read_cases()) >= 47 + 90


def main(level):
    from marft_envs.coding import run_tests
    from marft_envs.sandbox import Limits, LocalSandbox

    sandbox, found = LocalSandbox(level), {}
    for case in read_cases():
        limits = Limits(cpu_s=case.get("time_limit", 5))
        report = run_tests(
            case["program"], case["tests"], case["kind"], checker=case.get("checker"), limits=limits, sandbox=sandbox,
            prelude=case.get("prelude", case["kind"] == "call"), stop_early=True,
        )  # fmt: skip
        verdict = report.verdict()
        found[case["id"]] = (verdict.outcome.value, verdict.score, verdict.reason, verdict.isolation)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
