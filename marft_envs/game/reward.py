"""From the team's score to a reward for each agent.

What a learner of ``baselines`` trains on does not depend on this choice: it takes the team's score (``outcome.score``)
and places it itself (algorithms.md 2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from marft_envs.arguments import check_callable, expected_one_of
from marft_envs.verdict import Verdict


@dataclass(frozen=True, slots=True)
class TeamOutcome:
    """How an episode came out.

    agents: all agents, in listed order. answering: those whose text was graded. verdicts: one for each of them.
    score: the team's score in [0, 1]. last_agent: who acted last. rounds: how many rounds were played.
    """

    agents: tuple[str, ...]
    answering: tuple[str, ...]
    verdicts: Mapping[str, Verdict]
    score: float
    last_agent: str
    rounds: int


Reward = Callable[[TeamOutcome], dict[str, float]]


def shared(outcome: TeamOutcome) -> dict[str, float]:
    """Every agent gets the team's score: the sum over agents is n times the score."""
    return dict.fromkeys(outcome.agents, outcome.score)


def last(outcome: TeamOutcome) -> dict[str, float]:
    """Only the agent that acted last is paid: the sum over agents is the score."""
    return {agent: outcome.score if agent == outcome.last_agent else 0.0 for agent in outcome.agents}


def answerer(outcome: TeamOutcome) -> dict[str, float]:
    """Each answering agent gets the score of its own text, the others nothing."""
    return {a: outcome.verdicts[a].score if a in outcome.verdicts else 0.0 for a in outcome.agents}


@dataclass(frozen=True, slots=True)
class StepDiscounted:
    """Every agent gets gamma^(rounds - 1) times the team's score: a right answer is worth more, the sooner it comes."""

    gamma: float

    def __post_init__(self) -> None:
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"StepDiscounted gamma={self.gamma!r}: expected a number in [0, 1]")

    def __call__(self, outcome: TeamOutcome) -> dict[str, float]:
        return dict.fromkeys(outcome.agents, self.gamma ** (outcome.rounds - 1) * outcome.score)


REWARDS: dict[str, Reward] = {"shared": shared, "last": last, "answerer": answerer}


def as_reward(spec: str | Reward) -> Reward:
    """A reward function from its name or from a callable ``outcome -> {agent: reward}``."""
    if callable(spec):
        check_callable("reward", spec, ("outcome",))
        return spec
    if not isinstance(spec, str) or spec not in REWARDS:
        raise ValueError(expected_one_of("reward", spec, REWARDS, " or a callable"))
    return REWARDS[spec]
