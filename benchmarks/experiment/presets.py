"""Files of presets, and the names of presets and arms. This module does not import torch."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from baselines.ladder import ARMS
from marft_envs.arguments import expected_one_of

PRESETS = Path(__file__).parents[1] / "presets"


class GridError(ValueError):
    """A preset, an option or a results folder that cannot be used. The message is one line for the user."""


def preset_names() -> list[str]:
    """Return the names of all presets, sorted; those in a sub-folder come last."""
    names = [path.relative_to(PRESETS).with_suffix("").as_posix() for path in PRESETS.rglob("*.toml")]
    return sorted(names, key=lambda name: ("/" in name, name))


def preset_path(name: str) -> Path:
    """Return the file of a preset.

    Args:
        name: Name of a file in benchmarks/presets without its ending, with its sub-folder if it is in one, such as
            ``gpu/math_duo``; or the path of a .toml file.

    Raises:
        GridError: There is no such file; the message lists the names and suggests the nearest.
    """
    path = Path(name) if name.endswith(".toml") else PRESETS / f"{name}.toml"
    if not path.is_file():
        raise GridError(expected_one_of("preset", name, preset_names(), ", or the path of a .toml file"))
    return path


def read_preset(name: str) -> dict[str, Any]:
    """Return the content of a preset; its "arms" are a list, and it has "tasks".

    Args:
        name: See ``preset_path``.

    Raises:
        GridError: There is no such file, it is not TOML, or it has no arms or tasks.
    """
    path = preset_path(name)
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GridError(f"preset {path}: {error}") from error
    if "arms" not in settings or "tasks" not in settings:
        raise GridError(f"preset {path}: expected arms and tasks")
    if not isinstance(settings["arms"], list):
        raise GridError(f'preset {path}: arms={settings["arms"]!r}: expected a list of names, as in ["ippo", "marft"]')
    return settings


def check_arms(arms: Iterable[Any]) -> None:
    """Raise GridError for a name that is not an arm; the message lists the arms and suggests the nearest."""
    for arm in arms:
        if arm not in tuple(ARMS):
            raise GridError(expected_one_of("arm", arm, ARMS))
