"""Notations of one answer and the wrong answers beside them: tests/cases/math_text_cases.jsonl, one gold per line.

``right``, ``symbolic`` and ``wrong`` are contents of a box, or whole replies that start with "REPLY:". ``symbolic``
answers are right, and need the symbolic worker.
"""

import json
from pathlib import Path

import pytest

from marft_envs.mathematics import grade
from marft_envs.mathematics.grader.answer_extraction import extract
from marft_envs.mathematics.grader.equality import equal
from marft_envs.mathematics.grader.gold_check import why_unusable

FILE = Path(__file__).parents[3] / "cases" / "math_text_cases.jsonl"
GOLDS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
PAIRS = [(answer, gold["gold"], kind) for gold in GOLDS for kind in gold if kind != "gold" for answer in gold[kind]]


def reply(answer):
    return answer.removeprefix("REPLY:") if answer.startswith("REPLY:") else rf"Hence $\boxed{{{answer}}}$."


@pytest.mark.parametrize(("answer", "gold", "kind"), PAIRS, ids=lambda value: ascii(value)[:60])
def test_pair(answer, gold, kind):
    if kind == "symbolic":
        verdict = grade(reply(answer), gold)
        if verdict.reason.startswith(("symbolic comparison needs", "the machine was too busy")):
            pytest.skip(verdict.reason)
        assert verdict.score == 1.0
        return
    found, _ = extract(reply(answer))
    assert (bool(found) and equal(found, gold)) == (kind == "right")


@pytest.mark.parametrize("gold", [gold["gold"] for gold in GOLDS], ids=lambda gold: ascii(gold)[:60])
def test_gold_is_usable(gold):
    assert why_unusable(gold) == ""


def test_right_and_wrong_answers_are_listed():
    counts = {kind: sum(len(gold.get(kind, ())) for gold in GOLDS) for kind in ("right", "wrong")}
    assert min(counts.values()) > 50
