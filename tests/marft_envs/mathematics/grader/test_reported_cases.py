"""Cases that public reports and attacks on graders found, and our variants by kind; one run lists all errors.

A case with ``policy`` is one on which reasonable people differ; docs/grading.md gives our choices.
"""

import json
from pathlib import Path

import pytest

from marft_envs.mathematics import grade
from marft_envs.mathematics.grader.symbolic import shared_pool

FOLDER = Path(__file__).parents[3] / "cases"
BUSY = "the machine was too busy"  # depends on the load of the machine, so it is not an error of the grader


def mistake(case):
    """Return a line on a wrong verdict, or "" if the verdict is right."""
    verdict = grade(case["answer"], case["gold"])
    if BUSY in verdict.reason or (verdict.graded and (verdict.score == 1.0) == case["expected"]):
        return ""
    return f"{case['id']}: gold {case['gold']!r}, answer {case['answer']!r}, expected {case['expected']}: {verdict}"


@pytest.mark.parametrize("name", ["math_reported.jsonl", "math_attacks.jsonl", "math_kinds.jsonl"])
def test_no_case_is_graded_wrongly(name):
    pytest.importorskip("math_verify", reason="needs math-verify: pip install '.[math]'")
    shared_pool().warm_up()
    cases = [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]
    errors = [line for case in cases if not case.get("policy") and (line := mistake(case))]
    assert len(cases) >= 35
    assert not errors, "\n".join(errors)
