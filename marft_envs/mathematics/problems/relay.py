r"""The relay: each agent privately sees k one-digit numbers, and the last agent must report the sum of all numbers.

| property | value |
|---|---|
| public prompt | style "symbols": empty; style "words": explains the game |
| private part | "symbols": ``7+4=``; "words": ``Your numbers: 7 and 4.`` |
| gold | the sum of all agents' numbers |
| answer | a marked number, or a reply that is one number |

No agent can succeed alone. Each agent has to add its own numbers to the total that the previous agent reported;
without that message the last agent can only guess. For the same seed, both styles have the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, get_args

import numpy as np

from marft_envs.arguments import check_integer, expected_one_of
from marft_envs.generated_task import ProblemDraft
from marft_envs.mathematics import grade
from marft_envs.mathematics.problems.generated_math_task import GeneratedMathTask
from marft_envs.task import Problem
from marft_envs.transcript import Turn

Style = Literal["symbols", "words"]
STYLES: tuple[str, ...] = get_args(Style)
_PROMPT = (
    "Your team of {n} plays a relay. Each of you privately sees a few numbers, and your team must report the sum of "
    "all of them. The first of you reports the sum of their own numbers. Everyone after that adds their own numbers to "
    "the total that the teammate before them reported. Reply with your running total as \\boxed{{total}}. The total of "
    "the last of you is the team's answer."
)
_PROMPT_ALONE = "Add up your numbers. Reply with the sum as \\boxed{sum}."


class Relay(GeneratedMathTask):
    """Relay problems: a sum of which each agent privately knows some summands.

    Args:
        agents: The names of the agents in the order of the relay, each once. The last one gives the team's answer.
        k: How many numbers each agent has, 1 to 100.
        style: "symbols" for the tiny model (``7+4=``), "words" for chat models.
        split: "train" or "test".
        seed: The seed of the generator, an integer from 0 on.

    Raises:
        ValueError: An argument has a value that is not allowed.
        TypeError: ``k`` or ``seed`` is not an integer.
    """

    name = "relay"

    def __init__(
        self,
        *,
        agents: Sequence[str] = ("reasoner_0", "actor_0"),
        k: int = 2,
        style: Style = "symbols",
        split: str = "train",
        seed: int = 0,
    ) -> None:
        super().__init__(split=split, seed=seed)
        if isinstance(agents, str) or not agents or not all(isinstance(agent, str) for agent in agents):
            raise ValueError(f"agents={agents!r}: expected a sequence of at least one agent name")
        if len(set(agents)) != len(agents):
            raise ValueError(f"agents={tuple(agents)!r}: expected each name once")
        if style not in STYLES:
            raise ValueError(expected_one_of("style", style, STYLES))
        self.agents = tuple(agents)
        self.k = check_integer("k", k, 1, 100)
        self.style: Style = style

    def draw(self, rng: np.random.Generator) -> ProblemDraft:
        numbers = rng.integers(0, 10, size=(len(self.agents), self.k)).tolist()
        symbols = ["+".join(map(str, own)) + "=" for own in numbers]
        shown = symbols if self.style == "symbols" else [_in_words(own) for own in numbers]
        return ProblemDraft(
            key="relay:" + ";".join(symbols),
            prompt="" if self.style == "symbols" else self._prompt(),
            gold=str(sum(map(sum, numbers))),
            private=dict(zip(self.agents, shown, strict=True)),
            notes={"totals": dict(zip(self.agents, map(str, accumulate(map(sum, numbers))), strict=True))},
        )

    def progress(self, problem: Problem, turns: Sequence[Turn]) -> list[int]:
        """Return for each turn whether the last total reported before it in its round is correct, as 1 or 0.

        The value is 1 before the first report of a round.
        """
        values, correct, current_round = [], True, 0
        for turn in turns:
            correct = correct or turn.round != current_round
            current_round = turn.round
            values.append(int(correct))
            if turn.kind == "say" and turn.agent in self.agents:
                total = problem.notes["totals"][turn.agent]
                correct = grade(turn.text, total, unmarked="whole", policy=self.policy).score == 1
        return values

    def _prompt(self) -> str:
        return _PROMPT.format(n=len(self.agents)) if len(self.agents) > 1 else _PROMPT_ALONE


def _in_words(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"Your number: {numbers[0]}."
    return f"Your numbers: {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}."
