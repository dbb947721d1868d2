"""D over the rounds: the same each round, a list, a function, or decided by an agent's own reply.

A schedule gives, for each round, the ``Dependency`` of the agents that act in it: all agents, or some. The orchestrated
one (``orchestration.py``) learns it in the middle of the round. ``print(team.dependency)`` shows who sees whom.
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
    """Which agents act in a round, in which order, and who sees whom. agents: all of them, in listed order.

    ``str`` of it says who sees whom, ``repr`` is a line; equal by its settings.
    """

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
        """ValueError where the schedule does not fit a game of ``rounds`` rounds; by default it fits any."""
        return None

    def bound(self, agents: Sequence[str]) -> Schedule:
        """This schedule for a team of ``agents``; ValueError where it is of others."""
        if self.agents != tuple(agents):
            raise ValueError(f"dependency is over agents {list(self.agents)}: expected {list(agents)}")
        return self

    def briefing(self, summaries: Mapping[str, str], answering: Sequence[str], rounds: int) -> Mapping[str, str]:
        """Return what agents are told of the schedule at the end of their system messages, by agent.

        Args:
            summaries: Agent to its role in a few words, "" for none.
            answering: The agents that give the team's answer.
            rounds: How many rounds an episode has at most.
        """
        return {}

    @abstractmethod
    def parts(self) -> list[diagram.Part]:
        """The graphs to draw; ValueError where there are none before a round begins."""

    def to_mermaid(self) -> str:
        """A Mermaid flowchart, for Markdown pages."""
        return diagram.mermaid(self.parts())

    def to_graphviz(self) -> str:
        """A Graphviz digraph, for ``dot``."""
        return diagram.graphviz(self.parts())

    def _settings(self) -> dict[str, Any]:
        """What two equal schedules have in common, comparable with ``==``."""
        return vars(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and type(self) is type(other) and self._settings() == other._settings()

    def __hash__(self) -> int:
        return hash((type(self), self.agents))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {', '.join(self.agents)}>"


@dataclass(frozen=True, slots=True)
class Extension:
    """What an orchestrator's reply comes to.

    dependency: over the agents that act now, None for nobody; all of them see the orchestrator. stop: the episode is to
    end with this round. malformed: why the reply could not be read, else "". unknown: names in it that nobody has.
    """

    dependency: Dependency | None
    stop: bool = False
    malformed: str = ""
    unknown: tuple[str, ...] = ()


class Static(Schedule):
    """The same D in every round."""

    def __init__(self, dependency: Dependency) -> None:
        self.static, self.agents = dependency, dependency.agents
        self._dependency = dependency

    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        return self._dependency

    def parts(self) -> list[diagram.Part]:
        return [diagram.Part(self.agents, self._dependency.edges)]

    def __str__(self) -> str:
        return str(self._dependency)

    def __repr__(self) -> str:
        return f"Static({self._dependency!r})"


class PerRound(Schedule):
    """A D of its own for each round, from any specs that ``as_dependency`` takes."""

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

    def parts(self) -> list[diagram.Part]:
        return [diagram.Part(self.agents, d.edges, f"round {number}") for number, d in enumerate(self.dependencies)]

    def __str__(self) -> str:
        return "\n".join(f"round {number}:\n{indented(d)}" for number, d in enumerate(self.dependencies))

    def __repr__(self) -> str:
        return f"PerRound({list(self.dependencies)!r}, {list(self.agents)!r})"


class Called(Schedule):
    """D from a function ``(problem, transcript, round) -> spec``, called at the beginning of each round.

    The problem is the public one, so D cannot depend on the gold. A ``Dependency`` over some of the agents lets only
    these act. TypeError for a function of other arguments. In play, ValueError for a result that is no D of these
    agents and RuntimeError for what the function raises: both name the function and the round, and have their cause.
    """

    def __init__(self, function: Callable[[PublicProblem, Transcript, int], Any], agents: Sequence[str]) -> None:
        check_callable("dependency", function, ("problem", "transcript", "round"))
        self.function, self.agents = function, tuple(agents)

    def begin(self, problem: PublicProblem, transcript: Transcript, round: int) -> Dependency:
        told = f"dependency function {callable_name(self.function)}, round {round}"
        try:
            spec = self.function(problem, tuple(transcript), round)
        except Exception as fault:
            raise RuntimeError(f"{told}: raised {type(fault).__name__}: {fault}") from fault
        agents = spec.agents if isinstance(spec, Dependency) else self.agents
        try:
            return over_some(as_dependency(spec, agents), self.agents)
        except (ValueError, TypeError) as fault:
            raise ValueError(f"{told}: {fault}") from fault

    def parts(self) -> list[diagram.Part]:
        raise ValueError(
            f"D is decided by the function {callable_name(self.function)} in each round: expected a fixed one; "
            "env.unwrapped.dependency is the D of the round being played"
        )

    def __str__(self) -> str:
        page = (inspect.getdoc(self.function) if inspect.isroutine(self.function) else "") or ""
        told = f": {page.splitlines()[0]}" if page else ""
        return (
            f"decided at the beginning of each round by the function {callable_name(self.function)}(problem, transcript, "
            f"round){told}\nover {', '.join(self.agents)}"
        )

    def __repr__(self) -> str:
        return f"Called({callable_name(self.function)}, {list(self.agents)!r})"


def indented(text: Any) -> str:
    """Each line two places to the right."""
    return "\n".join(f"  {line}" for line in str(text).splitlines())


def over_some(dependency: Dependency, agents: tuple[str, ...]) -> Dependency:
    strangers = [a for a in dependency.agents if a not in agents]
    if strangers:
        raise ValueError(f"dependency is over {strangers}, which are not in the team: expected some of {list(agents)}")
    return dependency


def as_schedule(spec: Any, agents: Sequence[str]) -> Schedule:
    """A schedule from any way of writing D.

    A preset, a matrix, edges or a Dependency is the D of every round; ``{"rounds": [spec, ...]}`` or a list whose
    entries are all presets, Dependencies or arrays is one D a round; a function is called each round; an
    ``Orchestrated`` is bound to the agents.
    """
    if isinstance(spec, Schedule):
        return spec.bound(agents)
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
    return whole or isinstance(entry, str)
