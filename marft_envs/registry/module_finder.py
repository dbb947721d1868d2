"""Import of a registered task as a module, such as ``marft_envs.coins_v0``, that has no file.

A finder at the end of ``sys.meta_path`` creates the module when it is imported. The module has ``env()``,
``raw_env()``, ``TEAMS`` and the doc page as its docstring. A built-in environment has a file, which Python finds first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from marft_envs.game.flex_mg import FlexMG
from marft_envs.game.order_enforcing import OrderEnforcing
from marft_envs.registry.doc_pages import task_page
from marft_envs.registry.registration import Registration
from marft_envs.task import Task
from marft_envs.team.presets import neutral_instructions, preset_teams


class EnvFactory:
    """``env`` or ``raw_env`` of a registered task.

    Unlike a function it unpickles in another process, because the pickle names the task's class, whose module registers
    the task there. Each call looks the registration up again, so that a reloaded module takes effect.
    """

    def __init__(self, name: str, enforces_order: bool, look_up: Callable[[str], Registration]) -> None:
        self.name, self.enforces_order, self.look_up = name, enforces_order, look_up
        self.__name__ = self.__qualname__ = "env" if enforces_order else "raw_env"
        self.__module__ = f"marft_envs.{name}"
        self.__signature__ = look_up(name).signature()
        order = "with" if enforces_order else "without"
        self.__doc__ = f"Make {name} {order} the check of call order. The module's docstring lists the arguments."

    def __call__(self, **arguments: Any) -> FlexMG | OrderEnforcing:
        game = self.look_up(self.name).raw_env(**arguments)
        return OrderEnforcing(game) if self.enforces_order else game

    def __reduce__(self) -> tuple[Any, ...]:
        return _factory, (self.look_up(self.name).task, self.__module__, self.__name__)

    def __repr__(self) -> str:
        return f"{self.__module__}.{self.__name__}"


def _factory(task: type[Task], module: str, function: str) -> EnvFactory:
    """Return the EnvFactory of ``task``; unpickling the class has imported its module, which registered it."""
    factory: EnvFactory = getattr(import_module(module), function)
    return factory


def fill_module(module: ModuleType, name: str, look_up: Callable[[str], Registration]) -> None:
    """Give ``module`` its env(), raw_env(), TEAMS (the names of preset teams) and docstring."""
    contents = {
        "env": EnvFactory(name, True, look_up),
        "raw_env": EnvFactory(name, False, look_up),
        "TEAMS": tuple(preset_teams(neutral_instructions(""))),
        "__doc__": task_page(look_up(name)),
    }
    vars(module).update(contents)


class _Finder(MetaPathFinder, Loader):
    """Finds ``marft_envs.<name>_v<N>`` if ``find`` returns a registration of that name."""

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
        fill_module(module, module.__name__.rpartition(".")[2], self._registered)

    def _registered(self, name: str) -> Registration:
        registration = self.find(name)
        if registration is None:
            raise ValueError(f"environment {name!r} is no longer registered")
        return registration


def install_finder(find: Callable[[str], Registration | None]) -> None:
    """Put the finder at the end of ``sys.meta_path``, in place of an earlier one."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    sys.meta_path.append(_Finder(find))
