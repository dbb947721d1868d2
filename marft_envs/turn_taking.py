"""Whose turn it is: the order of a round under D, orchestrators' plans, the way from round to round, and memory."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from marft_envs import rendering
from marft_envs.dependency import Dependency
from marft_envs.ending import Ending
from marft_envs.spaces import as_utf8
from marft_envs.task import Problem, PublicProblem
from marft_envs.transcript import Turn

Memory = Literal["none", "own", "parents", "all"]
Order = Literal["stable", "random"]


class TurnTaking(Ending):
    """The rounds of an episode. Whoever has acted is in ``_said``; who acts is in ``_order``, from ``_position`` on."""

    rounds: int
    memory: Memory
    order: Order
    feedback: list[Turn]
    _public: PublicProblem
    _rng: np.random.Generator
    _memories: dict[str, list[Turn]]
    _position: int
    _stop_asked = False  # of the class, until a reply asks: see FlexMG on the number of attributes

    @property
    def generation(self) -> tuple[str, ...]:
        """The agents that may act now: the selected one first, then all others of this round whose parents have spoken.
        None of them sees another's action of this round, so they may be sampled at the same time."""
        if self.over:
            return ()
        said = self._said
        return tuple(a for a in self._order[self._position :] if all(p in said for p in self._parents[a]))

    @property
    def dependency(self) -> Dependency:
        """D of the round being played (after the end, of the last one), over the agents that act in it, as far as it is
        known by now: with an orchestrator, before and after its reply."""
        edges = [(parent, agent) for agent, parents in self._parents.items() for parent in parents]
        return Dependency.from_edges([a for a in self.possible_agents if a in self._parents], edges)

    def _begin_round(self, number: int) -> None:
        self.round = number
        self._said: dict[str, Turn] = {}
        self._tool_turns: list[Turn] = []
        schedule = self.team.schedule
        dependency = schedule.static or schedule.begin(self._public, self.transcript, number)
        self._order, self._parents = dependency.order, dependency.parents
        if self.order == "random":
            self._order, self._parents = self._shuffled(dependency)
        self._position = 0
        if self._stop_asked:
            self._stop_asked = False
        self.agent_selection = self._order[0]

    def _shuffled(self, dependency: Dependency) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
        """A random linear extension, and the parents, which are seen in this order."""
        order = dependency.random_order(self._rng)
        place = {agent: i for i, agent in enumerate(order)}
        return order, {a: tuple(sorted(p, key=place.__getitem__)) for a, p in dependency.parents.items()}

    def _end_of_order(self) -> None:
        """All known agents of the round have spoken: an orchestrator may name more, else the round is over."""
        if self.team.schedule.static is None and self._extended():
            return
        if self.round + 1 == self.rounds or self._stop_asked or self._stops():
            self._finish()
            return
        told = [] if self.over else self._feedback()
        if not self.over:
            self._remember(told)
            self._begin_round(self.round + 1)

    def _stops(self) -> bool:
        """Whether the team's rule ends the game with this round; a fault of it ends the episode."""
        rule = self.team.stop_rule
        try:
            return rule is not None and rule(tuple(self._said.values()), self.task)
        except Exception as fault:  # the same boundary as the grader's: it reads what models write
            self._fail(f"stop: {type(fault).__name__}: {fault}")
            return False

    def _extended(self) -> bool:
        more = self.team.schedule.extend(self._public, self.transcript, self.round)
        if more is None:
            return False
        orchestrator = self._order[-1]
        self._stop_asked = more.stop
        if more.malformed:
            self.infos[orchestrator]["plan_malformed"] = more.malformed
        if more.unknown:
            self.infos[orchestrator]["plan_unknown"] = more.unknown
        if more.dependency is None:
            return False
        order, parents = more.dependency.order, more.dependency.parents
        if self.order == "random":
            order, parents = self._shuffled(more.dependency)
        self._order = (orchestrator, *order)
        self._parents = {orchestrator: ()} | {a: (orchestrator, *p) for a, p in parents.items()}
        self.agent_selection = self._order[self._position]
        return True

    def _remember(self, told: list[Turn]) -> None:
        """Move the finished round into each agent's memory, as far as the policy lets it, with the task's feedback."""
        for agent, memory in self._memories.items():
            sees = {
                "none": (),
                "own": (agent,),
                "parents": (agent, *self._parents.get(agent, ())),
                "all": tuple(self._said),
            }[self.memory]
            memory.extend(turn for speaker, turn in self._said.items() if speaker in sees)
            memory.extend(turn for turn in told if turn.agent in sees)

    def _feedback(self) -> list[Turn]:
        """What the task tells of the answering agents' texts of the finished round; a fault of it ends the episode."""
        answers = {agent: answer for agent, answer in self.answers().items() if agent in self._said}
        try:
            texts = {agent: self._told(*answer) for agent, answer in answers.items()}
        except Exception as fault:  # the same boundary
            self._fail(f"feedback: {type(fault).__name__}: {fault}")
            return []
        told = [Turn(self.round, agent, text, "feedback") for agent, text in texts.items() if text]
        self.feedback += told
        if self.render_mode == "human" and told:
            print(*(rendering.line(self, turn) for turn in told), sep="\n")
        return told

    def _told(self, answer: str, problem: Problem) -> str:
        text: Any = self.task.feedback(answer, problem) or ""
        if not isinstance(text, str):
            raise TypeError(f"{type(self.task).__name__}.feedback returned {text!r:.80}, expected a text")
        return as_utf8(text)
