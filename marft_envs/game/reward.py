"""Reward functions: from the team's outcome to a reward for each agent.

The learners in ``baselines`` do not use these rewards: they read the team's score (``outcome.score``) and assign it to
turns themselves (docs/reference/algorithms.md, section 2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from marft_envs.arguments import check_callable, expected_one_of
from marft_envs.verdict import Verdict


@dataclass(frozen=True, slots=True)
class TeamOutcome:
    """The result of a finished episode.

    Attributes:
        agents: All agents, in listed order.
        answering: The agents whose messages were graded.
        verdicts: The verdict on each answering agent.
        score: The team's score in [0, 1].
        last_agent: The agent that acted last.
        rounds: The number of rounds that were played.
    """

    agents: tuple[str, ...]
    answering: tuple[str, ...]
    verdicts: Mapping[str, Verdict]
    score: float
    last_agent: str
    rounds: int


Reward = Callable[[TeamOutcome], dict[str, float]]
"""A function from the outcome to the reward of each agent."""


def shared(outcome: TeamOutcome) -> dict[str, float]:
    """Return the team's score for every agent; the sum over n agents is n times the score."""
    return dict.fromkeys(outcome.agents, outcome.score)


def last(outcome: TeamOutcome) -> dict[str, float]:
    """Return the team's score for the agent that acted last and 0 for the others; the sum is the score."""
    return {agent: outcome.score if agent == outcome.last_agent else 0.0 for agent in outcome.agents}


def answerer(outcome: TeamOutcome) -> dict[str, float]:
    """Return the score of its own message for each answering agent, and 0 for the others."""
    return {a: outcome.verdicts[a].score if a in outcome.verdicts else 0.0 for a in outcome.agents}


@dataclass(frozen=True, slots=True)
class StepDiscounted:
    """A reward function that discounts the team's score by the number of rounds.

    Every agent gets gamma^(rounds - 1) * score, so a correct answer in fewer rounds is rewarded more.

    Args:
        gamma: The discount per round, in [0, 1].

    Raises:
        ValueError: ``gamma`` is outside [0, 1].
    """

    gamma: float

    def __post_init__(self) -> None:
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"StepDiscounted gamma={self.gamma!r}: expected a number in [0, 1]")

    def __call__(self, outcome: TeamOutcome) -> dict[str, float]:
        return dict.fromkeys(outcome.agents, self.gamma ** (outcome.rounds - 1) * outcome.score)


REWARDS: dict[str, Reward] = {function.__name__: function for function in (shared, last, answerer)}
"""The reward functions that have a name."""


def as_reward(spec: str | Reward) -> Reward:
    """Return a reward function.

    Args:
        spec: The name of one in ``REWARDS``, or a callable ``outcome -> {agent: reward}``.

    Raises:
        TypeError: The callable does not accept one argument.
        ValueError: There is no reward function of that name.
    """
    if callable(spec):
        check_callable("reward", spec, ("outcome",))
        return spec
    if not isinstance(spec, str) or spec not in REWARDS:
        raise ValueError(expected_one_of("reward", spec, REWARDS, " or a callable"))
    return REWARDS[spec]
