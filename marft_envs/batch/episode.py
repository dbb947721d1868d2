"""Records of a batch runner: requests to the policy, replies, steps, finished episodes, counts."""

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
    """A request for the next action of one agent in one episode.

    Attributes:
        episode: The number of the episode in this call of ``play`` or ``stream``.
        index: The index of the problem in the task.
        agent: The agent that acts.
        round: The current round, from 0.
        turn: How many actions were requested in the episode before this one.
        observation: The agent's observation: ``messages`` and ``reply_prefix``.
        group: The group of the episode. All episodes of a group play the same problem.
        member: The position of the episode in its group, from 0.
        repetition: How many earlier episodes of the call play the same problem. It is ``member`` unless several groups
            play one problem. Problem, repetition and turn identify the request among all of the call.
    """

    episode: int
    index: int
    agent: str
    round: int
    turn: int
    observation: dict[str, Any]
    group: int = 0
    member: int = 0
    repetition: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A policy's answer to a request.

    Attributes:
        text: The action.
        data: Anything that the policy wants to store with the action, such as token ids and log-probabilities. The
            runner does not read it and returns it as ``Step.data``.
    """

    text: str
    data: Any = None


class PolicyFault(RuntimeError):
    """A request without a reply, through no fault of the agent: an endpoint's 429, a lost connection.

    A policy returns it in place of the reply to one request, or raises it if it has no reply to any request of the
    call. Each episode that is without a reply at that agent's turn ends without a score (``Episode.not_graded``), and
    the others are played on. Any other exception of a policy is an error in its code, and propagates.
    """


Policy = Callable[[list[Request]], Sequence["str | Reply | PolicyFault"]]
Policies = Policy | Mapping[str, Policy]


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a played episode.

    Attributes:
        request: The request that the policy answered.
        text: The policy's text, before the environment clips it.
        data: ``Reply.data``; None if the policy returned a string.
    """

    request: Request
    text: str
    data: Any


@dataclass(frozen=True, slots=True)
class FinalState:
    """The state in which an outside limit truncated an episode.

    Attributes:
        agent: The agent that would have acted next.
        round: The round of that action.
        observations: The observation of every agent in this state, by agent.
    """

    agent: str
    round: int
    observations: Mapping[str, dict[str, Any]]


@dataclass(slots=True)
class Episode:
    """One finished episode.

    Attributes:
        index: The index of the problem in the task.
        steps: The actions in the order in which they were played.
        outcome: The team's verdicts and score; None for a truncated episode.
        rewards: The environment's rewards at the end, by agent.
        terminated: Whether the environment terminated all agents, that is, the answer was graded.
        not_graded: Why the episode has no score; "" if it has one. Exclude such an episode from means, and count it.
        truncated: The outside limit that truncated the episode; "" if none did. A truncated episode is not graded.
        final_state: The state in which an outside limit truncated the episode, from which a learner may bootstrap.
            None for every other episode, also for one that a fault ended.
        number: The number of the episode in its call of ``play`` or ``stream``.
        group: As in ``Request``.
        member: As in ``Request``.
        seed: The seed of the environment's ``reset``; None if it was reset without one.
        problem: The problem.
        infos: The environment's infos at the end, by agent.
        transcript: All turns, tool calls and tool results included, as the environment recorded them.
    """

    index: int
    steps: list[Step] = field(default_factory=list)
    outcome: TeamOutcome | None = None
    rewards: dict[str, float] = field(default_factory=dict)
    terminated: bool = False
    not_graded: str = ""
    truncated: str = ""
    final_state: FinalState | None = None
    number: int = 0
    group: int = 0
    member: int = 0
    seed: int | None = None
    problem: Problem | None = None
    infos: dict[str, dict[str, Any]] = field(default_factory=dict)
    transcript: list[Turn] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The team's score in [0, 1]. It is 0 if the episode was not graded, so check ``not_graded`` first."""
        return self.outcome.score if self.outcome else 0.0

    def record_result(self, game: FlexMG) -> None:
        """Copy the result of a game that is over and settled, before any agent has left it."""
        self.infos, self.outcome, self.rewards = game.infos, game.outcome, game.rewards
        self.terminated = all(game.terminations.values())
        self.truncated = _first_info(game.infos, "truncated")
        self.not_graded = _first_info(game.infos, "not_graded")
        if self.truncated and not self.not_graded:
            self.not_graded = f"truncated: {self.truncated}"
        if game.truncated_before is not None:
            observations = {agent: game.observe(agent) for agent in game.possible_agents}
            self.final_state = FinalState(game.truncated_before, game.round, observations)


def _first_info(infos: Mapping[str, Mapping[str, Any]], key: str) -> str:
    return next((str(info[key]) for info in infos.values() if key in info), "")


@dataclass(slots=True)
class Counts:
    """Totals over all calls of a runner; ``episodes`` is ``graded + not_graded + truncated``.

    Attributes:
        turns: Replies that the policy returned.
        episodes: Finished episodes.
        graded: Episodes with a score.
        not_graded: Episodes without a score because of a fault of the grader, a tool or the policy.
        truncated: Episodes that an outside limit truncated.
        discarded: Replies that were not played, because the episode ended before them in the same wave.
        unanswered: Requests to which the policy gave a ``PolicyFault`` in place of a reply.
    """

    turns: int = 0
    episodes: int = 0
    graded: int = 0
    not_graded: int = 0
    truncated: int = 0
    discarded: int = 0
    unanswered: int = 0

    def add(self, episode: Episode) -> None:
        """Count a finished episode."""
        self.episodes += 1
        if episode.truncated:
            self.truncated += 1
        elif episode.not_graded:
            self.not_graded += 1
        else:
            self.graded += 1
