"""Who works together: roles with their profiles, and the team that D connects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from marft_envs.dependency import Dependency, as_dependency

_AGENT_NAME = re.compile(r"[A-Za-z][A-Za-z_]*_\d+")


@dataclass(frozen=True, slots=True)
class Role:
    """What makes one agent that agent. Its profile is private: no other agent sees it.

    instructions: the system prompt, "" for none. answers: whether its text is graded. reply_prefix: words that its
    reply begins with; the observation names them, the action continues them, and its message holds both.
    max_chars: a longer reply is clipped and flagged in ``infos``.
    """

    instructions: str = ""
    answers: bool = False
    reply_prefix: str = ""
    max_chars: int = 8_000

    def __post_init__(self) -> None:
        if self.max_chars < 1:
            raise ValueError(f"Role max_chars={self.max_chars}: expected at least 1")


@dataclass(frozen=True)
class Team:
    """Named agents, each with a role, and D between them.

    roles: agent name to Role, in listed order; names end in _0, _1, ... as PettingZoo wants. dependency: any spec that
    ``as_dependency`` takes; it is resolved at once, so a cycle shows here. Where no role answers, the last agent of
    the execution order does.
    """

    roles: Mapping[str, Role]
    dependency: Any = "chain"
    answering: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        roles = dict(self.roles)
        if not roles:
            raise ValueError("team roles={}: expected at least one agent")
        for agent, role in roles.items():
            if not isinstance(agent, str) or not _AGENT_NAME.fullmatch(agent):
                raise ValueError(f"agent name {agent!r}: expected a word, an underscore and a number, as in 'actor_0'")
            if not isinstance(role, Role):
                raise TypeError(f"role of {agent}: got {type(role).__name__}, expected Role")
        dependency: Dependency = as_dependency(self.dependency, tuple(roles))
        answering = tuple(a for a in dependency.order if roles[a].answers) or (dependency.order[-1],)
        object.__setattr__(self, "roles", roles)
        object.__setattr__(self, "dependency", dependency)
        object.__setattr__(self, "answering", answering)

    @property
    def agents(self) -> tuple[str, ...]:
        """Agent names in listed order."""
        return tuple(self.roles)

    def with_dependency(self, dependency: Any) -> Team:
        """The same roles under another D."""
        return replace(self, dependency=dependency)

    def anonymous(self) -> Team:
        """The same D and answering agents without any role text: agent_0, agent_1, ... (the role ablation)."""
        names = {agent: f"agent_{i}" for i, agent in enumerate(self.roles)}
        answering = set(self.answering)
        roles = {
            names[agent]: Role(answers=agent in answering, max_chars=role.max_chars)
            for agent, role in self.roles.items()
        }
        return Team(roles, [(names[i], names[j]) for i, j in self.dependency.edges])
