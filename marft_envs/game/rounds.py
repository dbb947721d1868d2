"""Rounds: the order of turns under D, the turns of the present round, and what each agent remembers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from marft_envs.dependency.graph import Dependency
from marft_envs.dependency.schedule import Extension, Schedule
from marft_envs.game.settings import Memory, Order
from marft_envs.task import PublicProblem, Task
from marft_envs.team.stop_rules import StopRule
from marft_envs.transcript import Turn


class Rounds:
    """The order of turns and the agents' memories, without rewards and rendering.

    Args:
        schedule: The D of each round.
        agents: All agents, in listed order.
        rounds: The largest number of rounds.
        memory: The messages of earlier rounds that an agent reads.
        order: The execution order: the stable one, the stable one with each generation reversed, or one drawn at
            random for each round.

    Attributes:
        number: The number of the present round, from 0.
        order: The agents that are known to act in this round, in execution order.
        parents: For each of these agents the agents of this round that it sees.
        position: The index in ``order`` of the agent whose turn it is; ``len(order)`` when all of them have acted.
        turns: The turn of each agent that has acted in this round.
        tool_turns: The tool calls and results of the present turn, which only its agent sees.
        memories: For each agent the turns of earlier rounds that it reads.
        stop_requested: Whether an orchestrator ends the episode with this round.
    """

    __slots__ = (
        "_agents",
        "_count",
        "_execution",
        "_memory",
        "_public",
        "_rng",
        "_schedule",
        "_transcript",
        "memories",
        "number",
        "order",
        "parents",
        "position",
        "stop_requested",
        "tool_turns",
        "turns",
    )

    def __init__(self, schedule: Schedule, agents: Sequence[str], *, rounds: int, memory: Memory, order: Order) -> None:
        self._schedule, self._agents, self._count = schedule, tuple(agents), rounds
        self._memory, self._execution = memory, order

    def begin_episode(self, public: PublicProblem, transcript: Sequence[Turn], rng: np.random.Generator) -> None:
        """Start the first round with empty memories.

        Args:
            public: The problem without its gold, which a schedule may read.
            transcript: The list to which the game appends its turns.
            rng: Draws the execution order if that is random.
        """
        self._public, self._transcript, self._rng = public, transcript, rng
        self.memories: dict[str, list[Turn]] = {agent: [] for agent in self._agents}
        self.begin_round(0)

    def begin_round(self, number: int) -> None:
        """Start round ``number``."""
        self.number = number
        self.turns: dict[str, Turn] = {}
        self.tool_turns: list[Turn] = []
        self.position = 0
        self.stop_requested = False
        schedule = self._schedule
        self._use(schedule.static or schedule.begin(self._public, self._transcript, number))

    def _use(self, dependency: Dependency) -> None:
        self.order, self.parents = dependency.order, dependency.parents
        if self._execution != "stable":
            self.order, self.parents = self._reordered(dependency)

    def _reordered(self, dependency: Dependency) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
        """Return the reversed order or a random one, and the parents of each agent in that order."""
        order = dependency.reversed_order if self._execution == "reversed" else dependency.random_order(self._rng)
        position = {agent: i for i, agent in enumerate(order)}
        return order, {a: tuple(sorted(p, key=position.__getitem__)) for a, p in dependency.parents.items()}

    @property
    def selected(self) -> str:
        """The agent whose turn it is."""
        return self.order[self.position]

    @property
    def is_last(self) -> bool:
        """Whether this is the last round."""
        return self.number + 1 == self._count

    @property
    def generation(self) -> tuple[str, ...]:
        """The agents that may act now: the selected one, then the others of this round whose parents have acted."""
        turns = self.turns
        return tuple(a for a in self.order[self.position :] if all(p in turns for p in self.parents[a]))

    @property
    def dependency(self) -> Dependency:
        """D of this round, over the agents that are known to act in it."""
        edges = [(parent, agent) for agent, parents in self.parents.items() for parent in parents]
        return Dependency.from_edges([a for a in self._agents if a in self.parents], edges)

    def extend(self) -> Extension | None:
        """Add the agents that the schedule names once all known agents of this round have acted.

        Returns:
            The effect of an orchestrator's reply; None if the schedule adds nothing. Its agents act next, and all of
            them see the orchestrator.
        """
        extension = self._schedule.extend(self._public, self._transcript, self.number)
        if extension is None:
            return None
        self.stop_requested = extension.stop
        if extension.dependency is not None:
            orchestrator = self.order[-1]
            self._use(extension.dependency)
            self.order = (orchestrator, *self.order)
            self.parents = {orchestrator: ()} | {a: (orchestrator, *p) for a, p in self.parents.items()}
        return extension

    def remember(self, feedback: Sequence[Turn]) -> None:
        """Add the finished round's turns, and the feedback on them, to the memories of the agents that read them."""
        for agent, memory in self.memories.items():
            sees = {
                "none": (),
                "own": (agent,),
                "parents": (agent, *self.parents.get(agent, ())),
                "all": tuple(self.turns),
            }[self._memory]
            memory.extend(turn for speaker, turn in self.turns.items() if speaker in sees)
            memory.extend(turn for turn in feedback if turn.agent in sees)


def stops_early(rule: StopRule, turns: Sequence[Turn], task: Task) -> tuple[Any, str]:
    """Return whether a stop rule ends the episode, and the fault if it raised an exception ("" if not).

    A rule reads what models write, so an exception is a fault, like a grader's, and does not end the program.
    """
    try:
        return rule(turns, task), ""
    except Exception as fault:  # an exception in a user's function is a fault
        return False, f"stop: {type(fault).__name__}: {fault}"
