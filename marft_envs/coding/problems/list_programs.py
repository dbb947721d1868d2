"""Generated programming problems: compute something from a list of integers, in one to five steps.

| style | the program |
|---|---|
| stdin | reads one line of integers and prints the result |
| function | defines ``solve(numbers)``, which returns the result |

A problem of level n has n - 1 steps that change the list and a last one that computes the result. Numbers in the tests
are between -20 and 20; from level 3 on, the list of the last test is empty. A problem belongs to "test" if the CRC-32
of its steps is a multiple of 5, whatever the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from marft_envs.arguments import check_integer, expected_one_of
from marft_envs.coding.code_task import CodeItem, CodeTask, with_code_options
from marft_envs.generated_task import split_of
from marft_envs.task import Problem, check_index

Split = Literal["train", "test"]
Style = Literal["stdin", "function"]
LEVELS = 5
_PUBLIC_TESTS, _HIDDEN_TESTS = 2, 6


@dataclass(frozen=True)
class ProgramStep:
    """One step of a problem.

    Attributes:
        text: Its description in the prompt; {k} stands for a number from 2 to 9.
        code: Its line in the reference solution.
        do: Applies it to a list and k.
    """

    text: str
    code: str
    do: Callable[[list[int], int], Any]


CHANGES = (
    ProgramStep("Keep only the even numbers.", "numbers = [n for n in numbers if n % 2 == 0]",
                lambda a, k: [n for n in a if n % 2 == 0]),
    ProgramStep("Keep only the odd numbers.", "numbers = [n for n in numbers if n % 2]",
                lambda a, k: [n for n in a if n % 2]),
    ProgramStep("Keep only the numbers greater than {k}.", "numbers = [n for n in numbers if n > {k}]",
                lambda a, k: [n for n in a if n > k]),
    ProgramStep("Keep only the numbers less than {k}.", "numbers = [n for n in numbers if n < {k}]",
                lambda a, k: [n for n in a if n < k]),
    ProgramStep("Remove every number that is divisible by {k}.", "numbers = [n for n in numbers if n % {k}]",
                lambda a, k: [n for n in a if n % k]),
    ProgramStep("Add {k} to every number.", "numbers = [n + {k} for n in numbers]", lambda a, k: [n + k for n in a]),
    ProgramStep("Multiply every number by {k}.", "numbers = [n * {k} for n in numbers]",
                lambda a, k: [n * k for n in a]),
    ProgramStep("Replace every number by its absolute value.", "numbers = [abs(n) for n in numbers]",
                lambda a, k: [abs(n) for n in a]),
    ProgramStep("Reverse the order of the numbers.", "numbers = numbers[::-1]", lambda a, k: a[::-1]),
    ProgramStep("Sort the numbers from smallest to largest.", "numbers = sorted(numbers)", lambda a, k: sorted(a)),
    ProgramStep("Keep only the first {k} numbers, or all if there are fewer.", "numbers = numbers[:{k}]",
                lambda a, k: a[:k]),
    ProgramStep("Remove the first number, if there is one.", "numbers = numbers[1:]", lambda a, k: a[1:]),
    ProgramStep("Remove repeated numbers and keep the first of each.", "numbers = list(dict.fromkeys(numbers))",
                lambda a, k: list(dict.fromkeys(a))),
    ProgramStep("Replace each number by the sum of all numbers up to and including it.",
                "numbers = [sum(numbers[: i + 1]) for i in range(len(numbers))]",
                lambda a, k: [sum(a[: i + 1]) for i in range(len(a))]),
)  # fmt: skip
RESULTS = (
    ProgramStep("The result is the sum of the numbers.", "result = sum(numbers)", lambda a, k: sum(a)),
    ProgramStep("The result is how many numbers there are.", "result = len(numbers)", lambda a, k: len(a)),
    ProgramStep("The result is the largest number, or 0 if there is none.", "result = max(numbers, default=0)",
                lambda a, k: max(a, default=0)),
    ProgramStep("The result is the smallest number, or 0 if there is none.", "result = min(numbers, default=0)",
                lambda a, k: min(a, default=0)),
    ProgramStep("The result is how many numbers are greater than {k}.", "result = sum(n > {k} for n in numbers)",
                lambda a, k: sum(n > k for n in a)),
    ProgramStep("The result is the sum of the numbers that are divisible by {k}.",
                "result = sum(n for n in numbers if n % {k} == 0)", lambda a, k: sum(n for n in a if n % k == 0)),
    ProgramStep("The result is the sum of the squares of the numbers.", "result = sum(n * n for n in numbers)",
                lambda a, k: sum(n * n for n in a)),
    ProgramStep("The result is the largest number minus the smallest, or 0 if there is none.",
                "result = max(numbers, default=0) - min(numbers, default=0)",
                lambda a, k: max(a, default=0) - min(a, default=0)),
    ProgramStep("The result is the sum of the numbers plus {k}.", "result = sum(numbers) + {k}",
                lambda a, k: sum(a) + k),
    ProgramStep("The result is {k} times the number of numbers.", "result = {k} * len(numbers)",
                lambda a, k: k * len(a)),
)  # fmt: skip
Steps = list[tuple[ProgramStep, int]]


class ListPrograms(CodeTask):
    """Write a short Python program that computes something from a list of integers.

    Args:
        level: Number of steps, 1 to 5.
        style: "stdin" or "function", see the table above.
        split: "train" or "test"; they share no problem.
        seed: Selects other problems; it is mixed with the index.
        options: The fields of ``CodeOptions``.

    Raises:
        ValueError: An argument is not allowed.
    """

    name = "list_programs"

    @with_code_options
    def __init__(
        self, *, level: int = 1, style: Style = "stdin", split: Split = "train", seed: int = 0, **options: Any
    ) -> None:
        super().__init__(**options)
        for name, value, allowed in (("style", style, Style), ("split", split, Split)):
            if value not in get_args(allowed):
                raise ValueError(expected_one_of(name, value, get_args(allowed)))
        self.level = check_integer("level", level, 1, LEVELS)
        self.seed = check_integer("seed", seed, 0)
        self.style, self.split = style, split

    def problem(self, index: int) -> Problem:
        number = check_index(self, index)
        rng = np.random.default_rng([self.seed, number])
        steps = self._steps(rng)
        while split_of(key_of(steps)) != self.split:  # a fifth of all problems is in "test"
            steps = self._steps(rng)
        return self._item(steps, rng).problem(number)

    def _steps(self, rng: np.random.Generator) -> Steps:
        changes = [CHANGES[i] for i in rng.choice(len(CHANGES), size=self.level - 1, replace=False)]
        steps = [*changes, RESULTS[int(rng.integers(len(RESULTS)))]]
        return [(step, int(rng.integers(2, 10))) for step in steps]

    def _item(self, steps: Steps, rng: np.random.Generator) -> CodeItem:
        inputs = [self._numbers(rng) for _ in range(_PUBLIC_TESTS + _HIDDEN_TESTS)]
        if self.level >= 3:
            inputs[-1] = []
        tests = [self._test(steps, numbers) for numbers in inputs]
        return CodeItem(
            prompt=self._prompt(steps, tests[:_PUBLIC_TESTS]),
            kind="stdin" if self.style == "stdin" else "call",
            public=tests[:_PUBLIC_TESTS],
            hidden=tests[_PUBLIC_TESTS:],
            solution=self._solution(steps),
            notes={"level": self.level, "key": key_of(steps), "split": self.split},
        )

    def _numbers(self, rng: np.random.Generator) -> list[int]:
        return [int(n) for n in rng.integers(-20, 21, size=rng.integers(3, 10))]

    def _test(self, steps: Steps, numbers: list[int]) -> dict[str, Any]:
        value: Any = numbers
        for step, k in steps:
            value = step.do(value, k)
        if self.style == "function":
            return {"fn": "solve", "args": [numbers], "expected": value}
        return {"input": " ".join(map(str, numbers)) + "\n", "output": f"{value}\n"}

    def _prompt(self, steps: Steps, public: list[dict[str, Any]]) -> str:
        if self.style == "function":
            head = "Write a Python function solve(numbers). It gets a list of integers and returns the result."
            examples = [f"solve({test['args'][0]}) returns {test['expected']}" for test in public]
        else:
            head = "Write a Python program. It reads one line of integers separated by spaces and prints the result."
            examples = [f"Input: {test['input'].strip()}\nOutput: {test['output'].strip()}" for test in public]
        texts = [step.text.format(k=k) for step, k in steps]
        listed = texts if len(texts) == 1 else [f"{number}. {text}" for number, text in enumerate(texts, 1)]
        return "\n".join([head, *listed, "", "Examples:", *examples])

    def _solution(self, steps: Steps) -> str:
        lines = [step.code.format(k=k) for step, k in steps]
        if self.style == "function":
            return "\n    ".join(["def solve(numbers):", *lines, "return result"]) + "\n"
        return "\n".join(["numbers = list(map(int, input().split()))", *lines, "print(result)"]) + "\n"


GENERATORS = {"list_programs": ListPrograms}


def key_of(steps: Steps) -> str:
    """Return the steps in a canonical form: their reference code."""
    return "; ".join(step.code.format(k=k) for step, k in steps)
