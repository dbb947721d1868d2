"""pass@k against counting, and the vote of the majority by the grader's equality."""

import itertools
import math

import pytest

import marft_envs
from baselines.runs.sample_metrics import majority, pass_at_k


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_sample(n):
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        subsets = list(itertools.combinations([1] * c + [0] * (n - c), k))
        assert pass_at_k(n, c, k) == pytest.approx(sum(any(s) for s in subsets) / len(subsets), abs=1e-12)


def test_pass_at_k_of_many_samples_does_not_overflow():
    # 1 - C(9_500, 100) / C(10_000, 100), in exact integers
    exact = 1 - math.comb(9_500, 100) / math.comb(10_000, 100)
    assert pass_at_k(10_000, 500, 100) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((3, 4, 1), "correct=4: expected 0 to samples=3"),
        ((3, 1, 0), "k=0: expected 1 to samples=3"),
        ((3, 1, 4), "k=4"),
    ],
)
def test_wrong_numbers_are_named(numbers, message):
    with pytest.raises(ValueError, match=message):
        pass_at_k(*numbers)


@pytest.fixture(scope="module")
def problem():
    task = marft_envs.math_v0.env(dataset="word_problems").unwrapped.task
    return task, task.problem(0)


@pytest.mark.parametrize(
    ("answers", "winner"),
    [
        (["3", "7", "7"], 1),
        (["1/2", "0.5", "7"], 0),  # equal numbers vote together
        (["7", "0.5", "\\frac{1}{2}", "50%"], 1),
        (["\\sqrt{8}", "3", "2\\sqrt{2}"], 0),
        (["3", "7", "7", "3"], 0),  # a tie: the answer that was given first
        (["7", "3", "3", "7"], 0),
        ([None, None, "3"], 2),  # no vote
        ([None, "3", "7", None, "7"], 2),
        ([None, None], None),
    ],
)
def test_the_answer_of_the_majority_wins(problem, answers, winner):
    assert majority(*problem, answers) == winner
