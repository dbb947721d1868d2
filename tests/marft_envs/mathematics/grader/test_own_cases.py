"""The cases of tests/cases/math_cases.jsonl, with the verdicts of a careful human."""

import json
from collections import Counter
from pathlib import Path

import pytest

from marft_envs.mathematics import grade

FILE = Path(__file__).parents[3] / "cases" / "math_cases.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case):
    verdict = grade(case["answer"], case["gold"])
    if verdict.reason.startswith("symbolic comparison needs"):
        pytest.skip(verdict.reason)
    assert verdict.graded and (verdict.score == 1.0) == case["expected"], verdict


def test_each_category_has_correct_and_wrong_answers():
    counts = {category: Counter() for category in (case["category"] for case in CASES)}
    for case in CASES:
        counts[case["category"]][case["expected"]] += 1
    assert len(counts) >= 20
    assert [category for category, count in counts.items() if not count[True] or not count[False]] == []
