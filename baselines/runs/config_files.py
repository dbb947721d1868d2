"""Settings from files (TOML, YAML or JSON) and from the command line (``--set KEY=VALUE``)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from baselines.runs.run_config import RunConfig

SUFFIXES = (".toml", ".yaml", ".yml", ".json")


def read_settings(path: Path) -> dict[str, Any]:
    """Read a settings file.

    Args:
        path: A .toml, .yaml, .yml or .json file. The config.json of a run is one, too; its ``config_hash`` is dropped.

    Returns:
        The settings by name, as ``RunConfig.from_mapping`` takes them.

    Raises:
        ValueError: The file is missing, cannot be read, or holds no mapping.
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(f"config {path}: expected a file that ends in one of {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise ValueError(f"config {path}: no such file")
    try:
        settings = _parse(path.suffix, path.read_text(encoding="utf-8"))
    except (ValueError, _yaml_error()) as error:  # TOML, JSON and UTF-8 errors are ValueErrors
        quotes = '; strings need quotes, as in arm = "marft"' if "Invalid value" in str(error) else ""
        raise ValueError(f"config {path}: {error}{quotes}") from error
    if not isinstance(settings, dict):
        raise ValueError(f"config {path}: holds a {type(settings).__name__}, expected a mapping of keys to values")
    settings.pop("config_hash", None)
    return settings


def _parse(suffix: str, text: str) -> Any:
    if suffix == ".toml":
        return tomllib.loads(text)
    if suffix == ".json":
        return json.loads(text)
    try:
        import yaml
    except ImportError:
        raise ValueError("YAML needs PyYAML: pip install '.[yaml]' in the repository, or write TOML") from None
    return yaml.safe_load(text)


def _yaml_error() -> type[Exception]:
    try:
        import yaml
    except ImportError:
        return ValueError
    return yaml.YAMLError


def set_keys(mapping: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of ``mapping`` with dotted keys set: ``learner.clip`` sets ``clip`` in the mapping ``learner``."""
    result: dict[str, Any] = json.loads(json.dumps(mapping))
    for dotted, value in settings.items():
        *path, last = dotted.split(".")
        inner = result
        for name in path:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise ValueError(f"--set {dotted}: {name} is not a mapping; expected KEY=VALUE or MAPPING.KEY=VALUE")
        inner[last] = value
    return result


def build(layers: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> RunConfig:
    """Merge layers of settings and build the configuration.

    Args:
        layers: Mappings of settings. Later ones override earlier ones; nested mappings are merged key by key.
        settings: Dotted keys and their values, which override all layers.

    Raises:
        ValueError: A key is unknown, or a value is invalid.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
            merged[key] = {**merged[key], **value} if both else value
    return RunConfig.from_mapping(set_keys(merged, settings))
