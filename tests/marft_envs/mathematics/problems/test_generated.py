"""Generators: problems are pure functions of (seed, index), splits do not overlap, golds are correct."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from string import Formatter

import pytest

from marft_envs.generated_task import split_of
from marft_envs.mathematics.problems.arithmetic import Arithmetic
from marft_envs.mathematics.problems.relay import Relay
from marft_envs.mathematics.problems.stories import NAMES, STORIES
from marft_envs.mathematics.problems.word_problems import OneStep, WordProblems
from marft_envs.verdict import Outcome

GENERATORS = [
    *[lambda level=level, **kw: Arithmetic(level=level, **kw) for level in range(1, 6)],
    *[lambda level=level, **kw: WordProblems(level=level, **kw) for level in range(1, 5)],
    OneStep,
    Relay,
    lambda **kw: Relay(style="words", k=3, agents=("a_0", "b_0", "c_0"), **kw),
]
OPERATIONS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_problem_is_a_pure_function_and_its_gold_is_correct(make, split):
    first, second = make(split=split, seed=3), make(split=split, seed=3)
    later = [second.problem(i) for i in reversed(range(50))][::-1]
    for i in range(50):
        problem = first.problem(i)
        assert problem == later[i]
        assert problem.index == i
        assert problem.gold.isdigit()  # a non-negative integer
        assert first.grade(rf"It is \boxed{{{problem.gold}}}.", problem).outcome is Outcome.CORRECT
        assert first.grade(problem.gold, problem).outcome is Outcome.CORRECT
        assert first.grade(str(int(problem.gold) + 1), problem).outcome is Outcome.WRONG
        assert first.grade("I do not know.", problem).outcome is Outcome.NO_ANSWER


@pytest.mark.parametrize("make", GENERATORS)
def test_splits_share_no_content(make):
    keys = {
        split: {make(split=split, seed=s).problem(i).notes["key"] for s in (0, 1) for i in range(400)}
        for split in ("train", "test")
    }
    assert not keys["train"] & keys["test"]
    assert all(split_of(key) == split for split, some in keys.items() for key in some)


@pytest.mark.parametrize("make", [GENERATORS[4], GENERATORS[8], lambda **kw: Relay(k=4, **kw)])
def test_neighbouring_seeds_share_no_more_than_chance(make):
    """With 500 problems per seed, seeds added to the index would share 499. Two distant seeds give the chance level."""
    keys = {seed: {make(seed=seed).problem(i).notes["key"] for i in range(500)} for seed in (42, 43, 1000)}
    assert len(keys[42] & keys[43]) <= len(keys[42] & keys[1000]) + 5
    assert len(keys[42]) > 450


SCRIPT = """
from marft_envs.mathematics.problems.arithmetic import Arithmetic
from marft_envs.mathematics.problems.word_problems import OneStep, WordProblems
from marft_envs.mathematics.problems.relay import Relay
for task in (Arithmetic(level=3, seed=7), WordProblems(level=4, seed=7), OneStep(split="test"), Relay(seed=7)):
    for i in (0, 1, 2**31 - 1):
        p = task.problem(i)
        print(p.prompt, p.gold, sorted(p.private.items()), p.notes["key"])
"""


def test_problems_are_the_same_in_every_process():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 12


def test_pinned_problems():
    """The problems of a seed are part of v0: changing them changes results and needs a new version."""
    assert Arithmetic(level=3).problem(1).notes["key"] == PINNED["arithmetic"]
    assert WordProblems(level=3).problem(1).notes["key"] == PINNED["word_problems"]
    assert Relay().problem(1).notes["key"] == PINNED["relay"]


PINNED = {
    "arithmetic": "arithmetic:45+5+14*4",
    "word_problems": "word_problems:13+5+14*3",
    "relay": "relay:5+8=;9+5=",
}


@pytest.mark.parametrize("level", range(1, 6))
def test_arithmetic_gold_follows_precedence(level):
    task = Arithmetic(level=level)
    for i in range(100):
        problem = task.problem(i)
        chain = re.search(r"\d+(?: [-+*] \d+)+", problem.prompt).group()
        terms = re.findall(r"([-+]?) ?(\d+(?: \* \d+)*)", chain)
        value = 0
        for sign, term in terms:
            product = 1
            for factor in term.split(" * "):
                product *= int(factor)
            value += -product if sign == "-" else product
        assert int(problem.gold) == value
        assert len(re.findall("[-+*]", chain)) == level
        assert problem.notes["key"] == "arithmetic:" + chain.replace(" ", "")


@pytest.mark.parametrize("level", range(1, 5))
def test_story_follows_its_key(level):
    """The story's numbers are those of the key, and the key, computed from left to right, gives the gold."""
    task = WordProblems(level=level)
    for i in range(300):
        problem = task.problem(i)
        key = problem.notes["key"].removeprefix("word_problems:")
        numbers = [int(n) for n in re.findall(r"\d+", key)]
        assert sorted(numbers) == sorted(int(n) for n in re.findall(r"\d+", problem.prompt))
        assert min(numbers) >= 2  # the sentences are plural: "1 marbles" would be wrong
        total = numbers[0]
        for operation, n in zip(re.findall(r"[-+*]", key), numbers[1:], strict=True):
            total = OPERATIONS[operation](total, n)
            assert total >= 0
        assert total == int(problem.gold)
        assert len(numbers) == level + 1
        assert "{" not in problem.prompt


def test_numbers_grow_with_the_level_and_one_step_has_small_ones():
    largest = [max(int(Arithmetic(level=v).problem(i).gold) for i in range(300)) for v in range(1, 6)]
    assert all(a < b for a, b in pairwise(largest))
    for i in range(300):
        problem = OneStep().problem(i)
        assert int(problem.gold) <= 40
        assert all(int(n) <= 20 for n in re.findall(r"\d+", problem.prompt))
        assert problem == WordProblems(level=1).problem(i)


def test_stories_have_the_required_placeholders_and_are_all_used():
    assert len(STORIES) >= 12
    assert len(set(NAMES)) == len(NAMES) >= 20
    for story in STORIES:
        for sentence, numbers in [
            (story.start, {"n"}),
            (story.groups, {"n", "m"}),
            (story.times, {"n"}),
            (story.ask, set()),
        ]:
            placeholders = {name for _, name, _, _ in Formatter().parse(sentence) if name}
            assert placeholders - {"name", "friend"} == numbers
        assert story.ask.endswith("?")
    prompts = {WordProblems(level=2).problem(i).prompt.split()[-3] for i in range(400)}
    assert len(prompts) >= 5


@pytest.mark.parametrize("generator", [Arithmetic, WordProblems, OneStep, Relay])
def test_errors_name_the_invalid_argument(generator):
    with pytest.raises(ValueError, match="split='validation': expected one of train, test"):
        generator(split="validation")
    with pytest.raises(ValueError, match="seed=-1: expected at least 0"):
        generator(seed=-1)
    with pytest.raises(TypeError, match=r"seed=1.5: got float, expected int"):
        generator(seed=1.5)
    with pytest.raises(IndexError, match=r"index=-1 of .*: expected 0 to 2147483647"):
        generator().problem(-1)
    with pytest.raises(IndexError, match="index=2147483648"):
        generator().problem(2**31)
    with pytest.raises(TypeError, match=r"index='3' of .*: got str, expected int"):
        generator().problem("3")


@pytest.mark.parametrize(("generator", "last"), [(Arithmetic, 5), (WordProblems, 4)])
def test_errors_name_the_allowed_levels(generator, last):
    for level in (0, last + 1):
        with pytest.raises(ValueError, match=f"level={level}: expected 1 to {last}"):
            generator(level=level)
    with pytest.raises(TypeError, match="level=True: got bool, expected int"):
        generator(level=True)
