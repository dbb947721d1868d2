"""Generated problems that are graded as mathematics: a marked number, or a reply that is one number."""

from __future__ import annotations

from marft_envs.generated_task import GeneratedTask
from marft_envs.mathematics import grade
from marft_envs.mathematics.grader.canonical_answer import canonical_answer
from marft_envs.task import Problem
from marft_envs.verdict import Verdict


class GeneratedMathTask(GeneratedTask):
    """A generator of mathematics problems; split, seed: see ``GeneratedTask``."""

    def grade(self, answer: str, problem: Problem) -> Verdict:
        return grade(answer, problem.gold, unmarked="whole")

    def answer_of(self, text: str) -> str | None:
        return canonical_answer(text)
