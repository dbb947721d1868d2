r"""The team report: each agent writes a section that nobody else sees, and the team receives one score.

| property | value |
|---|---|
| public prompt | style "symbols": empty; style "words": explains the game |
| private part | "symbols": ``7+4=``; "words": ``Your section: what is 7 + 4?`` |
| gold | each agent's own sum |
| answer | a marked number, or a reply that is one number |
| team score | the mean of the sections' scores |

The task measures credit assignment. To each agent, the team score is its own section's score plus the noise of all
other sections; a learner can remove that noise only if it estimates each agent's contribution (with a critic, for
example). Use a team in which every agent answers and D has no edges, such as "panel_8"; with another team only the
sections of its answering agents are graded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marft_envs.arguments import expected_one_of
from marft_envs.generated_task import ProblemDraft
from marft_envs.mathematics import grade
from marft_envs.mathematics.problems.generated_math_task import GeneratedMathTask
from marft_envs.mathematics.problems.relay import STYLES, Style
from marft_envs.task import Problem
from marft_envs.transcript import Turn

_PROMPT = (
    "Your team of {n} writes a report. Each of you has a section of your own and sees nobody else's. The team is "
    "scored by the share of sections that are right. Reply with the number for your section as \\boxed{{number}}."
)


class Report(GeneratedMathTask):
    """Team reports: one sum per agent, and the mean of the agents' scores as the team's score.

    Args:
        agents: The names of the agents, each once. Each has one section, and all of them must answer.
        style: "symbols" for the tiny model (``7+4=``), "words" for chat models.
        split: "train" or "test".
        seed: The seed of the generator, an integer from 0 on.

    Raises:
        ValueError: An argument has a value that is not allowed.
        TypeError: ``seed`` is not an integer.
    """

    name = "report"

    def __init__(
        self,
        *,
        agents: Sequence[str] = ("agent_0", "agent_1"),
        style: Style = "symbols",
        split: str = "train",
        seed: int = 0,
    ) -> None:
        super().__init__(split=split, seed=seed)
        if isinstance(agents, str) or not agents or len(set(agents)) != len(agents):
            raise ValueError(f"agents={agents!r}: expected a sequence of at least one agent name, each once")
        if style not in STYLES:
            raise ValueError(expected_one_of("style", style, STYLES))
        self.agents = tuple(agents)
        self.style: Style = style

    def draw(self, rng: np.random.Generator) -> ProblemDraft:
        numbers = rng.integers(0, 10, size=(len(self.agents), 2)).tolist()
        symbols = [f"{a}+{b}=" for a, b in numbers]
        words = [f"Your section: what is {a} + {b}?" for a, b in numbers]
        return ProblemDraft(
            key="report:" + ";".join(symbols),
            prompt="" if self.style == "symbols" else _PROMPT.format(n=len(self.agents)),
            gold={agent: str(a + b) for agent, (a, b) in zip(self.agents, numbers, strict=True)},
            private=dict(zip(self.agents, symbols if self.style == "symbols" else words, strict=True)),
        )

    def progress(self, problem: Problem, turns: Sequence[Turn]) -> list[int]:
        """Return for each turn how many sections written before it in its round are correct."""
        values, correct, current_round = [], 0, 0
        for turn in turns:
            correct, current_round = correct if turn.round == current_round else 0, turn.round
            values.append(correct)
            if turn.kind == "say" and turn.agent in problem.gold:
                verdict = grade(turn.text, problem.gold[turn.agent], unmarked="whole", policy=self.policy)
                correct += verdict.score == 1
        return values
