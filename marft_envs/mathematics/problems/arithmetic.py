"""Arithmetic problems: chains of +, - and * over integers, such as ``What is 12 + 7 * 3 - 5?``

| level | operations | largest operand |
|---|---|---|
| 1 to 5 | as many as the level | 20, 30, 50, 99, 199 |

The answer is never negative.
"""

from __future__ import annotations

import numpy as np

from marft_envs.arguments import check_integer
from marft_envs.generated_task import ProblemDraft
from marft_envs.mathematics.problems.generated_math_task import GeneratedMathTask, choose

_LARGEST_OPERAND = (20, 30, 50, 99, 199)  # by level
_QUESTIONS = ("What is {}?", "Compute {}.", "Work out {}.", "Find the value of {}.", "How much is {}?", "Calculate {}.")


class Arithmetic(GeneratedMathTask):
    """Chains of +, - and * with the usual precedence; the answer is an integer from 0 on.

    Args:
        level: The number of operations, 1 to 5. Operands grow with it, see the table of this module.
        split: "train" or "test".
        seed: The seed of the generator, an integer from 0 on.

    Raises:
        ValueError: ``level``, ``split`` or ``seed`` is out of range.
        TypeError: ``level`` or ``seed`` is not an integer.
    """

    name = "arithmetic"

    def __init__(self, *, level: int = 1, split: str = "train", seed: int = 0) -> None:
        super().__init__(split=split, seed=seed)
        self.level = check_integer("level", level, 1, len(_LARGEST_OPERAND))

    def draw(self, rng: np.random.Generator) -> ProblemDraft:
        numbers, operations, value = self._chain(rng)
        while value < 0:
            numbers, operations, value = self._chain(rng)
        chain = str(numbers[0]) + "".join(f" {o} {n}" for o, n in zip(operations, numbers[1:], strict=True))
        prompt = choose(rng, _QUESTIONS).format(chain)
        return ProblemDraft(f"{self.name}:{chain.replace(' ', '')}", prompt, str(value), notes={"level": self.level})

    def _chain(self, rng: np.random.Generator) -> tuple[list[int], list[str], int]:
        """Return (numbers, the operations between them, value)."""
        numbers = [int(rng.integers(1, _LARGEST_OPERAND[self.level - 1] + 1))]
        operations: list[str] = []
        terms = [numbers[0]]
        for _ in range(self.level):
            # A product never follows a product and its second factor is at most 10, so that values stay small.
            operation = choose(rng, "+-" if operations[-1:] == ["*"] else "+-*")
            number = int(rng.integers(2, 11 if operation == "*" else _LARGEST_OPERAND[self.level - 1] + 1))
            if operation == "*":
                terms[-1] *= number
            else:
                terms.append(number if operation == "+" else -number)
            numbers.append(number)
            operations.append(operation)
        return numbers, operations, sum(terms)
