"""From the arguments of ``code_v0.env`` to a game: the problems by name, the team by name, D in its place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from marft_envs.coding import datasets
from marft_envs.coding.generated import GENERATORS
from marft_envs.coding.teams import TEAMS
from marft_envs.environment import choose_team, make_game
from marft_envs.flex_mg import FlexMG
from marft_envs.guard import Guard
from marft_envs.suggest import expected
from marft_envs.task import Task
from marft_envs.team import Team


def maker_of(dataset: str | Task) -> Callable[..., Task]:
    """What makes the task behind ``dataset``. ValueError names an unknown one, and the nearest."""
    if isinstance(dataset, Task):
        return lambda: dataset
    known = (*GENERATORS, *datasets.NAMES)
    if dataset not in known:
        raise ValueError(expected("dataset", dataset, known))
    return GENERATORS.get(dataset) or partial(datasets.load, dataset)


def raw_env(
    dataset: str | Task = "list_programs",
    *,
    team: str | Team = "duo",
    dependency: Any = None,
    stop: Any = None,
    **arguments: Any,
) -> FlexMG:
    """The game without the guard; the arguments are those of ``marft_envs.code_v0``."""
    members = choose_team(team, TEAMS)
    what = f"dataset={getattr(dataset, 'name', dataset)!r}"
    return make_game("code_v0", maker_of(dataset), members, arguments, dependency=dependency, stop=stop, what=what)


def env(dataset: str | Task = "list_programs", **arguments: Any) -> Guard:
    """The game behind the guard that enforces the order of calls; arguments as ``raw_env``."""
    return Guard(raw_env(dataset, **arguments))
