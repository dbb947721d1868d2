"""D over the rounds: the same each round, a list, a function, or decided by an agent's own reply.

A schedule gives, for each round, the ``Dependency`` of the agents that act in it: all agents, or some. The orchestrated
one learns it in the middle of the round: the orchestrator speaks first, and its reply says who acts next or which plan
of sub-tasks to run (dynamic organisation; Flex-MG lets D_t change with t, algorithms.md section 1).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marft_envs.dependency import PRESETS, CycleError, Dependency, as_dependency
from marft_envs.suggest import expected
from marft_envs.task import PublicProblem
from marft_envs.transcript import Turn

Transcript = Sequence[Turn]


class Schedule(ABC):
    """Which agents act in a round, in which order, and who sees whom. agents: all of them, in listed order."""

    agents: tuple[str, ...]
    static: Dependency | None = None
    """The one D of every round, where there is one."""

    @abstractmethod
    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        """D at the beginning of a round, over the agents that are known to act in it."""

    def extend(self, problem: PublicProblem, transcript: Transcript, round: int) -> Extension | None:
        """Who acts further when all known agents of the round have spoken; None: nobody, the round is over."""
        return None

    def check_rounds(self, rounds: int) -> None:
        """ValueError where the schedule does not fit a game of ``rounds`` rounds."""
        if rounds < 1:
            raise ValueError(f"rounds={rounds!r}: expected at least 1")


@dataclass(frozen=True, slots=True)
class Extension:
    """What an orchestrator's reply comes to.

    dependency: over the agents that act now, None for nobody; all of them see the orchestrator. stop: the episode is to
    end with this round. malformed: why the reply could not be read, else "".
    """

    dependency: Dependency | None
    stop: bool = False
    malformed: str = ""


class Static(Schedule):
    """The same D in every round."""

    def __init__(self, dependency: Dependency) -> None:
        self.static, self.agents = dependency, dependency.agents
        self._dependency = dependency

    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        return self._dependency


class PerRound(Schedule):
    """A D of its own for each round, from any specs that ``as_dependency`` takes."""

    def __init__(self, specs: Sequence[Any], agents: Sequence[str]) -> None:
        if not len(specs):
            raise ValueError("dependency rounds=[]: expected one D for each round")
        self.agents = tuple(agents)
        self.dependencies = tuple(as_dependency(spec, agents) for spec in specs)

    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        return self.dependencies[round]

    def check_rounds(self, rounds: int) -> None:
        if rounds != len(self.dependencies):
            raise ValueError(f"rounds={rounds!r}: expected {len(self.dependencies)}, one for each D of the list")


class Called(Schedule):
    """D from a function ``(problem, transcript, round) -> spec``, called at the beginning of each round.

    The problem is the public one, so D cannot depend on the gold. A ``Dependency`` over some of the agents lets only
    these act.
    """

    def __init__(self, function: Callable[[PublicProblem, Transcript, int], Any], agents: Sequence[str]) -> None:
        self.function, self.agents = function, tuple(agents)

    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        spec = self.function(problem, tuple(transcript), round)
        return _over_some(
            as_dependency(spec, spec.agents if isinstance(spec, Dependency) else self.agents), self.agents
        )


def _over_some(dependency: Dependency, agents: tuple[str, ...]) -> Dependency:
    strangers = [a for a in dependency.agents if a not in agents]
    if strangers:
        raise ValueError(f"dependency is over {strangers}, which are not in the team: expected some of {list(agents)}")
    return dependency


Reader = Callable[[str, tuple[str, ...]], "Dependency | None"]


class Orchestrated(Schedule):
    """The orchestrator speaks first in every round; its reply decides who acts after it, seeing its text.

    read: ``(reply, other agents) -> Dependency`` over those that act, None for a reply without a plan:
    ``names_next`` (one agent) or ``names_plan`` (sub-tasks with their order), or your own. finish: the word that ends
    the episode with this round. fallback: D of the others when the reply cannot be read; the fault of form is flagged
    in the orchestrator's info. Write it as ``Orchestrated("manager_0")``; the game binds it to its team.
    """

    def __init__(
        self,
        orchestrator: str,
        *,
        read: Reader | None = None,
        finish: str = "FINISH",
        fallback: Any = "chain",
        agents: Sequence[str] = (),
    ) -> None:
        self.orchestrator, self.finish, self.fallback = orchestrator, finish, fallback
        self.read: Reader = read or names_plan
        self.agents = tuple(agents)
        if self.agents:
            if orchestrator not in self.agents:
                raise ValueError(expected("orchestrator", orchestrator, self.agents))
            if len(self.agents) < 2:
                raise ValueError(f"orchestrator={orchestrator!r} is alone: expected at least one other agent")
            self.others = tuple(a for a in self.agents if a != orchestrator)
            self._first = Dependency.preset("none", [orchestrator])
            self._fallback = as_dependency(fallback, self.others)

    def bind(self, agents: Sequence[str]) -> Orchestrated:
        """The same schedule for a team of ``agents``."""
        return Orchestrated(
            self.orchestrator, read=self.read, finish=self.finish, fallback=self.fallback, agents=agents
        )

    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        return self._first

    def extend(self, problem: PublicProblem, transcript: Transcript, round: int) -> Extension | None:
        if transcript[-1].round != round or transcript[-1].agent != self.orchestrator:
            return None
        reply = transcript[-1].text
        stop = bool(re.search(rf"\b{re.escape(self.finish)}\b", reply))
        try:
            plan = self.read(reply, self.others)
        except (CycleError, ValueError) as fault:
            return Extension(None if stop else self._fallback, stop, str(fault))
        if plan is not None:
            return Extension(_over_some(plan, self.others), stop)
        return Extension(None, True) if stop else Extension(self._fallback, False, "names no agent")


def names_next(reply: str, agents: tuple[str, ...]) -> Dependency | None:
    """The agent whose name stands last in the reply acts next; None when there is no name."""
    places = {agent: m.start() for agent in agents for m in _named(agent, reply)}
    return Dependency.preset("none", [max(places, key=places.__getitem__)]) if places else None


def names_plan(reply: str, agents: tuple[str, ...]) -> Dependency | None:
    """Lines ``name: sub-task`` name who acts; ``name (after other, other): sub-task`` also after whom, seeing them.

    None when no line names an agent. Raises CycleError for a plan that nobody could begin, and ValueError for an
    "after" that names somebody who has no line.
    """
    steps: dict[str, list[str]] = {}
    for line in reply.splitlines():
        head = re.match(r"[\s\-*\d.)]*(\w+)\s*(?:\(\s*after\s+([^)]*)\))?\s*:", line)
        if head and head.group(1) in agents:
            after = re.split(r"[,\s]+(?:and\s+)?", head.group(2).strip()) if head.group(2) else []
            steps.setdefault(head.group(1), []).extend(name for name in after if name)
    if not steps:
        return None
    acting = [agent for agent in agents if agent in steps]
    return Dependency.from_edges(acting, [(seen, agent) for agent, after in steps.items() for seen in after])


def _named(agent: str, text: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"\b{re.escape(agent)}\b", text))


def as_schedule(spec: Any, agents: Sequence[str]) -> Schedule:
    """A schedule from any way of writing D.

    A preset, a matrix, edges or a Dependency is the D of every round; ``{"rounds": [spec, ...]}`` or a list whose
    entries are all presets, Dependencies or arrays is one D a round; a function is called each round; an
    ``Orchestrated`` is bound to the agents.
    """
    if isinstance(spec, Orchestrated):
        return spec.bind(agents)
    if isinstance(spec, Schedule):
        if spec.agents != tuple(agents):
            raise ValueError(f"dependency is over agents {list(spec.agents)}: expected {list(agents)}")
        return spec
    if isinstance(spec, dict):
        if set(spec) != {"rounds"}:
            raise ValueError(f"dependency has keys {sorted(spec)}: expected only 'rounds', a list of one D a round")
        return PerRound(spec["rounds"], agents)
    if callable(spec):
        return Called(spec, agents)
    if isinstance(spec, (list, tuple)) and spec and all(_is_whole_dependency(entry) for entry in spec):
        return PerRound(spec, agents)
    return Static(as_dependency(spec, agents))


def _is_whole_dependency(entry: Any) -> bool:
    whole = isinstance(entry, Dependency) or (isinstance(entry, np.ndarray) and entry.ndim == 2)
    return whole or (isinstance(entry, str) and entry in PRESETS)
