"""The mathematics environment: ``raw_env`` and ``env`` choose a data set and a team by name and build the game."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from marft_envs.game.flex_mg import FlexMG
from marft_envs.game.order_enforcing import OrderEnforcing
from marft_envs.mathematics import datasets
from marft_envs.mathematics.problems.arithmetic import Arithmetic
from marft_envs.mathematics.problems.curriculum import Curriculum
from marft_envs.mathematics.problems.relay import Relay
from marft_envs.mathematics.problems.team_report import Report
from marft_envs.mathematics.problems.word_problems import OneStep, WordProblems
from marft_envs.mathematics.teams import TEAMS
from marft_envs.registry.env_arguments import DatasetEnvironment, with_full_signature
from marft_envs.task import Task
from marft_envs.team.team import Team

GENERATORS: dict[str, Callable[..., Task]] = {
    "word_problems": WordProblems, "arithmetic": Arithmetic, "one_step": OneStep, "relay": Relay, "report": Report,
    "curriculum": Curriculum,
}  # fmt: skip
MATHEMATICS = DatasetEnvironment(
    "math_v0", GENERATORS | {name: partial(datasets.load, name) for name in datasets.NAMES}, TEAMS
)
DATASETS = tuple(MATHEMATICS.datasets)


@with_full_signature
def raw_env(
    dataset: str | Task = "word_problems",
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
        **arguments: Keyword arguments of the game and of the data set, described in ``marft_envs.math_v0``.

    Returns:
        The PettingZoo AEC environment.

    Raises:
        ValueError: A name or an argument is unknown, or an argument has a value that is not allowed.
        TypeError: An argument has the wrong type.
    """
    if not isinstance(dataset, Task):
        arguments.setdefault("split", "train")
    return MATHEMATICS.make(dataset, team, arguments, dependency=dependency, stop=stop)


@with_full_signature
def env(dataset: str | Task = "word_problems", **arguments: Any) -> OrderEnforcing:
    """Return the environment of ``raw_env``, wrapped to raise an error for calls in the wrong order.

    Args:
        dataset: See ``raw_env``.
        **arguments: The other arguments of ``raw_env``.

    Returns:
        The wrapped PettingZoo AEC environment.
    """
    return OrderEnforcing(raw_env(dataset, **arguments))
