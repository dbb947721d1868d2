"""The curriculum: levels that rise with the index, and fixed mixtures of levels."""

from collections import Counter

import pytest

from marft_envs.mathematics.problems.curriculum import FAMILIES, Curriculum
from marft_envs.mathematics.problems.word_problems import WordProblems


@pytest.mark.parametrize("family", FAMILIES)
def test_levels_rise_with_the_index(family):
    task = Curriculum(family=family, until=900)
    levels = [task.problem(i).notes["level"] for i in range(1000)]
    last = FAMILIES[family][1]
    assert levels[0] == 1
    assert set(levels[900:]) == {last}
    assert set(levels) == set(range(1, last + 1))
    means = [sum(levels[i : i + 200]) / 200 for i in range(0, 1000, 200)]
    assert means == sorted(means)
    middle = 1 + (last - 1) * 300 / 900  # p at index 300
    assert abs(sum(levels[250:350]) / 100 - middle) < 0.25
    assert set(levels[295:305]) <= {int(middle), int(middle) + 1}


def test_weights_give_a_mixture_that_does_not_depend_on_the_index():
    task = Curriculum(weights={1: 3, 3: 1}, seed=5)
    for start in (0, 10**6):
        counts = Counter(task.problem(i).notes["level"] for i in range(start, start + 2000))
        assert set(counts) == {1, 3}
        assert 0.70 < counts[1] / 2000 < 0.80


def test_a_problem_is_a_pure_function_and_equals_that_of_its_generator():
    task, again = Curriculum(seed=3, until=50), Curriculum(seed=3, until=50)
    for index in (40, 7, 100):
        problem = task.problem(index)
        assert problem == again.problem(index)
        assert problem == WordProblems(level=problem.notes["level"], seed=3).problem(index)
        assert task.grade(rf"\boxed{{{problem.gold}}}", problem).score == 1.0


def test_splits_share_no_problem():
    keys = [{Curriculum(split=s, until=300).problem(i).notes["key"] for i in range(400)} for s in ("train", "test")]
    assert not keys[0] & keys[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "poetry"}, "family='poetry': expected one of word_problems, arithmetic"),
        ({"until": 0}, "until=0: expected at least 1"),
        ({"weights": {9: 1}}, "level in weights=9: expected 1 to 4"),
        ({"weights": {1: -1}}, "expected a finite number of at least 0 for level 1, got -1"),
        ({"weights": {1: 0}}, "at least one level with a weight above 0"),
        ({"split": "all"}, "split='all'"),
    ],
)
def test_errors_name_the_invalid_argument(arguments, message):
    with pytest.raises(ValueError) as caught:
        Curriculum(**arguments)
    assert message in str(caught.value)
