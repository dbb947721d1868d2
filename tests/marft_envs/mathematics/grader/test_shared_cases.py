"""The case file beside the repository, if there is one. KNOWN_ERRORS lists cases that are graded wrongly, and why."""

import json
from pathlib import Path

import pytest

from marft_envs.mathematics import grade

FILE = Path(__file__).resolve().parents[5] / "shared" / "cases" / "math_cases.jsonl"
CASES = [json.loads(line) for line in FILE.read_text().splitlines() if line] if FILE.is_file() else []
NEEDS_WORKER = {"m061"}  # equal trigonometry
KNOWN_ERRORS: dict[str, str] = {}


def marked(case):
    reason = KNOWN_ERRORS.get(case["id"])
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
    return pytest.param(case, id=case["id"], marks=marks)


@pytest.mark.parametrize("case", [marked(case) for case in CASES])
def test_case(case):
    if case["id"] in NEEDS_WORKER:
        pytest.importorskip("math_verify", reason="needs math-verify: pip install '.[math]'")
    verdict = grade(case["answer"], case["gold"])
    assert (verdict.score == 1.0) == case["expected"], verdict


def test_the_case_file_is_complete():
    if not CASES:
        pytest.skip(f"NO CASES: {FILE} does not exist, so none of its cases was graded")
    assert len(CASES) >= 100
    assert set(KNOWN_ERRORS) <= {case["id"] for case in CASES}
