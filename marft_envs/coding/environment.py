"""The programming environment: ``raw_env`` and ``env`` choose a data set and a team by name and build the game."""

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
    """Return the environment without the wrapper that enforces the order of calls.

    Args:
        dataset: The name of a generator or of a data set (one of ``DATASETS``), or a ``Task``.
        team: The name of a preset team (one of ``TEAMS``), the path of a YAML file, or a ``Team``.
        dependency: The dependency function D over the team's agents; None for the team's own.
        stop: The rule that ends an episode before its last round; None for the team's own.
        **arguments: Keyword arguments of the game and of the data set, described in ``marft_envs.code_v0``.

    Returns:
        The PettingZoo AEC environment.

    Raises:
        ValueError: A name or an argument is unknown, or an argument has a value that is not allowed.
        TypeError: An argument has the wrong type.
    """
    return CODING.make(dataset, team, arguments, dependency=dependency, stop=stop)


@with_full_signature
def env(dataset: str | Task = "list_programs", **arguments: Any) -> OrderEnforcing:
    """Return the environment of ``raw_env``, wrapped to raise an error for calls in the wrong order.

    Args:
        dataset: See ``raw_env``.
        **arguments: The other arguments of ``raw_env``.

    Returns:
        The wrapped PettingZoo AEC environment.
    """
    return OrderEnforcing(raw_env(dataset, **arguments))
