"""Environments from other installed packages: entry points of the group ``marft_envs.tasks``.

    [project.entry-points."marft_envs.tasks"]
    coins_v0 = "my_package.coins"        # the environment's name = the module (or module:Class) that registers it

Nothing is loaded, and no metadata is read, before an unknown name is asked for or all environments are listed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

GROUP = "marft_envs.tasks"
_broken: dict[str, str] = {}


class PluginError(ValueError):
    """Another package's environment could not be loaded; the message names the package."""


def load(name: str) -> bool:
    """Load the plug-in that brings ``name``: False where there is none, PluginError where it is broken."""
    for point in _points():
        if point.name == name:
            _load(point)
            return True
    return False


def load_all(is_known: Callable[[str], bool]) -> None:
    """Load each plug-in whose name is not known yet. A broken one is a warning, told once."""
    for point in _points():
        if is_known(point.name) or point.name in _broken:
            continue
        try:
            _load(point)
            if not is_known(point.name):
                raise PluginError(f"{_origin(point)}: {point.value} does not register {point.name}")
        except PluginError as fault:
            _broken[point.name] = str(fault)
            warnings.warn(str(fault), stacklevel=3)


def _points() -> Any:
    return import_module("importlib.metadata").entry_points(group=GROUP)  # imported late: it costs tens of ms


def _load(point: Any) -> None:
    try:
        point.load()
    except Exception as fault:  # the boundary to other people's code
        raise PluginError(f"{_origin(point)}: loading {point.value} failed: {type(fault).__name__}: {fault}") from fault


def _origin(point: Any) -> str:
    package = point.dist.name if point.dist is not None else "an unknown package"
    return f"environment {point.name} of the package {package}"
