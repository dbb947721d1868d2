"""Who works together: roles with their profiles, and the team that D connects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from marft_envs.dependency import Dependency
from marft_envs.given import repeated
from marft_envs.indexing import whole_number
from marft_envs.schedule import Schedule, as_schedule
from marft_envs.stopping import Agreement, StopRule, Word, as_stop_rule
from marft_envs.suggest import did_you_mean
from marft_envs.tools import TOOLS, Tool, describe

_AGENT_NAME = re.compile(r"[A-Za-z][A-Za-z_]*_\d+")


@dataclass(frozen=True)
class Role:
    """What makes one agent that agent. Its profile is private: no other agent sees it.

    instructions: the system prompt, "" for none. answers: whether its text is graded. reply_prefix: words that its
    reply begins with; the observation names them, the action continues them, and its message holds both.
    max_chars: a longer reply is clipped and flagged in ``infos``. max_observed_chars: longer messages, the problem too,
    reach it cut to their newest characters; ``infos`` flags a cut problem. choices: the only replies in its action
    space; another one is taken, and flagged in ``infos``. tools: what it may call (see ``tools.py``), at most
    max_tool_calls times in a turn. summary: what an orchestrator is told of it, in a few words: "checks the work".
    """

    instructions: str = ""
    answers: bool = False
    reply_prefix: str = ""
    max_chars: int = 8_000
    max_observed_chars: int = 100_000
    choices: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    max_tool_calls: int = 4
    summary: str = ""

    def __post_init__(self) -> None:
        for name in ("instructions", "summary", "reply_prefix"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"Role {name}={getattr(self, name)!r:.80}: expected a text")
        if not isinstance(self.answers, bool):
            got = type(self.answers).__name__
            raise TypeError(f"Role answers={self.answers!r:.80}: got {got}, expected True or False")
        for name, least in (("max_chars", 1), ("max_observed_chars", 1), ("max_tool_calls", 0)):
            whole_number(f"Role {name}", getattr(self, name), least)
        for name in ("choices", "tools"):
            if isinstance(getattr(self, name), str) or not isinstance(getattr(self, name), Iterable):
                raise TypeError(f"Role {name}={getattr(self, name)!r:.80}: expected several in a list or tuple")
        object.__setattr__(self, "choices", _as_choices(tuple(self.choices), self.max_chars))
        object.__setattr__(self, "tools", tuple(_as_tool(tool) for tool in self.tools))
        names = [tool.name for tool in self.tools]
        if repeated(names):
            raise ValueError(f"Role tools={names}: expected no name twice")

    @property
    def profile(self) -> str:
        """The system prompt that the agent reads: instructions, and how to call its tools."""
        return "\n\n".join(part for part in (self.instructions, describe(self.tools) if self.tools else "") if part)


def _as_choices(choices: tuple[Any, ...], max_chars: int) -> tuple[str, ...]:
    """Replies that can be told apart and said in full."""
    if not all(isinstance(choice, str) for choice in choices):
        raise TypeError(f"Role choices={choices!r:.80}: expected texts")
    if twice := repeated(choices):
        raise ValueError(f"Role choices={choices!r:.80}: expected none twice, got {twice}")
    if any(len(choice) > max_chars for choice in choices):
        raise ValueError(f"Role choices={choices!r:.80}: expected at most max_chars={max_chars} characters")
    return choices


def _as_tool(spec: Any) -> Tool:
    if isinstance(spec, Tool):
        return spec
    if not isinstance(spec, str) or spec not in TOOLS:
        known = f"{', '.join(TOOLS)} or a marft_envs.tools.Tool{did_you_mean(spec, tuple(TOOLS))}"
        raise ValueError(f"tool {spec!r}: expected one of {known}")
    return TOOLS[spec]


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

    # ---- team files

    @classmethod
    def from_yaml(cls, source: str | Path) -> Team:
        """A team from a YAML file (a Path, or a str that ends in .yaml or .yml) or from YAML text.

        Keys: ``roles`` (agent to fields of Role; tools by name), ``dependency`` and ``stop`` as in ``Team``. Raises
        ValueError naming what is wrong, FileNotFoundError, and ImportError naming the extra without PyYAML.
        """
        yaml = _yaml()
        is_file = isinstance(source, Path) or source.endswith((".yaml", ".yml"))
        if is_file and not Path(source).is_file():
            raise FileNotFoundError(f"team file {str(source)!r}: not found, expected a YAML file")
        text = Path(source).read_text(encoding="utf-8") if is_file else str(source)
        try:
            table = yaml.safe_load(text)
            twice = _repeated_key(yaml.compose(text, Loader=yaml.SafeLoader))
        except yaml.YAMLError as fault:
            raise ValueError(f"team file: {fault}") from fault
        if twice:
            raise ValueError(f"team file: {twice!r} stands twice in a mapping, expected it once")
        if not isinstance(table, dict) or not isinstance(table.get("roles"), dict):
            raise ValueError(f"team file: got {table!r:.80}, expected a mapping with 'roles'")
        unknown = sorted(set(table) - {"roles", "dependency", "stop"})
        if unknown:
            raise ValueError(f"team file has keys {unknown}: expected roles, dependency, stop")
        roles = {agent: _role(agent, entry) for agent, entry in table.pop("roles").items()}
        return cls(roles, **table)

    def to_yaml(self) -> str:
        """The team as a team file. ValueError where D or stop is a function, or a tool is not ready-made."""
        roles = {agent: self._role_table(role) for agent, role in self.roles.items()}
        table: dict[str, Any] = {"roles": roles, "dependency": self._plain_dependency()}
        if self.stop is not None:
            table["stop"] = self._plain_stop()
        return str(_yaml().safe_dump(table, sort_keys=False, allow_unicode=True, width=110))

    @staticmethod
    def _role_table(role: Role) -> dict[str, Any]:
        defaults = Role()
        table = {f.name: getattr(role, f.name) for f in fields(Role)}
        table = {name: value for name, value in table.items() if value != getattr(defaults, name)}
        if role.tools:
            unknown = [tool.name for tool in role.tools if TOOLS.get(tool.name) is not tool]
            if unknown:
                raise ValueError(f"to_yaml(): tools {unknown} are functions of your own: expected ready-made ones")
            table["tools"] = [tool.name for tool in role.tools]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in table.items()}

    def _plain_dependency(self) -> Any:
        if isinstance(self.dependency, Dependency):
            return [list(edge) for edge in self.dependency.edges]
        specs = getattr(self.schedule, "dependencies", None)
        if specs is None:
            raise ValueError("to_yaml(): D is decided by a function: expected a fixed D or one for each round")
        return {"rounds": [[list(edge) for edge in d.edges] for d in specs]}

    def _plain_stop(self) -> dict[str, list[str]]:
        if isinstance(self.stop_rule, Agreement):
            return {"agreement": list(self.stop_rule.agents)}
        if isinstance(self.stop_rule, Word):
            return {"word": [self.stop_rule.agent, self.stop_rule.word]}
        raise ValueError("to_yaml(): stop is a function: expected Agreement(...) or Word(...)")


def _role(agent: str, entry: Any) -> Role:
    if isinstance(entry, str):
        return Role(entry)
    names = [f.name for f in fields(Role)]
    if not isinstance(entry or {}, dict) or set(entry or {}) - set(names):
        raise ValueError(
            f"role of {agent}: got {entry!r:.80}, expected its instructions, or some of {', '.join(names)}"
        )
    return Role(**(entry or {}))


def _repeated_key(node: Any, depth: int = 3) -> str:
    """A key that stands twice in a mapping of a team file, "" where there is none: YAML keeps the last one silently.

    node: of the file. depth: of the mappings, down to a role's fields.
    """
    if depth == 0 or getattr(node, "id", "") != "mapping":
        return ""
    here = repeated(key.value for key, _ in node.value)
    below = (_repeated_key(entry, depth - 1) for _, entry in node.value)
    return str(here[0]) if here else next(filter(None, below), "")


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as missing:
        raise ImportError("team files need PyYAML: pip install marft-envs[yaml]") from missing
    return yaml
