"""The outcomes of ``grade`` and its errors."""

import pytest

from marft_envs.mathematics import grade
from marft_envs.verdict import Outcome

CORRECT, WRONG, NO_ANSWER = Outcome.CORRECT, Outcome.WRONG, Outcome.NO_ANSWER

MARKED = [  # reply, gold, outcome
    (r"\boxed{42}", "42", CORRECT),
    (r"\boxed{41}", "42", WRONG),
    (r"\boxed{42", "42", NO_ANSWER),
    ("42", "42", NO_ANSWER),
    ("", "42", NO_ANSWER),
    ("The answer is 120 -", "120", WRONG),
    (r"\boxed{42} or \boxed{43}", "42", WRONG),
    (r"\boxed{42} or \boxed{43}", "43", WRONG),
    ("The answer is 6 * 7 = 42.", "42", CORRECT),
    (r"\boxed{" + "9" * 100_000 + "}", "42", NO_ANSWER),  # longer than the part of a reply that is read
    (r"\boxed{" + "9" * 15_000 + "}", "42", WRONG),
    (r"\boxed{9^{9^{9}}}", "9^{9^{9}}", CORRECT),
    ("\ud800\x00", "42", NO_ANSWER),
    ("\\boxed{\ud800\x00}", "42", WRONG),
]

WHOLE = [  # reply, outcome for the gold 22
    ("22", CORRECT),
    (" 22 \n", CORRECT),
    ("22.", CORRECT),
    ("-22", WRONG),
    ("23", WRONG),
    (r"\boxed{22}", CORRECT),
    ("11|22", NO_ANSWER),
    ("22 apples", NO_ANSWER),
    ("It is 22", NO_ANSWER),
    ("22 22", NO_ANSWER),
    ("120 -", NO_ANSWER),
    ("", NO_ANSWER),
    ("23 \\boxed{22}", CORRECT),
    (r"\boxed{22", NO_ANSWER),
]


@pytest.mark.parametrize(("reply", "gold", "outcome"), MARKED)
def test_outcomes(reply, gold, outcome):
    verdict = grade(reply, gold)
    assert verdict.outcome is outcome
    assert verdict.score == (1.0 if outcome is CORRECT else 0.0)
    assert verdict.reason.isascii()
    assert bool(verdict.reason) == (outcome is not CORRECT)


@pytest.mark.parametrize(("reply", "outcome"), WHOLE)
def test_unmarked_whole_accepts_a_reply_that_is_a_number(reply, outcome):
    assert grade(reply, "22", unmarked="whole").outcome is outcome


def test_reasons_do_not_reveal_the_gold():
    assert "87654" not in grade(r"\boxed{41}", "87654").reason


@pytest.mark.parametrize("gold", ["", "  \n"])
def test_a_blank_gold_is_an_error(gold):
    with pytest.raises(ValueError, match=r"gold=.*expected an answer, got a blank string"):
        grade(r"\boxed{42}", gold)


def test_errors_name_the_invalid_argument():
    with pytest.raises(TypeError, match="reply: got NoneType, expected str"):
        grade(None, "42")
    with pytest.raises(TypeError, match="gold: got int, expected str"):
        grade("42", 42)
    with pytest.raises(ValueError, match="unmarked='all': expected 'none' or 'whole'"):
        grade("42", "42", unmarked="all")
