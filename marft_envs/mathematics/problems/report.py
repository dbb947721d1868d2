r"""Team report: every agent writes its own section, nobody sees anybody, and one team score comes at the end.

| | |
|---|---|
| public prompt | style "symbols": empty; style "words": explains the game |
| private part | "symbols": ``7+4=``; "words": ``Your section: what is 7 + 4?`` |
| gold | each agent's own sum |
| an answer | a marked number, or a reply that is one number |
| team score | the mean of the sections |

A question of credit: the one score carries the noise of all other sections, and only a learner that can tell who did
well (a critic, a chained bootstrap) can take it out again. Use a team in which everybody answers and D has no edges,
such as "panel_8".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marft_envs.generated_task import ProblemDraft
from marft_envs.mathematics import grade
from marft_envs.mathematics.problems.generated_math_task import GeneratedMathTask
from marft_envs.mathematics.problems.relay import STYLES
from marft_envs.task import Problem
from marft_envs.transcript import Turn

_PROMPT = (
    "Your team of {n} writes a report. Each of you has a section of your own and sees nobody else's. The team is "
    "scored by the share of sections that are right. Reply with the number for your section as \\boxed{{number}}."
)


class Report(GeneratedMathTask):
    """agents: one section each; all of them must answer. style: "symbols" (tiny model) or "words" (chat)."""

    name = "report"

    def __init__(
        self,
        *,
        agents: Sequence[str] = ("agent_0", "agent_1"),
        style: str = "symbols",
        split: str = "train",
        seed: int = 0,
    ) -> None:
        super().__init__(split=split, seed=seed)
        if isinstance(agents, str) or not agents or len(set(agents)) != len(agents):
            raise ValueError(f"agents={agents!r}: expected a sequence of at least one agent name, each once")
        if style not in STYLES:
            raise ValueError(f"style={style!r}: expected one of {', '.join(STYLES)}")
        self.agents, self.style = tuple(agents), style

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
        """How many sections of the round are right so far."""
        known, right, playing = [], 0, 0
        for turn in turns:
            right, playing = right if turn.round == playing else 0, turn.round
            known.append(right)
            if turn.kind == "say" and turn.agent in problem.gold:
                right += grade(turn.text, problem.gold[turn.agent], unmarked="whole").score == 1
        return known
