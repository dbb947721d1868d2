"""Team: named agents with roles, the dependency function D over them, and a stop rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from marft_envs.dependency.graph import Dependency
from marft_envs.dependency.schedule import Schedule, as_schedule
from marft_envs.team.role import Role
from marft_envs.team.stop_rules import StopRule, as_stop_rule
from marft_envs.team.team_file import read_team, write_team

_AGENT_NAME = re.compile(r"[A-Za-z][A-Za-z_]*_\d+")


@dataclass(frozen=True)
class Team:
    """Named agents with roles, the dependency function D over them, and a stop rule.

    Everything is validated when the team is made, so a cycle in D is an error here and not during an episode.

    Attributes:
        roles: The Role of each agent, in listed order. Names end in a number (``actor_0``), as PettingZoo recommends.
        dependency: D, in any form that ``as_schedule`` accepts. Afterwards a ``Dependency`` if D is the same in every
            round, else a ``Schedule``; ``print(team.dependency)`` describes it.
        stop: A rule that may end an episode before its last round (``stop_rules.py``); None for none.
        answering: The agents whose messages are graded: those whose role answers, or else the last agent of the
            execution order (of the listed order if D changes).
        schedule: D as a Schedule.
        stop_rule: ``stop`` as a callable, or None.

    Raises:
        TypeError, ValueError: A field is wrong; the message names it. A cycle in D raises CycleError.
    """

    roles: Mapping[str, Role]
    dependency: Any = "chain"
    stop: Any = None
    answering: tuple[str, ...] = field(init=False, compare=False)
    schedule: Schedule = field(init=False, compare=False, repr=False)
    stop_rule: StopRule | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.roles, Mapping):
            raise TypeError(f"team roles={self.roles!r:.80}: expected a mapping from agent to Role")
        roles = dict(self.roles)
        if not roles:
            raise ValueError("team roles={}: expected at least one agent")
        for agent, role in roles.items():
            if not isinstance(agent, str) or not _AGENT_NAME.fullmatch(agent) or len(agent) > 100:
                raise ValueError(
                    f"agent name {agent!r:.120}: expected a word, an underscore and a number, such as 'actor_0'"
                )
            if not isinstance(role, Role):
                raise TypeError(f"role of {agent}: got {type(role).__name__}, expected Role")
        schedule = as_schedule(self.dependency, tuple(roles))
        order = schedule.static.order if schedule.static else tuple(roles)
        resolved = {
            "roles": roles,
            "schedule": schedule,
            "dependency": schedule.static or schedule,
            "answering": tuple(a for a in order if roles[a].answers) or (order[-1],),
            "stop_rule": as_stop_rule(self.stop, tuple(roles)),
        }
        for name, value in resolved.items():
            object.__setattr__(self, name, value)

    @property
    def agents(self) -> tuple[str, ...]:
        """Agent names in listed order."""
        return tuple(self.roles)

    @property
    def order(self) -> tuple[str, ...]:
        """The stable execution order if D is the same in every round, else the listed order."""
        return self.schedule.static.order if self.schedule.static else self.agents

    def with_dependency(self, dependency: Any) -> Team:
        """Return a team with the same roles and stop rule under another D."""
        return replace(self, dependency=dependency)

    def with_stop(self, stop: Any) -> Team:
        """Return the same team with another stop rule."""
        return replace(self, stop=stop)

    def anonymous(self) -> Team:
        """Return the same team without role descriptions, for ablations of the roles.

        The agents are agent_0, agent_1, ... without instructions, summaries and reply prefixes. D, limits, tools and
        answering agents stay the same.

        Raises:
            ValueError: D is not the same in every round, or the team has a stop rule, which may name roles.
        """
        if not isinstance(self.dependency, Dependency) or self.stop is not None:
            raise ValueError("anonymous(): expected a team with a fixed D and without a stop rule")
        names = {agent: f"agent_{i}" for i, agent in enumerate(self.roles)}
        roles = {
            names[agent]: replace(role, instructions="", summary="", reply_prefix="", answers=agent in self.answering)
            for agent, role in self.roles.items()
        }
        return Team(roles, [(names[i], names[j]) for i, j in self.dependency.edges])

    @classmethod
    def from_yaml(cls, source: str | Path) -> Team:
        """Read a team from a YAML file or a YAML string.

        Args:
            source: A Path, a string that ends in .yaml or .yml, or the YAML itself. Keys: ``roles`` (for each agent its
                instructions or the fields of Role, tools by name), ``dependency`` and ``stop`` as in ``Team``.

        Raises:
            ValueError: The YAML does not describe a team; the message names the problem.
            FileNotFoundError: There is no such file.
            ImportError: PyYAML is not installed; the message names the extra.
        """
        return cls(**read_team(source))

    def to_yaml(self) -> str:
        """Return the team as a YAML string that ``from_yaml`` reads.

        Raises:
            ValueError: D, the stop rule or a tool is a function of your own, which YAML cannot describe.
        """
        return write_team(self.roles, self.schedule, self.stop_rule)
