"""A complete task in one file: ``import coins_v0`` registers the environment ``marft_envs.coins_v0``."""

from typing import Literal

import numpy as np

from marft_envs import Problem, Task, Verdict, register
from marft_envs.mathematics import grade


@register("coins", version=0, team="duo")
class Coins(Task):
    """How many cents are these coins? Reply with the number alone.

    The answer is read as in `math_v0`: a marked number, or a reply that is one number.

    Data: 1,000 generated problems; no problem is in two splits.

    Version history: v0, first version.
    """

    def __init__(self, *, split: Literal["train", "test"] = "train") -> None:
        numbers = np.random.default_rng(0).permutation(1_000)
        self.numbers = numbers[:800] if split == "train" else numbers[800:]
        self.size = len(self.numbers)

    def problem(self, index: int) -> Problem:
        quarters, dimes, cents = map(int, f"{self.numbers[index]:03d}")
        prompt = f"{quarters} quarters, {dimes} dimes and {cents} single cents"
        return Problem(index, prompt, gold=str(25 * quarters + 10 * dimes + cents))

    def grade(self, answer: str, problem: Problem) -> Verdict:
        return grade(answer, problem.gold, unmarked="whole")
