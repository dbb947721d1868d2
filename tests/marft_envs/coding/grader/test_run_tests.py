"""Scores, results of single tests and errors of ``grade`` and ``run_tests``."""

import pytest

from marft_envs.coding import grade, run_tests

TESTS = [{"input": f"{n}\n", "output": f"{n}\n"} for n in (1, 2, 3, 4)]


def test_scoring_all_and_fraction():
    program = "n = int(input())\nprint(n if n != 3 else 0)"
    assert grade(program, TESTS).score == 0.0
    verdict = grade(program, TESTS, scoring="fraction")
    assert (verdict.score, verdict.outcome.value) == (0.75, "partial")
    assert verdict.reason.startswith("passed 3 of 4 tests; test 3 of 4: wrong (output '0\\n', expected '3\\n'")
    assert grade("print(input())", TESTS, scoring="fraction").score == 1.0
    assert verdict.isolation in ("namespace", "landlock")


def test_every_test_has_a_result_unless_stop_early_is_set():
    assert [r.outcome.value for r in run_tests("print(1)", TESTS).results] == ["pass", "wrong", "wrong", "wrong"]
    assert [r.outcome.value for r in run_tests("print(1)", TESTS, stop_early=True).results] == ["pass", "wrong"]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="checker='fuzzy': expected one of exact, tokens"):
        grade("", [{"input": "", "output": ""}], checker="fuzzy")
    with pytest.raises(ValueError, match="kind='x': expected one of stdin, call, assert"):
        grade("", [{}], kind="x")
    with pytest.raises(ValueError, match=r"tests=\[\]: expected at least one test"):
        grade("", [])
    with pytest.raises(ValueError, match=r"tests\[0\] of kind 'stdin' lacks output; it has input"):
        grade("", [{"input": ""}])
    with pytest.raises(ValueError, match="scoring='half'"):
        grade("", [{"input": "", "output": ""}], scoring="half")
