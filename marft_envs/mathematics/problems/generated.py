"""Problems that are made here, with whole-number answers: chains of arithmetic, and word problems.

| name | levels | a problem |
|---|---|---|
| ``Arithmetic`` | 1 to 5: as many operations; numbers to 20, 30, 50, 99, 199 | What is 12 + 7 * 3 - 5? |
| ``WordProblems`` | 1 to 4: as many steps; numbers to 20, 30, 50, 100 | Ada has 7 marbles. Ben gives ... |
| ``OneStep`` | word problems of level 1: numbers to 20, totals to 40; small models have a signal on it | |

Operations are +, - and *. No answer, and no count on the way through a story, is negative.
"""

from __future__ import annotations

import numpy as np

from marft_envs.arguments import check_integer
from marft_envs.generated_task import ProblemDraft
from marft_envs.mathematics.problems.generated_math_task import GeneratedMathTask
from marft_envs.mathematics.problems.stories import NAMES, STORIES, Story

_LARGEST = (20, 30, 50, 99, 199)  # operands of a chain, by level
_STORY_LIMITS = ((20, 40), (30, 150), (50, 500), (100, 2_000))  # operands and products of a story, by level
_ASK = ("What is {}?", "Compute {}.", "Work out {}.", "Find the value of {}.", "How much is {}?", "Calculate {}.")


class Arithmetic(GeneratedMathTask):
    """level: the number of operations, 1 to 5; the usual precedence holds. split, seed: see ``GeneratedMathTask``."""

    name = "arithmetic"

    def __init__(self, *, level: int = 1, split: str = "train", seed: int = 0) -> None:
        super().__init__(split=split, seed=seed)
        self.level = check_integer("level", level, 1, len(_LARGEST))

    def draw(self, rng: np.random.Generator) -> ProblemDraft:
        numbers, operations, value = self._chain(rng)
        while value < 0:
            numbers, operations, value = self._chain(rng)
        chain = str(numbers[0]) + "".join(f" {o} {n}" for o, n in zip(operations, numbers[1:], strict=True))
        prompt = _pick(rng, _ASK).format(chain)
        return ProblemDraft(f"{self.name}:{chain.replace(' ', '')}", prompt, str(value), notes={"level": self.level})

    def _chain(self, rng: np.random.Generator) -> tuple[list[int], list[str], int]:
        """Numbers, operations between them, value; factors are at most 10, and no two products are neighbours."""
        numbers = [int(rng.integers(1, _LARGEST[self.level - 1] + 1))]
        operations: list[str] = []
        terms = [numbers[0]]
        for _ in range(self.level):
            operation = _pick(rng, "+-" if operations[-1:] == ["*"] else "+-*")
            number = int(rng.integers(2, 11 if operation == "*" else _LARGEST[self.level - 1] + 1))
            if operation == "*":
                terms[-1] *= number
            else:
                terms.append(number if operation == "+" else -number)
            numbers.append(number)
            operations.append(operation)
        return numbers, operations, sum(terms)


class WordProblems(GeneratedMathTask):
    """level: the number of steps, 1 to 4. split, seed: see ``GeneratedMathTask``."""

    name = "word_problems"

    def __init__(self, *, level: int = 1, split: str = "train", seed: int = 0) -> None:
        super().__init__(split=split, seed=seed)
        self.level = check_integer("level", level, 1, len(_STORY_LIMITS))

    def draw(self, rng: np.random.Generator) -> ProblemDraft:
        story = STORIES[rng.integers(len(STORIES))]
        name, friend = (NAMES[i] for i in rng.choice(len(NAMES), size=2, replace=False))
        sentences, key, total = self._begin(story, rng)
        events = {"+": _shuffled(rng, story.more), "-": _shuffled(rng, story.fewer), "*": [story.times]}
        steps_left = self.level - (1 if "*" in key else 0)
        for left in range(steps_left, 0, -1):
            operation, number = self._step(rng, total, events, last=left == 1)
            total = {"+": total + number, "-": total - number, "*": total * number}[operation]
            sentences.append(events[operation].pop().replace("{n}", str(number)))
            key += f"{operation}{number}"
        prompt = " ".join([*sentences, story.ask]).format(name=name, friend=friend)
        return ProblemDraft(f"word_problems:{key}", prompt, str(total), notes={"level": self.level})

    def _begin(self, story: Story, rng: np.random.Generator) -> tuple[list[str], str, int]:
        """(first sentence, canonical form so far, count): a count, or in one of four stories a product."""
        largest, largest_total = _STORY_LIMITS[self.level - 1]
        if rng.random() < 0.25:
            groups = int(rng.integers(2, 11))
            each = int(rng.integers(2, min(10, largest_total // groups) + 1))
            text = story.groups.replace("{n}", str(groups)).replace("{m}", str(each))
            return [text], f"{groups}*{each}", groups * each
        count = int(rng.integers(2, largest + 1))
        return [story.start.replace("{n}", str(count))], str(count), count

    def _step(
        self, rng: np.random.Generator, total: int, events: dict[str, list[str]], *, last: bool
    ) -> tuple[str, int]:
        """An operation that the story still has a sentence for, and its number; at least 2 stay until the last step."""
        largest, largest_total = _STORY_LIMITS[self.level - 1]
        highest = {
            "+": largest,
            "-": min(largest, total if last else total - 2),
            "*": min(5, largest_total // total),
        }
        operation = _pick(rng, [o for o in "+-*" if events[o] and highest[o] >= 2])
        return operation, int(rng.integers(2, highest[operation] + 1))


class OneStep(WordProblems):
    """Word problems of one step. Same problems and splits as ``WordProblems(level=1)``."""

    name = "one_step"

    def __init__(self, *, split: str = "train", seed: int = 0) -> None:
        super().__init__(level=1, split=split, seed=seed)


def _pick(rng: np.random.Generator, choices: tuple[str, ...] | list[str] | str) -> str:
    return choices[int(rng.integers(len(choices)))]


def _shuffled(rng: np.random.Generator, sentences: tuple[str, str]) -> list[str]:
    return [sentences[i] for i in rng.permutation(len(sentences))]
