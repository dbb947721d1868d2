"""From the arguments of ``env()`` to a game: the game's own, the team's, and those of the task's constructor.

Every versioned module comes here, so that all of them take the same arguments and refuse the same mistakes.
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

GAME = {
    name: parameter
    for name, parameter in inspect.signature(FlexMG).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY and name != "name"
}
"""The keyword arguments of the game itself, from ``rounds`` to ``defer_grading``."""
TEAM = ("team", "dependency", "stop")
GIVEN = ("agents",)
"""Constructor arguments of a task that the team gives: ``agents``, the names in execution order."""


def choose_team(spec: str | Team, preset_teams: Mapping[str, Callable[[], Team]]) -> Team:
    """A Team itself, a ready-made one by name, or one from a team file. ValueError for an unknown name."""
    if isinstance(spec, Team):
        return spec
    if isinstance(spec, str) and spec.endswith((".yaml", ".yml")):
        return Team.from_yaml(spec)
    if not isinstance(spec, str) or spec not in preset_teams:
        raise ValueError(expected_one_of("team", spec, preset_teams, ", a .yaml file or a marft_envs.Team"))
    return preset_teams[spec]()


@dataclass(frozen=True)
class Subject:
    """What the arguments ``dataset`` and ``team`` of a subject's environment choose from, by name.

    name: the environment's, "math_v0". datasets: what makes a task, by the data set's name. teams: ready-made ones.
    """

    name: str
    datasets: Mapping[str, Callable[..., Task]]
    teams: Mapping[str, Callable[[], Team]]

    def game(self, dataset: str | Task, team: str | Team, arguments: Mapping[str, Any], **in_place: Any) -> FlexMG:
        """The game; arguments: the game's and the data set's, mixed. in_place: ``dependency`` and ``stop``."""
        maker = self._maker(dataset)
        what = f"dataset={getattr(dataset, 'name', dataset)!r}"
        members = choose_team(team, self.teams)
        return make_game(self.name, maker, members, arguments, what=what, others=("dataset", *TEAM), **in_place)

    def _maker(self, dataset: str | Task) -> Callable[..., Task]:
        if isinstance(dataset, Task):
            return lambda: dataset
        if not isinstance(dataset, str) or dataset not in self.datasets:
            places = ", ".join(built_in_with_dataset(dataset))
            elsewhere = f"; {places} has {dataset!r}" if places else ""
            raise ValueError(expected_one_of("dataset", dataset, self.datasets, f", or a marft_envs.Task{elsewhere}"))
        return self.datasets[dataset]


MakerT = TypeVar("MakerT", bound=Callable[..., Any])


def documented(function: MakerT) -> MakerT:
    """Write the arguments of the team and the game into the signature, for help() and for editors; what stays under
    ``**arguments`` goes to the data set."""
    first, *_, rest = inspect.signature(function).parameters.values()
    team = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in ("dependency", "stop")]
    duo = inspect.Parameter("team", inspect.Parameter.KEYWORD_ONLY, default="duo")
    function.__signature__ = inspect.Signature([first, duo, *team, *GAME.values(), rest])  # type: ignore[attr-defined]
    return function


def make_game(
    name: str,
    maker: Callable[..., Task],
    team: Team,
    arguments: Mapping[str, Any],
    *,
    dependency: Any = None,
    stop: Any = None,
    what: str = "",
    others: tuple[str, ...] = TEAM,
) -> FlexMG:
    """The game ``name``: ``team`` on the task that ``maker`` makes.

    maker: a Task class, or a function that returns a Task. arguments: the game's and the maker's, mixed. dependency,
    stop: in place of the team's own. what: how errors call the task, by default ``name``; others: what env() takes
    beside the arguments of task and game. Raises ValueError for an argument that neither takes, and for a value outside
    a ``Literal`` annotation.
    """
    if dependency is not None:
        team = team.with_dependency(dependency)
    if stop is not None:
        team = team.with_stop(stop)
    own = {key: value for key, value in arguments.items() if key not in GAME}
    game = {key: value for key, value in arguments.items() if key in GAME}
    parameters = task_parameters(maker)
    _check_names(own, parameters, what or name, others)
    for key, allowed in choices_of(maker).items():
        if own.get(key, allowed[0]) not in allowed:
            raise ValueError(expected_one_of(key, own[key], allowed))
    if "agents" in inspect.signature(maker).parameters:
        own["agents"] = team.order
    return FlexMG(maker(**own), team, name=name, **game)


def task_parameters(maker: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """What the user may give to ``maker``: its parameters without those that the team gives."""
    return {name: p for name, p in inspect.signature(maker).parameters.items() if name not in GIVEN}


def choices_of(maker: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """The allowed values of each parameter that is annotated with a ``Literal``."""
    function = maker.__init__ if inspect.isclass(maker) else maker
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):  # names that only a type checker imports; a partial has no hints
        return {}
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def _check_names(
    own: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter], what: str, others: tuple[str, ...]
) -> None:
    unknown = sorted(set(own) - set(parameters))
    if unknown:
        raise ValueError(
            f"unknown arguments {unknown} for {what}: expected some of {list(parameters)}, "
            f"or of the game's {[*others, *GAME]}{did_you_mean(unknown[0], (*parameters, *others, *GAME))}"
        )
