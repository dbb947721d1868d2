"""Metrics of several samples per problem: pass@k and the vote of the majority. avg@k is the mean score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marft_envs.task import Problem, Task
from marft_envs.verdict import Outcome


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Return the unbiased estimate of the probability that one of k samples is correct.

    1 - C(n - c, k) / C(n, k), as a product that does not overflow.

    Source: Chen et al. 2021, "Evaluating large language models trained on code", equation 1,
    https://arxiv.org/abs/2107.03374.

    Args:
        samples: n, the number of samples of the problem.
        correct: c, how many of them are correct, 0 to n.
        k: Number of samples that may be tried, 1 to n.

    Raises:
        ValueError: ``correct`` or ``k`` is outside its range.
    """
    if not 0 <= correct <= samples:
        raise ValueError(f"correct={correct}: expected 0 to samples={samples}")
    if not 1 <= k <= samples:
        raise ValueError(f"k={k}: expected 1 to samples={samples}")
    if samples - correct < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(samples - correct + 1, samples + 1)))


def majority(task: Task, problem: Problem, answers: Sequence[str | None]) -> int | None:
    """Return the sample whose answer most samples have, with the grader's equality of mathematical answers.

    Two answers are equal if the grader accepts the later one with the earlier one as the gold: 1/2 votes for 0.5. A
    sample without an answer does not vote. Of answers with equally many votes, the one that was given first wins.

    Args:
        task: A task of mathematics, whose gold is one answer.
        problem: The problem.
        answers: The answer of each sample (``Task.answer_of``), in their order; None: no answer.

    Returns:
        The index of the first sample with the winning answer; None if no sample has an answer.
    """
    groups: list[list[int]] = []
    for sample, answer in enumerate(answers):
        if answer is None:
            continue
        for group in groups:
            if _equal(task, problem, answer, answers[group[0]]):
                group.append(sample)
                break
        else:
            groups.append([sample])
    return max(groups, key=len)[0] if groups else None  # max returns the first of equals


def _equal(task: Task, problem: Problem, answer: str, other: str | None) -> bool:
    if answer == other:
        return True
    return task.grade(f"\\boxed{{{answer}}}", replace(problem, gold=other)).outcome is Outcome.CORRECT
