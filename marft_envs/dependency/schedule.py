"""Schedules: the dependency function D of each round of an episode.

D is the same in every round (``Static``), listed round by round (``PerRound``), computed by a function when a round
begins (``FunctionSchedule``), or decided by an agent's reply in the middle of a round (``Orchestrated``, in
``orchestration.py``). In each of them D is a ``Dependency`` over the agents that act in the round: all, or some.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marft_envs.arguments import callable_name, check_callable
from marft_envs.dependency import diagram
from marft_envs.dependency.graph import Dependency, as_dependency
from marft_envs.task import PublicProblem
from marft_envs.transcript import Turn

Transcript = Sequence[Turn]


class Schedule(ABC):
    """The dependency function D of each round: which agents act, in which order, and which messages each of them sees.

    ``print(team.dependency)`` describes it. Two schedules are equal if they have the same type and settings.

    Attributes:
        agents: All agents of the team, in listed order.
        static: The D of every round if it never changes, else None.
    """

    agents: tuple[str, ...]
    static: Dependency | None = None

    @abstractmethod
    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        """Return D at the beginning of a round, over the agents that are known to act in it.

        Args:
            problem: The problem without its gold.
            transcript: Every turn before this round.
            round: The number of the round, from 0.
        """

    def extend(self, problem: PublicProblem, transcript: Transcript, round: int) -> Extension | None:
        """Return which agents act next when all known agents of the round have acted; None ends the round."""
        return None

    def check_rounds(self, rounds: int) -> None:
        """Raise ValueError if the schedule does not fit a game of ``rounds`` rounds. By default it fits any."""
        return None

    def bind(self, agents: Sequence[str]) -> Schedule:
        """Return this schedule for a team of ``agents``; ValueError if it was made for others."""
        if self.agents != tuple(agents):
            raise ValueError(f"dependency is over agents {list(self.agents)}: expected {list(agents)}")
        return self

    def briefing(self, summaries: Mapping[str, str], answering: Sequence[str], rounds: int) -> Mapping[str, str]:
        """Return what is appended to the system messages of agents, by agent.

        Args:
            summaries: For each agent its role in a few words, "" for none.
            answering: The agents that give the team's answer.
            rounds: The largest number of rounds of an episode.
        """
        return {}

    @abstractmethod
    def graphs(self) -> list[diagram.Graph]:
        """Return the graphs to draw; ValueError if none is known before a round begins."""

    def to_mermaid(self) -> str:
        """Return a Mermaid flowchart, for Markdown pages."""
        return diagram.mermaid(self.graphs())

    def to_graphviz(self) -> str:
        """Return a Graphviz digraph, for ``dot``."""
        return diagram.graphviz(self.graphs())

    def _settings(self) -> dict[str, Any]:
        """Return the settings that two equal schedules share, comparable with ``==``."""
        return vars(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and type(self) is type(other) and self._settings() == other._settings()

    def __hash__(self) -> int:
        return hash((type(self), self.agents))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {', '.join(self.agents)}>"


@dataclass(frozen=True, slots=True)
class Extension:
    """The rest of a round, as an orchestrator's reply decides it.

    Attributes:
        dependency: D over the agents that act next, all of which also see the orchestrator; None if no agent acts.
        stop: Whether the episode ends with this round.
        malformed: Why the reply could not be read; "" if it could.
        unknown: Names in the reply that no agent has.
    """

    dependency: Dependency | None
    stop: bool = False
    malformed: str = ""
    unknown: tuple[str, ...] = ()


class Static(Schedule):
    """A schedule with the same D in every round."""

    def __init__(self, dependency: Dependency) -> None:
        self.static, self.agents = dependency, dependency.agents
        self._dependency = dependency

    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        return self._dependency

    def graphs(self) -> list[diagram.Graph]:
        return [diagram.Graph(self.agents, self._dependency.edges)]

    def __str__(self) -> str:
        return str(self._dependency)

    def __repr__(self) -> str:
        return f"Static({self._dependency!r})"


class PerRound(Schedule):
    """A schedule that lists D for each round.

    Args:
        specs: One D for each round, each in any form that ``as_dependency`` accepts.
        agents: Names in listed order.

    Raises:
        TypeError: ``specs`` is not a list.
        ValueError: ``specs`` is empty, or an entry is not a D over the agents.
    """

    def __init__(self, specs: Sequence[Any], agents: Sequence[str]) -> None:
        if isinstance(specs, str) or not isinstance(specs, (Sequence, np.ndarray)):
            raise TypeError(
                f"dependency rounds={specs!r:.80}: got {type(specs).__name__}, expected a list of one D for each round"
            )
        if not len(specs):
            raise ValueError("dependency rounds=[]: expected one D for each round")
        self.agents = tuple(agents)
        self.dependencies = tuple(as_dependency(spec, agents) for spec in specs)

    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        return self.dependencies[round]

    def check_rounds(self, rounds: int) -> None:
        if rounds != len(self.dependencies):
            raise ValueError(f"rounds={rounds!r}: expected {len(self.dependencies)}, one for each D of the list")

    def graphs(self) -> list[diagram.Graph]:
        return [diagram.Graph(self.agents, d.edges, f"round {number}") for number, d in enumerate(self.dependencies)]

    def __str__(self) -> str:
        return "\n".join(f"round {number}:\n{indented(d)}" for number, d in enumerate(self.dependencies))

    def __repr__(self) -> str:
        return f"PerRound({list(self.dependencies)!r}, {list(self.agents)!r})"


class FunctionSchedule(Schedule):
    """A schedule that calls a function at the beginning of each round.

    Args:
        function: ``(problem, transcript, round) -> spec``, where ``problem`` is the public part, so that D cannot
            depend on the gold. ``spec`` is any form of a D over all agents that ``as_dependency`` accepts, or a
            ``Dependency`` over some of them; then only these act.
        agents: Names in listed order.

    Raises:
        TypeError: ``function`` does not accept these arguments.
    """

    def __init__(self, function: Callable[[PublicProblem, Transcript, int], Any], agents: Sequence[str]) -> None:
        check_callable("dependency", function, ("problem", "transcript", "round"))
        self.function, self.agents = function, tuple(agents)

    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        """Return the function's D for this round.

        Raises:
            RuntimeError: The function raised an exception, which is the cause.
            ValueError: The function did not return a D over agents of the team.
        """
        context = f"dependency function {callable_name(self.function)}, round {round}"
        try:
            spec = self.function(problem, tuple(transcript), round)
        except Exception as fault:
            raise RuntimeError(f"{context}: raised {type(fault).__name__}: {fault}") from fault
        agents = spec.agents if isinstance(spec, Dependency) else self.agents
        try:
            return _check_members(as_dependency(spec, agents), self.agents)
        except (ValueError, TypeError) as fault:
            raise ValueError(f"{context}: {fault}") from fault

    def graphs(self) -> list[diagram.Graph]:
        raise ValueError(
            f"D is decided by the function {callable_name(self.function)} in each round: expected a fixed one; "
            "env.unwrapped.dependency is the D of the round being played"
        )

    def __str__(self) -> str:
        docstring = (inspect.getdoc(self.function) if inspect.isroutine(self.function) else "") or ""
        summary = f": {docstring.splitlines()[0]}" if docstring else ""
        call = f"{callable_name(self.function)}(problem, transcript, round)"
        return f"decided at the beginning of each round by the function {call}{summary}\nover {', '.join(self.agents)}"

    def __repr__(self) -> str:
        return f"FunctionSchedule({callable_name(self.function)}, {list(self.agents)!r})"


def indented(text: Any) -> str:
    """Return ``str(text)`` with each line indented by two spaces."""
    return "\n".join(f"  {line}" for line in str(text).splitlines())


def _check_members(dependency: Dependency, agents: tuple[str, ...]) -> Dependency:
    """Return ``dependency``; ValueError if it names an agent that is not in ``agents``."""
    unknown = [a for a in dependency.agents if a not in agents]
    if unknown:
        raise ValueError(f"dependency is over {unknown}, which are not in the team: expected some of {list(agents)}")
    return dependency


def as_schedule(spec: Any, agents: Sequence[str]) -> Schedule:
    """Return the schedule that ``spec`` describes.

    Args:
        spec: One of
            a preset, a matrix, a list of edges or a Dependency: the D of every round;
            ``{"rounds": [spec, ...]}``, or a list of presets, Dependencies and arrays: one D for each round;
            a function ``(problem, transcript, round) -> spec``: called at the beginning of each round;
            a Schedule, such as ``Orchestrated("planner_0")``: bound to the agents.
        agents: Names in listed order.

    Raises:
        TypeError, ValueError: ``spec`` is none of these, or does not fit the agents.
    """
    if isinstance(spec, Schedule):
        return spec.bind(agents)
    if isinstance(spec, dict):
        if set(spec) != {"rounds"}:
            raise ValueError(f"dependency has keys {sorted(spec)}: expected only 'rounds', a list of one D a round")
        return PerRound(spec["rounds"], agents)
    if callable(spec):
        return FunctionSchedule(spec, agents)
    if isinstance(spec, (list, tuple)) and spec and all(_is_whole_dependency(entry) for entry in spec):
        return PerRound(spec, agents)
    return Static(as_dependency(spec, agents))


def _is_whole_dependency(entry: Any) -> bool:
    """Return whether an entry of a list is a D by itself, not an edge or a row of a matrix."""
    return isinstance(entry, (Dependency, str)) or (isinstance(entry, np.ndarray) and entry.ndim == 2)
