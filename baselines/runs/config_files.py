"""Tables from files and from the command line: TOML, YAML or JSON, then ``--set key=value`` on top."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from baselines.runs.run_config import RunConfig, from_table

SUFFIXES = (".toml", ".yaml", ".yml", ".json")


def read_table(path: Path) -> dict[str, Any]:
    """The file's table. ValueError for what cannot be read; a ``config_hash`` that we wrote ourselves is left out."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"config {path}: expected a file that ends in one of {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise ValueError(f"config {path}: no such file")
    try:
        table = _parse(path.suffix, path.read_text(encoding="utf-8"))
    except (ValueError, _yaml_error()) as fault:  # TOML, JSON and UTF-8 faults are ValueErrors
        quotes = '; texts need quotes, as in arm = "marft"' if "Invalid value" in str(fault) else ""
        raise ValueError(f"config {path}: {fault}{quotes}") from fault
    if not isinstance(table, dict):
        raise ValueError(f"config {path}: holds a {type(table).__name__}, expected a table of keys and values")
    table.pop("config_hash", None)
    return table


def _parse(suffix: str, text: str) -> Any:
    if suffix == ".toml":
        return tomllib.loads(text)
    if suffix == ".json":
        return json.loads(text)
    try:
        import yaml
    except ImportError:
        raise ValueError("YAML needs PyYAML: pip install 'marft-envs[yaml]', or write TOML") from None
    return yaml.safe_load(text)


def _yaml_error() -> type[Exception]:
    try:
        import yaml
    except ImportError:
        return ValueError
    return yaml.YAMLError


def set_keys(table: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the table with dotted keys set: ``learner.clip`` is the key ``clip`` of the table ``learner``."""
    result: dict[str, Any] = json.loads(json.dumps(table))
    for dotted, value in settings.items():
        *path, last = dotted.split(".")
        place = result
        for name in path:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise ValueError(f"--set {dotted}: {name} is no table; expected KEY=VALUE or TABLE.KEY=VALUE")
        place[last] = value
    return result


def build(tables: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> RunConfig:
    """One RunConfig from several tables, later ones first in rank (tables in them are merged), then the settings."""
    merged: dict[str, Any] = {}
    for table in tables:
        for key, value in table.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
            merged[key] = {**merged[key], **value} if both else value
    return from_table(set_keys(merged, settings))
