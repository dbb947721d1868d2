"""A sum that all agents of a team answer, and a vote: ``benchmarks.tasks.voted_sums:voted_sums_4_v0`` has four agents.

The study of homogeneous teams uses it. The problem is public and all agents have the same role, so that a single agent
can take the place of the team.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from marft_envs import Verdict, register
from marft_envs.generated_task import ProblemDraft
from marft_envs.mathematics.problems.generated_math_task import GeneratedMathTask
from marft_envs.mathematics.teams import panel
from marft_envs.team import Role

SIZES = (2, 4, 8)


class VotedSums(GeneratedMathTask):
    """Add two one-digit numbers. Every agent of the team replies with the sum, and the majority decides.

    The team's score is 1 if more than half of the agents are right, 0.5 if half of them are, and else 0. Agents do not
    see each other. The prompt is ``7+4=``, as the tiny models read it.

    Data: 100 different problems, a part of them in "test"; no problem is in two splits.

    Version history: v0, first version.
    """

    name = "voted_sums"

    def draw(self, rng: np.random.Generator) -> ProblemDraft:
        first, second = rng.integers(0, 10, size=2).tolist()
        prompt = f"{first}+{second}="
        return ProblemDraft(key=f"voted_sums:{prompt}", prompt=prompt, gold=str(first + second))

    def team_score(self, verdicts: Mapping[str, Verdict]) -> float:
        """Return 1, 0.5 or 0: more than half of the agents are right, half of them, or fewer."""
        right = sum(verdict.score == 1 for verdict in verdicts.values())
        return 1.0 if 2 * right > len(verdicts) else 0.5 if 2 * right == len(verdicts) else 0.0


for _size in SIZES:
    register(f"voted_sums_{_size}", version=0, team=panel(_size, Role(answers=True))())(VotedSums)
