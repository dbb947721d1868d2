"""Generated problems that are graded as mathematics: a marked number, or a reply that is one number."""

from __future__ import annotations

from marft_envs.drawn import Drawn
from marft_envs.mathematics import grade
from marft_envs.mathematics.agreement import answer_of
from marft_envs.task import Problem
from marft_envs.verdict import Verdict


class DrawnTask(Drawn):
    """A generator of mathematics problems; split, seed: see ``Drawn``."""

    def grade(self, answer: str, problem: Problem) -> Verdict:
        return grade(answer, problem.gold, unmarked="whole")

    def answer_of(self, text: str) -> str | None:
        return answer_of(text)
