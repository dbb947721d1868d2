"""Environments of other installed packages, found through entry points of the group ``marft_envs.tasks``.

    [project.entry-points."marft_envs.tasks"]
    coins_v0 = "my_package.coins"    # name of the environment = module (or module:Class) that registers it

A plug-in is loaded, and package metadata is read, only when an unknown name is requested or all environments are
listed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

GROUP = "marft_envs.tasks"
_broken: dict[str, str] = {}
"""Error messages of plug-ins that failed to load, by the name of the environment; each is reported once."""


class PluginError(ValueError):
    """An environment of another package cannot be loaded; the message names the package."""


def load(name: str) -> bool:
    """Load the plug-in that registers ``name``.

    Returns:
        False if there is no such plug-in.

    Raises:
        PluginError: The plug-in cannot be imported.
    """
    for point in _entry_points():
        if point.name == name:
            _load(point)
            return True
    return False


def load_all(is_known: Callable[[str], bool]) -> None:
    """Load the plug-ins whose environments are not known yet. Warn once about each plug-in that fails.

    Args:
        is_known: Returns whether an environment of that name is registered.
    """
    for point in _entry_points():
        if is_known(point.name) or point.name in _broken:
            continue
        try:
            _load(point)
            if not is_known(point.name):
                raise PluginError(f"{_origin(point)}: {point.value} does not register {point.name}")
        except PluginError as fault:
            _broken[point.name] = str(fault)
            warnings.warn(str(fault), stacklevel=3)


def _entry_points() -> Any:
    return import_module("importlib.metadata").entry_points(group=GROUP)  # imported here because it takes 10 to 50 ms


def _load(point: Any) -> None:
    try:
        point.load()
    except Exception as fault:  # other people's code may raise anything
        raise PluginError(f"{_origin(point)}: loading {point.value} failed: {type(fault).__name__}: {fault}") from fault


def _origin(point: Any) -> str:
    package = point.dist.name if point.dist is not None else "an unknown package"
    return f"environment {point.name} of the package {package}"
