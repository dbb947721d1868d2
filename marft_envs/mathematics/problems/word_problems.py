"""Word problems: stories about one count that events change, such as ``Ada has 7 marbles. Ben gives Ada 3 more ...``

| level | steps | largest operand | largest product |
|---|---|---|---|
| 1 to 4 | as many as the level | 20, 30, 50, 100 | 40, 150, 500, 2,000 |

No answer, and no intermediate count, is negative. ``OneStep`` is level 1, which small models solve often enough to
receive a reward.
"""

from __future__ import annotations

import numpy as np

from marft_envs.arguments import check_integer
from marft_envs.generated_task import ProblemDraft
from marft_envs.mathematics.problems.generated_math_task import GeneratedMathTask, choose
from marft_envs.mathematics.problems.stories import NAMES, STORIES, Story

_LIMITS = ((20, 40), (30, 150), (50, 500), (100, 2_000))  # (largest operand, largest product), by level
_PRODUCT_START_RATE = 0.25  # the share of stories that begin with groups of equal size


class WordProblems(GeneratedMathTask):
    """Stories about one count, changed by adding, subtracting or multiplying; the answer is an integer from 0 on.

    Args:
        level: The number of steps, 1 to 4. Numbers grow with it, see the table of this module.
        split: "train" or "test".
        seed: The seed of the generator, an integer from 0 on.

    Raises:
        ValueError: ``level``, ``split`` or ``seed`` is out of range.
        TypeError: ``level`` or ``seed`` is not an integer.
    """

    name = "word_problems"

    def __init__(self, *, level: int = 1, split: str = "train", seed: int = 0) -> None:
        super().__init__(split=split, seed=seed)
        self.level = check_integer("level", level, 1, len(_LIMITS))

    def draw(self, rng: np.random.Generator) -> ProblemDraft:
        story = STORIES[rng.integers(len(STORIES))]
        name, friend = (NAMES[i] for i in rng.choice(len(NAMES), size=2, replace=False))
        sentences, key, total = self._begin(story, rng)
        events = {"+": _shuffled(rng, story.more), "-": _shuffled(rng, story.fewer), "*": [story.times]}
        remaining_steps = self.level - (1 if "*" in key else 0)
        for remaining in range(remaining_steps, 0, -1):
            operation, number = self._step(rng, total, events, last=remaining == 1)
            total = {"+": total + number, "-": total - number, "*": total * number}[operation]
            sentences.append(events[operation].pop().replace("{n}", str(number)))
            key += f"{operation}{number}"
        prompt = " ".join([*sentences, story.ask]).format(name=name, friend=friend)
        # OneStep shares this prefix, so that both classes assign the same problem to the same split.
        return ProblemDraft(f"word_problems:{key}", prompt, str(total), notes={"level": self.level})

    def _begin(self, story: Story, rng: np.random.Generator) -> tuple[list[str], str, int]:
        """Return ([first sentence], canonical form so far, count). The first sentence states a count or a product."""
        largest, largest_product = _LIMITS[self.level - 1]
        if rng.random() < _PRODUCT_START_RATE:
            groups = int(rng.integers(2, 11))
            each = int(rng.integers(2, min(10, largest_product // groups) + 1))
            sentence = story.groups.replace("{n}", str(groups)).replace("{m}", str(each))
            return [sentence], f"{groups}*{each}", groups * each
        count = int(rng.integers(2, largest + 1))
        return [story.start.replace("{n}", str(count))], str(count), count

    def _step(
        self, rng: np.random.Generator, total: int, events: dict[str, list[str]], *, last: bool
    ) -> tuple[str, int]:
        """Return an operation for which the story has an unused sentence, and its number."""
        largest, largest_product = _LIMITS[self.level - 1]
        highest = {
            "+": largest,
            # At least 2 remain before the last step, because every later sentence needs a number from 2 on.
            "-": min(largest, total if last else total - 2),
            "*": min(5, largest_product // total),
        }
        operation = choose(rng, [o for o in "+-*" if events[o] and highest[o] >= 2])
        return operation, int(rng.integers(2, highest[operation] + 1))


class OneStep(WordProblems):
    """Word problems of one step, with the problems and splits of ``WordProblems(level=1)``.

    Args:
        split: "train" or "test".
        seed: The seed of the generator, an integer from 0 on.
    """

    name = "one_step"

    def __init__(self, *, split: str = "train", seed: int = 0) -> None:
        super().__init__(level=1, split=split, seed=seed)


def _shuffled(rng: np.random.Generator, sentences: tuple[str, str]) -> list[str]:
    return [sentences[i] for i in rng.permutation(len(sentences))]
