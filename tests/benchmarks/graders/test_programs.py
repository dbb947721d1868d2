"""Verdicts on code cases, and the speed table: every runner grades a few programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import grading
from benchmarks.graders import programs
from marft_envs.sandbox import LocalSandbox, SandboxUnavailable

ROOT = Path(__file__).resolve().parents[3]
TESTS = [("1 2\n", "3\n"), ("4 5\n", "9\n")]
CORRECT = "print(sum(map(int, input().split())))"
CASES = [
    {"id": "a", "kind": "stdin", "program": CORRECT, "tests": [{"input": "1 2", "output": "3"}], "expected": "pass"},
    {"id": "b", "kind": "stdin", "program": "print(4)", "tests": [{"input": "", "output": "3"}], "expected": "pass"},
    {"id": "c", "kind": "stdin", "program": CORRECT, "tests": [{"input": "1 2", "output": "3"}], "expected": "fail"},
    {"id": "d", "kind": "call", "program": "", "tests": [{"fn": "f", "args": [], "expected": 1}], "expected": "any"},
]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _sandbox():
    try:
        assert LocalSandbox().level
    except SandboxUnavailable as reason:
        pytest.skip(str(reason))


def test_code_cases_from_the_command(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in CASES))
    lines = []
    summary = grading.run_cases(path, lines.append)
    assert (summary["cases"], summary["errors"]) == (4, 2)
    assert lines[0].startswith('error b code: expected pass, got wrong ("failed; test 1 of 1: wrong (output')
    assert lines[1] == "error c code: expected fail, got correct ('passed 1 of 1 tests')"
    assert lines[2].startswith("cases=4 errors=2 policy=0 worst_s=")


def test_a_fault_of_the_grader_is_an_error_whatever_is_expected(monkeypatch):
    def fails(*_, **__):
        from marft_envs.coding import TestOutcome, TestReport, TestResult

        return TestReport((TestResult(TestOutcome.FAULT, "broken"),), 1, "landlock")

    monkeypatch.setattr(programs, "run_tests", fails)
    assert "got not_graded" in programs.judge_code(CASES[3])[0]


def test_a_hostile_case_is_judged_in_a_private_mount_namespace(monkeypatch):
    """The program is harmless, but of the category "hostile"."""
    words = []
    run = subprocess.run
    monkeypatch.setattr(programs.subprocess, "run", lambda w, **k: words.append(w) or run(w, **k))
    monkeypatch.setattr(programs, "in_private_namespace", lambda: False)
    wrong, _ = programs.judge_code({**CASES[2], "category": "hostile"})
    if "no private mount namespace" in wrong:
        pytest.skip(wrong)
    assert wrong.startswith("expected fail, got correct")
    assert words[-1][0] == "unshare" and words[-1][-1] == "--judge"
    monkeypatch.setattr(programs.shutil, "which", lambda name: None)
    wrong, _ = programs.judge_code({**CASES[2], "category": "hostile"})
    assert wrong == "not run: the program is hostile, and no private mount namespace can be made on this machine"


def runners():
    return dict(programs.runners())


def test_every_runner_grades():
    """Each accepts a correct program, and rejects one that fails the second test only."""
    compared = runners()
    assert {"cold python", "manager + process"} < set(compared)
    assert any(name.startswith("ours: ") for name in compared)
    for name, runner in compared.items():
        assert runner(CORRECT, TESTS) is True, name
        assert runner("print(3)", TESTS) is False, name


def test_measure_counts_programs_tests_and_wrong_verdicts():
    answers = iter([True, True, False, True])
    row = programs.measure(lambda program, tests: next(answers), "", 3, 1, 0.0)
    assert row["wrong"] == 0 and row["tests_per_s"] == pytest.approx(3 * row["programs_per_s"])
    row = programs.measure(lambda program, tests: next(answers), "", 3, 1, 0.0)
    assert row["wrong"] == 1  # the first run is not timed, but its verdict counts
    assert row["p50_ms"] <= row["p99_ms"]


def test_the_table_has_a_line_for_each_runner_with_the_ratio(monkeypatch):
    monkeypatch.setattr(programs, "PROGRAMS", {"plain": CORRECT})
    monkeypatch.setattr(programs, "TESTS", (1, 2))
    two = [("ours: landlock", lambda program, tests: True), ("cold python", lambda program, tests: True)]
    monkeypatch.setattr(programs, "runners", lambda: iter(two))
    lines = []
    rows = programs.run_speed(0.0, 0, lines.append)
    assert [(row["tests"], row["runner"]) for row in rows] == [(n, name) for n in (1, 2) for name, _ in two]
    assert len(lines) == 2 + 4 and lines[3].endswith("| 1.0 |") and lines[3].startswith("| plain | 1 | cold python | ")


def test_busy_processes_end_with_the_block():
    with programs.busy(1):
        busy = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True).stdout
        assert busy.count("while True: pass") == (os.cpu_count() or 1)
    left = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True).stdout
    assert "while True: pass" not in left


def test_the_command_passes_its_options_on(monkeypatch):
    calls = []
    monkeypatch.setattr(grading, "run_programs", lambda *arguments: calls.append(arguments))
    assert grading.main(["programs", "--seconds", "0.5", "--load", "4"]) == 0
    assert calls == [(0.5, 4)]


def test_the_module_judges_one_case_as_a_script():
    script = ROOT / "benchmarks" / "graders" / "programs.py"
    done = subprocess.run(
        [sys.executable, script, "--judge"], input=json.dumps(CASES[1]), capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.startswith("expected pass, got wrong")
