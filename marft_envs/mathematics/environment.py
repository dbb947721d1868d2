"""From the arguments of ``math_v0.env`` to a game: the data set by name, the team by name, D in its place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from marft_envs.game.flex_mg import FlexMG
from marft_envs.game.order_enforcing import OrderEnforcing
from marft_envs.mathematics import datasets
from marft_envs.mathematics.problems.curriculum import Curriculum
from marft_envs.mathematics.problems.generated import Arithmetic, OneStep, WordProblems
from marft_envs.mathematics.problems.relay import Relay
from marft_envs.mathematics.problems.report import Report
from marft_envs.mathematics.teams import TEAMS
from marft_envs.registry.env_arguments import Subject, documented
from marft_envs.task import Task
from marft_envs.team.team import Team

GENERATORS: dict[str, Callable[..., Task]] = {
    "word_problems": WordProblems, "arithmetic": Arithmetic, "one_step": OneStep, "relay": Relay, "report": Report,
    "curriculum": Curriculum,
}  # fmt: skip
MATHEMATICS = Subject("math_v0", GENERATORS | {name: partial(datasets.load, name) for name in datasets.NAMES}, TEAMS)
DATASETS = tuple(MATHEMATICS.datasets)


@documented
def raw_env(
    dataset: str | Task = "word_problems",
    *,
    team: str | Team = "duo",
    dependency: Any = None,
    stop: Any = None,
    **arguments: Any,
) -> FlexMG:
    """The game without the guard; the arguments are those of ``marft_envs.math_v0``."""
    if not isinstance(dataset, Task):
        arguments.setdefault("split", "train")
    return MATHEMATICS.game(dataset, team, arguments, dependency=dependency, stop=stop)


@documented
def env(dataset: str | Task = "word_problems", **arguments: Any) -> OrderEnforcing:
    """The game behind the guard that enforces the order of calls; arguments as ``raw_env``."""
    return OrderEnforcing(raw_env(dataset, **arguments))
