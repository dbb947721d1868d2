"""The versioned module of a registered task: ``env()``, ``raw_env()``, ``TEAMS`` and the doc page as its docstring.

It needs no file: a finder at the end of ``sys.meta_path`` makes ``import marft_envs.coins_v0`` work once ``coins_v0``
is registered. A built-in environment has a file of that name, which Python finds first.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from marft_envs.environment import GAME, choose_team, make_game, task_parameters
from marft_envs.flex_mg import FlexMG
from marft_envs.guard import Guard
from marft_envs.pages import page_of_task
from marft_envs.ready_made import neutral, ready_made
from marft_envs.task import Task
from marft_envs.team import Team

_TEAM_PARAMETERS = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in ("team", "dependency", "stop")
]


@dataclass(frozen=True)
class Registration:
    """What the decorator was told. name: with the version, "coins_v0". page: the class's docstring."""

    name: str
    task: type[Task]
    team: str | Team
    instructions: str
    page: str

    def raw_env(
        self, *, team: str | Team | None = None, dependency: Any = None, stop: Any = None, **arguments: Any
    ) -> FlexMG:
        """The game; arguments are the game's and those of the task's constructor."""
        members = choose_team(self.team if team is None else team, ready_made(neutral(self.instructions)))
        return make_game(self.name, self.task, members, arguments, dependency=dependency, stop=stop)

    def signature(self) -> inspect.Signature:
        """All arguments of ``env()``, for help() and for editors."""
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in task_parameters(self.task).values()]
        return inspect.Signature([*_TEAM_PARAMETERS, *own, *GAME.values()])


class Maker:
    """``env`` or ``raw_env`` of a registered task. Unlike a function it unpickles in another process, because it names
    the task's class, whose module registers it there. It looks the registration up at each call: a reload renews it.
    """

    def __init__(self, name: str, guarded: bool, look_up: Callable[[str], Registration]) -> None:
        self.name, self.guarded, self.look_up = name, guarded, look_up
        self.__name__ = self.__qualname__ = "env" if guarded else "raw_env"
        self.__module__ = f"marft_envs.{name}"
        self.__signature__ = look_up(name).signature()
        self.__doc__ = f"A game of {name}{', guarded' if guarded else ''}; the arguments are on the module's page."

    def __call__(self, **arguments: Any) -> FlexMG | Guard:
        game = self.look_up(self.name).raw_env(**arguments)
        return Guard(game) if self.guarded else game

    def __reduce__(self) -> tuple[Any, ...]:
        return _maker, (self.look_up(self.name).task, self.__module__, self.__name__)

    def __repr__(self) -> str:
        return f"{self.__module__}.{self.__name__}"


def _maker(task: type[Task], module: str, function: str) -> Maker:
    """The Maker of ``task``: to unpickle the class was to import its module, which has registered it."""
    maker: Maker = getattr(import_module(module), function)
    return maker


def open_door(module: ModuleType, name: str, look_up: Callable[[str], Registration]) -> None:
    """Give ``module`` its env(), raw_env(), TEAMS (names of ready-made teams) and page."""
    contents = {
        "env": Maker(name, True, look_up),
        "raw_env": Maker(name, False, look_up),
        "TEAMS": tuple(ready_made(neutral(""))),
        "__doc__": page_of_task(look_up(name)),
    }
    vars(module).update(contents)


class _Finder(MetaPathFinder, Loader):
    """Finds ``marft_envs.<name>_v<N>`` where ``find`` knows a registration of that name."""

    def __init__(self, find: Callable[[str], Registration | None]) -> None:
        self.find = find

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        match = re.fullmatch(r"marft_envs\.([a-z][a-z0-9_]*_v\d+)", fullname)
        if match is None or self.find(match[1]) is None:
            return None
        return ModuleSpec(fullname, self, origin="marft_envs.registry")

    def exec_module(self, module: ModuleType) -> None:
        open_door(module, module.__name__.rpartition(".")[2], self._registered)

    def _registered(self, name: str) -> Registration:
        registration = self.find(name)
        if registration is None:
            raise ValueError(f"environment {name!r} is no longer registered")
        return registration


def install_finder(find: Callable[[str], Registration | None]) -> None:
    """Put the finder at the end of ``sys.meta_path``, once."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    sys.meta_path.append(_Finder(find))
