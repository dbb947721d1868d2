"""Arguments of ``env()``: split them among the game, the team and the task, validate them, and make the game.

All versioned modules use these functions, so that they accept the same arguments and report the same errors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from marft_envs.arguments import did_you_mean, expected_one_of
from marft_envs.game.flex_mg import FlexMG
from marft_envs.registry.versioned_names import built_in_with_dataset
from marft_envs.task import Task
from marft_envs.team.team import Team

GAME_PARAMETERS = {
    name: parameter
    for name, parameter in inspect.signature(FlexMG).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY and name != "name"
}
"""The keyword parameters of the game itself, from ``rounds`` to ``defer_grading``."""
TEAM_ARGUMENTS = ("team", "dependency", "stop")
SET_BY_TEAM = ("agents",)
"""Parameters of a task's constructor that the team sets, not the user: ``agents``, the names in execution order."""


def choose_team(spec: str | Team, preset_teams: Mapping[str, Callable[[], Team]]) -> Team:
    """Return the team that ``spec`` names.

    Args:
        spec: A Team, the name of a preset team, or the path of a YAML file.
        preset_teams: Functions that make the preset teams, by name.

    Raises:
        ValueError: The name is unknown.
    """
    if isinstance(spec, Team):
        return spec
    if isinstance(spec, str) and spec.endswith((".yaml", ".yml")):
        return Team.from_yaml(spec)
    if not isinstance(spec, str) or spec not in preset_teams:
        raise ValueError(expected_one_of("team", spec, preset_teams, ", a .yaml file or a marft_envs.Team"))
    return preset_teams[spec]()


@dataclass(frozen=True)
class DatasetEnvironment:
    """An environment with a choice of data sets and teams, such as ``math_v0``.

    Attributes:
        name: The name of the versioned module.
        datasets: Functions that make a Task, by the name of the data set.
        teams: Functions that make the preset teams, by name.
    """

    name: str
    datasets: Mapping[str, Callable[..., Task]]
    teams: Mapping[str, Callable[[], Team]]

    def make(
        self,
        dataset: str | Task,
        team: str | Team,
        arguments: Mapping[str, Any],
        *,
        dependency: Any = None,
        stop: Any = None,
    ) -> FlexMG:
        """Return the game.

        Args:
            dataset: The name of a data set, or a Task.
            team: A Team, the name of a preset team, or the path of a YAML file.
            arguments: Arguments of the game and of the data set, mixed.
            dependency: D, if it is not the team's own.
            stop: The stop rule, if it is not the team's own.

        Raises:
            ValueError: A name or an argument is unknown, or a value is not allowed.
        """
        return make_game(
            self.name,
            self._make_task(dataset),
            choose_team(team, self.teams),
            arguments,
            dependency=dependency,
            stop=stop,
            task_label=f"dataset={getattr(dataset, 'name', dataset)!r}",
            other_arguments=("dataset", *TEAM_ARGUMENTS),
        )

    def _make_task(self, dataset: str | Task) -> Callable[..., Task]:
        """Return the function that makes the task. An error names the environment that has the data set, if any."""
        if isinstance(dataset, Task):
            return lambda: dataset
        if not isinstance(dataset, str) or dataset not in self.datasets:
            owners = ", ".join(built_in_with_dataset(dataset))
            hint = f"; {owners} has {dataset!r}" if owners else ""
            raise ValueError(expected_one_of("dataset", dataset, self.datasets, f", or a marft_envs.Task{hint}"))
        return self.datasets[dataset]


EnvFunction = TypeVar("EnvFunction", bound=Callable[..., Any])


def with_full_signature(function: EnvFunction) -> EnvFunction:
    """Decorate ``env(dataset, ..., **arguments)`` so that its signature lists the parameters of the team and the game.

    ``help()`` and editors read the signature. The parameters of the data set stay in ``**arguments``.
    """
    dataset, *_, rest = inspect.signature(function).parameters.values()
    team = inspect.Parameter("team", inspect.Parameter.KEYWORD_ONLY, default="duo")
    overrides = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in ("dependency", "stop")
    ]
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [dataset, team, *overrides, *GAME_PARAMETERS.values(), rest]
    )
    return function


def make_game(
    name: str,
    make_task: Callable[..., Task],
    team: Team,
    arguments: Mapping[str, Any],
    *,
    dependency: Any = None,
    stop: Any = None,
    task_label: str = "",
    other_arguments: tuple[str, ...] = TEAM_ARGUMENTS,
) -> FlexMG:
    """Make the task and the game in which ``team`` plays it.

    Args:
        name: The name of the versioned module.
        make_task: A Task class, or a function that returns a Task.
        team: The team.
        arguments: Arguments of the game and of ``make_task``, mixed.
        dependency: D, if it is not the team's own.
        stop: The stop rule, if it is not the team's own.
        task_label: The task in error messages; by default ``name``.
        other_arguments: Further arguments of ``env()``, which error messages list and suggest.

    Raises:
        ValueError: Neither the game nor ``make_task`` has an argument of that name, or a value is not one of those
            that a ``Literal`` annotation allows.
    """
    if dependency is not None:
        team = team.with_dependency(dependency)
    if stop is not None:
        team = team.with_stop(stop)
    task_arguments = {key: value for key, value in arguments.items() if key not in GAME_PARAMETERS}
    game_arguments = {key: value for key, value in arguments.items() if key in GAME_PARAMETERS}
    _check_names(task_arguments, task_parameters(make_task), task_label or name, other_arguments)
    for key, allowed in choices_of(make_task).items():
        if task_arguments.get(key, allowed[0]) not in allowed:
            raise ValueError(expected_one_of(key, task_arguments[key], allowed))
    if "agents" in inspect.signature(make_task).parameters:
        task_arguments["agents"] = team.order
    return FlexMG(make_task(**task_arguments), team, name=name, **game_arguments)


def task_parameters(make_task: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters that a user may pass, that is, without those that the team sets."""
    return {name: p for name, p in inspect.signature(make_task).parameters.items() if name not in SET_BY_TEAM}


def choices_of(function: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """Return the allowed values of each parameter of a function or class that is annotated with a ``Literal``."""
    annotated = function.__init__ if inspect.isclass(function) else function
    try:
        hints = get_type_hints(annotated)
    except (NameError, TypeError):  # a name that only a type checker imports; a functools.partial has no hints
        return {}
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def _check_names(
    arguments: Mapping[str, Any],
    parameters: Mapping[str, inspect.Parameter],
    task_label: str,
    other_arguments: tuple[str, ...],
) -> None:
    """Raise ValueError if an argument is not a parameter of the task, and suggest the nearest name."""
    unknown = sorted(set(arguments) - set(parameters))
    if unknown:
        of_environment = [*other_arguments, *GAME_PARAMETERS]
        raise ValueError(
            f"unknown arguments {unknown} for {task_label}: expected some of {list(parameters)}, or of the "
            f"environment's {of_environment}{did_you_mean(unknown[0], (*parameters, *of_environment))}"
        )
