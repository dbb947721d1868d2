"""What a batch runner hands out: requests to the policy, the steps played, finished episodes, and counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from marft_envs.game.reward import TeamOutcome
from marft_envs.task import Problem
from marft_envs.transcript import Turn

if TYPE_CHECKING:
    from marft_envs.game.flex_mg import FlexMG


@dataclass(frozen=True, slots=True)
class Request:
    """One agent of one episode waits for its action.

    episode: its number in this call of ``play`` or ``stream``. index: the problem's. turn: how many actions were asked
    of the episode before this one. group: the same number for all episodes of a call on one pinned problem. member:
    the place in the group.
    """

    episode: int
    index: int
    agent: str
    round: int
    turn: int
    observation: dict[str, Any]
    group: int = 0
    member: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """An action's text, and whatever the policy wants to find again beside it in ``Step.kept``."""

    text: str
    kept: Any = None


Policy = Callable[[list[Request]], Sequence["str | Reply"]]
Policies = Policy | Mapping[str, Policy]


@dataclass(frozen=True, slots=True)
class Step:
    """One action as it was played; text is the policy's, before any clipping."""

    request: Request
    text: str
    kept: Any


@dataclass(frozen=True, slots=True)
class FinalState:
    """Where an outside limit has cut an episode: agent would have acted next, in ``round``; what every agent would have
    read there, by agent."""

    agent: str
    round: int
    observations: Mapping[str, dict[str, Any]]


@dataclass(slots=True)
class Episode:
    """One finished episode.

    outcome.score is the team's score. rewards: the environment's, by agent. not_graded: why there is no score, "" where
    there is one; such an episode must be kept out of means, and counted. truncated: the outside limit that cut it, ""
    without one; it is then not graded either. final: what such an episode would have gone on with, from which a learner
    may bootstrap; None for every other, a fault's included. group, member: as in ``Request``. seed: what the
    environment was reset with, None where its own generator went on. infos: the environment's at the end, by agent.
    transcript: all turns as the environment holds them.
    """

    index: int
    steps: list[Step] = field(default_factory=list)
    outcome: TeamOutcome | None = None
    rewards: dict[str, float] = field(default_factory=dict)
    terminated: bool = False
    not_graded: str = ""
    truncated: str = ""
    final: FinalState | None = None
    number: int = 0
    group: int = 0
    member: int = 0
    seed: int | None = None
    problem: Problem | None = None
    infos: dict[str, dict[str, Any]] = field(default_factory=dict)
    transcript: list[Turn] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The team's score in [0, 1]; 0 for an episode that was not graded, so look at ``not_graded`` first."""
        return self.outcome.score if self.outcome else 0.0

    def close(self, game: FlexMG) -> None:
        """Take over how the game came out: it is over and settled, and no agent has left yet."""
        self.infos, self.outcome, self.rewards = game.infos, game.outcome, game.rewards
        self.terminated = all(game.terminations.values())
        self.truncated = _first(game.infos, "truncated")
        self.not_graded = _first(game.infos, "not_graded")
        if self.truncated and not self.not_graded:
            self.not_graded = f"truncated: {self.truncated}"
        if game.truncated_before is not None:
            views = {agent: game.observe(agent) for agent in game.possible_agents}
            self.final = FinalState(game.truncated_before, game.round, views)


def _first(infos: Mapping[str, Mapping[str, Any]], key: str) -> str:
    return next((str(info[key]) for info in infos.values() if key in info), "")


@dataclass(slots=True)
class Counts:
    """Everything a runner has done so far. episodes = graded + not_graded + truncated. unused: replies that were asked
    for side by side with one that ended the episode."""

    turns: int = 0
    episodes: int = 0
    graded: int = 0
    not_graded: int = 0
    truncated: int = 0
    unused: int = 0

    def add(self, episode: Episode) -> None:
        """Count a finished episode."""
        self.episodes += 1
        if episode.truncated:
            self.truncated += 1
        elif episode.not_graded:
            self.not_graded += 1
        else:
            self.graded += 1
