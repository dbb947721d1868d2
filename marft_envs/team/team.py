"""Team: named agents with roles, D between them, and the rule that may end an episode early."""

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
    """Named agents, each with a role, D between them, and when they may stop.

    roles: agent name to Role, in listed order; names end in _0, _1, ... as PettingZoo wants. dependency: any spec that
    ``schedule.as_schedule`` takes; it is resolved at once, so a cycle shows here: afterwards it is a ``Dependency``, or
    a ``Schedule`` where it changes, and ``print(team.dependency)`` says who sees whom. Where no role answers, the last
    agent of the execution order (of the listed order, if D changes) does. stop: see ``stopping.py``; None plays all
    rounds.
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
                    f"agent name {agent!r:.120}: expected a word, an underscore and a number, as in 'actor_0'"
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
        """The stable execution order, where D is the same in every round; else the listed order."""
        return self.schedule.static.order if self.schedule.static else self.agents

    def with_dependency(self, dependency: Any) -> Team:
        """The same roles under another D."""
        return replace(self, dependency=dependency)

    def with_stop(self, stop: Any) -> Team:
        """The same team with another rule to stop."""
        return replace(self, stop=stop)

    def anonymous(self) -> Team:
        """The same D, limits and answering agents without any role text: agent_0, agent_1, ... (the role ablation).

        ValueError for a team whose D is no fixed graph, or that stops by the word of a named role.
        """
        if not isinstance(self.dependency, Dependency) or self.stop is not None:
            raise ValueError("anonymous(): expected a team with a fixed D and no stop rule, which name no roles")
        names = {agent: f"agent_{i}" for i, agent in enumerate(self.roles)}
        roles = {
            names[agent]: replace(role, instructions="", summary="", reply_prefix="", answers=agent in self.answering)
            for agent, role in self.roles.items()
        }
        return Team(roles, [(names[i], names[j]) for i, j in self.dependency.edges])

    @classmethod
    def from_yaml(cls, source: str | Path) -> Team:
        """Read a team from a YAML file or from YAML text.

        Args:
            source: A Path, a string that ends in .yaml or .yml, or the YAML text itself. Keys: ``roles`` (agent to the
                fields of Role; tools by name), ``dependency`` and ``stop`` as in ``Team``.

        Raises:
            ValueError: The text is not a team; the message names what is wrong.
            FileNotFoundError: There is no such file.
            ImportError: PyYAML is not installed; the message names the extra.
        """
        return cls(**read_team(source))

    def to_yaml(self) -> str:
        """Return the team as YAML text that ``from_yaml`` reads.

        Raises:
            ValueError: D or the stop rule is a function, or a tool is a function of your own.
        """
        return write_team(self.roles, self.schedule, self.stop_rule)
