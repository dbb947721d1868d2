"""Tasks that each break one rule."""

import itertools
import time
from typing import Literal

import numpy as np

from marft_envs import Problem, Task, Verdict
from marft_envs.verdict import Outcome
from tests.marft_envs.testing.correct_task import Words


class Unnamed(Words):
    name = None


class Empty(Words):
    size = 0

    def problem(self, index):
        return Words().problem(index)


class WrongIndex(Words):
    def problem(self, index):
        return Problem(super().problem(index).index + 1, "?", "x")


class BytesPrompt(Words):
    def problem(self, index):
        return Problem(super().problem(index).index, b"?", "x")


class SurrogatePrompt(Words):
    def problem(self, index):
        return Problem(super().problem(index).index, "\ud800", "x")


class PrivateList(Words):
    def problem(self, index):
        return Problem(super().problem(index).index, "?", "x", ["secret"])


class Nothing(Words):
    def problem(self, index):
        return Problem(super().problem(index).index, "", "x")


class OneGenerator(Words):
    """Problems from one random stream, so that problem 0 depends on earlier calls."""

    def __init__(self):
        super().__init__()
        self.rng = np.random.default_rng(0)

    def problem(self, index):
        return Problem(super().problem(index).index, str(self.rng.random()), "x")


class HashSeed(Words):
    def problem(self, index):
        return Problem(super().problem(index).index, str(hash(f"word {index}")), "x")


class NoEnd(Words):
    def problem(self, index):
        return Problem(int(index), "?", "x")


class TooLarge(Task):
    """Four words, but size 5."""

    name, size, words = "lengths", 5, ("pear", "plum", "fig", "apple")

    def problem(self, index):
        return Problem(int(index), f"Count the letters of {self.words[index]}.", str(len(self.words[index])))

    def grade(self, answer, problem):
        return Verdict.correct() if answer.strip() == problem.gold else Verdict.wrong("another number")


class WithoutSize(TooLarge):
    size = None


class IntegerGold(TooLarge):
    size = 4

    def problem(self, index):
        return Problem(int(index), f"Count the letters of {self.words[index]}.", len(self.words[index]))


class GoldIsPartial(Words):
    def grade(self, answer, problem):
        good = answer == problem.gold
        return Verdict.partial(0.9, "nearly") if good else super().grade("", problem)


class LikesEmpty(Words):
    def grade(self, answer, problem):
        return super().grade(answer, problem) if answer.strip() else Verdict.partial(0.1, "brevity")


class ReturnsBool(Words):
    def grade(self, answer, problem):
        return super().grade(answer, problem) if answer == problem.gold else False


class ReturnsFloat(Words):
    def grade(self, answer, problem):
        return float(answer == problem.gold)


class ReturnsNone(Words):
    def grade(self, answer, problem):
        super().grade(answer, problem)


class FaultsOnUnicode(Words):
    def grade(self, answer, problem):
        return super().grade(answer, problem) if answer.isascii() else Verdict.not_graded("what is this?")


class RaisesOnSurrogates(Words):
    def grade(self, answer, problem):
        return super().grade(answer.encode().decode(), problem)


class CorrectOnGarbage(Words):
    def grade(self, answer, problem):
        return Verdict.correct() if "boxed" in answer else super().grade(answer, problem)


class Moody(Words):
    mood = itertools.count()

    def grade(self, answer, problem):
        right = super().grade(answer, problem)
        return right if right.outcome is Outcome.CORRECT else Verdict.wrong(f"mood {next(self.mood)}")


class Slow(Words):
    def grade(self, answer, problem):
        if len(answer) > 1_000_000:
            time.sleep(0.3)
        return super().grade(answer, problem)


class AddedSeed(Words):
    size = None

    def problem(self, index):
        word = "".join(np.random.default_rng(self.seed + index).permutation(list("abcdefgh")))
        return Problem(int(index), f"Say {word[::-1]} the other way round.", word)


class OneForBoth(Words):
    """The constructor has the argument but ignores it."""

    def problem(self, index):
        self.split = "train"
        return super().problem(index)


class Overlapping(Task):
    """Splits with other names. Two problems overlap only if prompt, private parts and gold are equal."""

    name = "overlapping"

    def __init__(self, *, split: Literal["train", "dev"] = "train") -> None:
        self.size, self.split = (6 if split == "train" else 4), split

    def problem(self, index):
        if self.split == "train":
            return Problem(index, f"b {index - 1}" if index == 5 else f"a {index}", "yes", {"a_0": "x"})
        return Problem(index, f"b {index + 1}", "yes", {"a_0": "x" if index == 3 else "y"})

    def grade(self, answer, problem):
        return Verdict.correct() if answer == "yes" else Verdict.wrong("no")


class TellsGold(Words):
    def problem(self, index):
        p = super().problem(index)
        return Problem(p.index, f"{p.prompt} It is {p.gold}.", p.gold)


class Numbers(Task):
    """Count the letters. The golds have one or two characters, and the text contains some of them by chance."""

    name, size = "numbers", 30

    def text(self, index, gold):
        return f"How many letters has {'x' * gold}, of {gold - 1} to {gold + index % 2} words?"

    def problem(self, index):
        return Problem(index, self.text(index, index % 12), index % 12)

    def grade(self, answer, problem):
        return Verdict.correct() if answer == str(problem.gold) else Verdict.wrong("another number")


class TellsNumber(Numbers):
    def text(self, index, gold):
        return f"{super().text(index, gold)} The answer is {gold}."


class EndsWithNumber(Numbers):
    def text(self, index, gold):
        return f"{super().text(index, gold)}{' ' * (1 + index)}{gold}"


class YesOrNo(Numbers):
    def problem(self, index):
        return Problem(index, f"Is {index} odd, yes or no?", ("no", "yes")[index % 2], {"a_0": "Say yes or no."})


class TellsOneAgent(YesOrNo):
    def problem(self, index):
        p = super().problem(index)
        return Problem(index, p.prompt, p.gold, {"b_0": f"I think {'so: ' * index}{p.gold} is right."})


class Choices(Numbers):
    """The gold is one of the choices in the text."""

    def problem(self, index):
        words = np.random.default_rng(index).permutation(["pears", "apples", "plums", "oranges"])
        return Problem(index, f"What does the shop {index} not have: {', '.join(words)}?", str(words[index % 4]))


class TellsTests(Words):
    def problem(self, index):
        p = super().problem(index)
        tests = {"tests": [p.gold, p.gold[::-1]]}
        return Problem(p.index, f"{p.prompt} {index * '?'} {tests['tests']}", tests)


class KnowsNothing(Words):
    def progress(self, problem, turns):
        return []


class KnowsFloats(Words):
    def progress(self, problem, turns):
        return [0.5] * len(turns)


class KnowsItsText(Words):
    def progress(self, problem, turns):
        return [int(turn.text == problem.gold) for turn in turns]


class KnowsTheEnd(Words):
    def progress(self, problem, turns):
        return [len(turns)] * len(turns)
