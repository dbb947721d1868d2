"""Base class of the generators: problems with a numeric answer, graded as mathematics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marft_envs.generated_task import GeneratedTask
from marft_envs.mathematics import grade
from marft_envs.mathematics.grader.canonical_answer import canonical_answer
from marft_envs.mathematics.grader.grading_policy import GradingPolicy
from marft_envs.task import Problem
from marft_envs.verdict import Verdict


class GeneratedMathTask(GeneratedTask):
    """Base class of the generators of mathematics problems.

    A reply answers with a marked number (``\\boxed{42}``, "the answer is 42") or by being a number and nothing else. An
    expression that is not evaluated, such as 40 + 2, is wrong.

    Attributes:
        policy: How replies are compared with the golds.

    Args:
        split: "train" or "test".
        seed: The seed of the generator, an integer from 0 on.
    """

    policy = GradingPolicy(arithmetic="evaluated")  # 7 + 4 is no answer to "7 + 4 =", although it equals 11

    def grade(self, answer: str, problem: Problem) -> Verdict:
        return grade(answer, problem.gold, unmarked="whole", policy=self.policy)

    def answer_of(self, text: str) -> str | None:
        return canonical_answer(text)


def choose(rng: np.random.Generator, choices: Sequence[str]) -> str:
    """Return one of ``choices``, each with the same probability."""
    return choices[int(rng.integers(len(choices)))]
