"""From the arguments of ``code_v0.env`` to a game: the problems by name, the team by name, D in its place."""

from __future__ import annotations

from functools import partial
from typing import Any

from marft_envs.coding import datasets
from marft_envs.coding.problems.list_programs import GENERATORS
from marft_envs.coding.teams import TEAMS
from marft_envs.game.flex_mg import FlexMG
from marft_envs.game.order_enforcing import OrderEnforcing
from marft_envs.registry.env_arguments import DatasetEnvironment, with_full_signature
from marft_envs.task import Task
from marft_envs.team.team import Team

CODING = DatasetEnvironment(
    "code_v0", GENERATORS | {name: partial(datasets.load, name) for name in datasets.NAMES}, TEAMS
)
DATASETS = tuple(CODING.datasets)


@with_full_signature
def raw_env(
    dataset: str | Task = "list_programs",
    *,
    team: str | Team = "duo",
    dependency: Any = None,
    stop: Any = None,
    **arguments: Any,
) -> FlexMG:
    """The game without the guard; the arguments are those of ``marft_envs.code_v0``."""
    return CODING.make(dataset, team, arguments, dependency=dependency, stop=stop)


@with_full_signature
def env(dataset: str | Task = "list_programs", **arguments: Any) -> OrderEnforcing:
    """The game behind the guard that enforces the order of calls; arguments as ``raw_env``."""
    return OrderEnforcing(raw_env(dataset, **arguments))
