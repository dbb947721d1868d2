"""Reading and writing teams as YAML: the roles by agent, D, and the stop rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from marft_envs.arguments import repeated
from marft_envs.dependency.graph import Dependency
from marft_envs.dependency.schedule import PerRound, Schedule
from marft_envs.team.role import Role
from marft_envs.team.stop_rules import Agreement, StopRule, Word
from marft_envs.team.tools import TOOLS


def read_team(source: str | Path) -> dict[str, Any]:
    """Return the keyword arguments of ``Team`` from a YAML file or a YAML string; see ``Team.from_yaml``."""
    yaml = _yaml()
    is_file = isinstance(source, Path) or source.endswith((".yaml", ".yml"))
    where = f"team file {source}" if is_file else "team file"
    if is_file and not Path(source).is_file():
        raise FileNotFoundError(f"{where}: not found, expected a YAML file")
    text = Path(source).read_text(encoding="utf-8") if is_file else str(source)
    try:
        mapping = yaml.safe_load(text)
        twice = _repeated_key(yaml.compose(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as fault:
        raise ValueError(f"{where}{_location_and_problem(fault)}") from fault
    if twice:
        raise ValueError(f"{where}: the key {twice!r} occurs twice in a mapping, expected it once")
    if not isinstance(mapping, dict) or not isinstance(mapping.get("roles"), dict):
        raise ValueError(f"{where}: got {mapping!r:.80}, expected a mapping with 'roles'")
    unknown = sorted(set(mapping) - {"roles", "dependency", "stop"})
    if unknown:
        raise ValueError(f"{where} has keys {unknown}: expected roles, dependency, stop")
    roles = {agent: _role(agent, entry) for agent, entry in mapping.pop("roles").items()}
    return {"roles": roles, **mapping}


def write_team(roles: Mapping[str, Role], schedule: Schedule, stop: StopRule | None) -> str:
    """Return a team as a YAML string; see ``Team.to_yaml``."""
    mapping: dict[str, Any] = {
        "roles": {agent: _role_mapping(role) for agent, role in roles.items()},
        "dependency": _plain_dependency(schedule),
    }
    if stop is not None:
        mapping["stop"] = _plain_stop(stop)
    return str(_yaml().safe_dump(mapping, sort_keys=False, allow_unicode=True, width=110))


def _role(agent: str, entry: Any) -> Role:
    """Return a Role from its instructions, or from a mapping of its fields."""
    if isinstance(entry, str):
        return Role(entry)
    names = [f.name for f in fields(Role)]
    if not isinstance(entry or {}, dict) or set(entry or {}) - set(names):
        raise ValueError(
            f"role of {agent}: got {entry!r:.80}, expected its instructions, or some of {', '.join(names)}"
        )
    return Role(**(entry or {}))


def _role_mapping(role: Role) -> dict[str, Any]:
    """Return the fields that differ from their defaults; tools by name."""
    defaults = Role()
    mapping = {f.name: getattr(role, f.name) for f in fields(Role)}
    mapping = {name: value for name, value in mapping.items() if value != getattr(defaults, name)}
    if role.tools:
        unknown = [tool.name for tool in role.tools if TOOLS.get(tool.name) is not tool]
        if unknown:
            raise ValueError(
                f"to_yaml(): tools {unknown} are custom functions: expected ready-made tools, {', '.join(TOOLS)}"
            )
        mapping["tools"] = [tool.name for tool in role.tools]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in mapping.items()}


def _plain_dependency(schedule: Schedule) -> Any:
    """Return D as lists of edges, one for all rounds or one per round."""
    if isinstance(schedule, PerRound):
        return {"rounds": [_plain_edges(d) for d in schedule.dependencies]}
    if schedule.static is None:
        raise ValueError("to_yaml(): D is decided by a function: expected a fixed D or one for each round")
    return _plain_edges(schedule.static)


def _plain_edges(dependency: Dependency) -> list[list[str]]:
    return [list(edge) for edge in dependency.edges]


def _plain_stop(stop: StopRule) -> dict[str, list[str]]:
    if isinstance(stop, Agreement):
        return {"agreement": list(stop.agents)}
    if isinstance(stop, Word):
        return {"word": [stop.agent, stop.word]}
    raise ValueError("to_yaml(): stop is a function: expected Agreement(...) or Word(...)")


def _repeated_key(node: Any, depth: int = 3) -> str:
    """Return a key that occurs twice in a mapping of a YAML node, or ""; PyYAML silently uses the last one.

    Args:
        node: A composed YAML node.
        depth: The number of nested mappings to search; 3 reaches the fields of a role.
    """
    if depth == 0 or getattr(node, "id", "") != "mapping":
        return ""
    keys = repeated(key.value for key, _ in node.value)
    nested = (_repeated_key(entry, depth - 1) for _, entry in node.value)
    return str(keys[0]) if keys else next(filter(None, nested), "")


def _location_and_problem(fault: Exception) -> str:
    """Return ", line 2: the problem" of an error of PyYAML, whose own message has several lines."""
    mark, problem = getattr(fault, "problem_mark", None), getattr(fault, "problem", None)
    if mark is None or not problem:
        return f": {' '.join(str(fault).split())}"
    return f", line {mark.line + 1}: {problem}"


def _yaml() -> Any:
    """Import PyYAML, which is an optional dependency."""
    try:
        import yaml
    except ImportError as missing:
        raise ImportError("team files need PyYAML: pip install '.[yaml]' in the repository") from missing
    return yaml
