"""Generated problems are computations: a reply that copies the computation does not answer it."""

from dataclasses import replace

import pytest

import marft_envs
from marft_envs.mathematics import GradingPolicy, grade

EVALUATED = GradingPolicy(arithmetic="evaluated")


@pytest.mark.parametrize(
    "answer",
    [
        "3+9",
        "3 + 9",
        "3+9.",
        "(3 + 9)",
        "x = 3 + 9",
        r"3 \cdot 4",
        r"3\times4",
        "24/2*1",
        "2^2*3",
        "15 - 3",
        "15−3",
        "3×4",
    ],
)
def test_an_expression_that_equals_the_gold_is_wrong(answer):
    assert grade(f"The answer is {answer}", "12").score == 1, "without the policy it is an answer"
    verdict = grade(f"The answer is {answer}", "12", policy=EVALUATED)
    assert verdict.score == 0 and "is not evaluated" in verdict.reason


@pytest.mark.parametrize(
    "answer",
    ["12", "12.", "12.0", "-12 + 24 = 12", "3 + 9 = 12", r"\boxed{12}", "x = 12", "24/2", r"\frac{24}{2}", "12 apples"],
)
def test_a_number_is_an_answer(answer):
    assert grade(f"The answer is {answer}", "12", policy=EVALUATED).score == 1


def test_negative_numbers_and_powers_of_ten_are_numbers():
    assert grade("The answer is -12", "-12", policy=EVALUATED).score == 1
    assert grade(r"The answer is 1.2 \times 10^1", "12", policy=EVALUATED).score == 1


def test_other_golds_are_compared_as_before():
    assert grade(r"The answer is \sqrt{2} + 1", r"1 + \sqrt{2}", policy=EVALUATED).score == 1


@pytest.mark.parametrize("dataset", ["one_step", "arithmetic", "word_problems", "relay", "report", "curriculum"])
def test_generated_problems_use_the_policy(dataset):
    team = "panel_2" if dataset == "report" else "duo"
    task = marft_envs.math_v0.env(dataset=dataset, team=team).unwrapped.task
    problem = task.problem(0)
    gold = problem.gold if isinstance(problem.gold, str) else problem.gold["agent_0"]  # the report has one per agent
    problem = replace(problem, gold=gold)
    assert task.grade(f"The answer is {gold}", problem).score == 1
    assert task.grade(f"The answer is {gold} + 0", problem).score == 0
