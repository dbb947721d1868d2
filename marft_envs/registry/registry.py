"""Registering tasks and making environments by name.

A versioned name such as ``coins_v0`` is a module of its own, ``marft_envs.coins_v0``, with ``env()``, ``raw_env()`` and
a docstring that is the doc page. There are three kinds:

* built in: a file ``marft_envs/<name>_v<N>.py``, imported when it is first used;
* registered: ``@register("coins", version=0)`` on a Task class, anywhere; its module is made when it is first used;
* from another package: an entry point of the group ``marft_envs.tasks`` (``entry_points.py``).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from pettingzoo import AECEnv

from marft_envs.arguments import did_you_mean, expected_one_of
from marft_envs.registry import entry_points
from marft_envs.registry.module_finder import fill_module, install_finder
from marft_envs.registry.pettingzoo_and_gymnasium import announce
from marft_envs.registry.registration import Registration, RegistrationError, check_registration
from marft_envs.registry.versioned_names import BUILT_IN
from marft_envs.task import Task, with_index_check
from marft_envs.team.presets import neutral_instructions, preset_teams
from marft_envs.team.team import Team

TaskClass = TypeVar("TaskClass", bound=type[Task])
_REGISTERED: dict[str, Registration] = {}


class UnknownEnvironment(ValueError):
    """No environment has that name; the message lists the known ones."""


def register(
    name: str, *, version: int = 0, team: str | Team = "solo", instructions: str = ""
) -> Callable[[TaskClass], TaskClass]:
    """Class decorator that makes a Task the environment ``<name>_v<version>``.

    Every argument of the task's constructor becomes an argument of ``env()``, and the class's docstring becomes the doc
    page. ``problem`` is wrapped to validate its index.

    Args:
        name: Lower-case letters, digits and ``_``, without the version.
        version: Raised by whatever can change learning.
        team: The default team: a preset by name ("solo", "duo", ...) or a Team of your own.
        instructions: What the roles of preset teams are told of the task; by default the first paragraph of the
            class's docstring.

    Raises:
        RegistrationError: The name, the version, the class or the team cannot be registered.
    """

    def decorate(task: TaskClass) -> TaskClass:
        check_registration(name, version, task)
        full = f"{name}_v{version}"
        page = inspect.cleandoc(task.__doc__ or "")
        if not page:
            raise RegistrationError(f"{task.__name__} has no docstring: expected one, it is the doc page of {full}")
        told = instructions or " ".join(page.split("\n\n")[0].split())
        presets = preset_teams(neutral_instructions(told))
        if not isinstance(team, Team) and team not in presets:
            raise RegistrationError(expected_one_of("team", team, presets, ", or a Team"))
        _check_free(full, task)
        task.name, task.version = name, version
        task.problem = with_index_check(task.problem)  # type: ignore[method-assign,assignment]
        _REGISTERED[full] = Registration(full, task, team, told, page)
        module = sys.modules.get(task.__module__)
        if module is not None and task.__module__ == f"marft_envs.{full}":
            fill_module(module, full, _REGISTERED.__getitem__)
        announce(full)
        return task

    return decorate


def _check_free(full: str, task: type[Task]) -> None:
    """Raise RegistrationError if the name is taken. The same class may be registered again, as a reload does."""
    if full in BUILT_IN and task.__module__ != f"marft_envs.{full}":
        raise RegistrationError(f"{full} is built into marft_envs: expected another name or version")
    other = _REGISTERED.get(full)
    if other is not None and _location(other.task) != _location(task):
        raise RegistrationError(
            f"{full} is already registered by {_location(other.task)}, now again by {_location(task)}: "
            "expected another name or version"
        )


def _location(task: type[Task]) -> str:
    return f"{task.__module__}.{task.__qualname__}"


# ---- look-up


def names() -> tuple[str, ...]:
    """Return the names of all environments, sorted.

    Entry points of other packages are loaded; a broken one is left out with a warning that names its package.
    """
    entry_points.load_all(is_known)
    return tuple(sorted({*BUILT_IN, *_REGISTERED}))


def is_known(name: str) -> bool:
    """Return whether ``name`` is built in or already registered, without loading anything."""
    return name in BUILT_IN or name in _REGISTERED


def environment_module(name: str) -> ModuleType:
    """Return the versioned module ``marft_envs.<name>``.

    Args:
        name: ``coins_v0``, or ``my_tasks:coins_v0`` to import the module ``my_tasks`` first, which registers it (also
            in a worker process).

    Raises:
        UnknownEnvironment: There is none of that name; the message suggests the nearest one.
    """
    where, _, name = name.rpartition(":") if isinstance(name, str) else ("", "", name)
    if where:
        try:
            importlib.import_module(where)
        except ModuleNotFoundError as fault:
            raise UnknownEnvironment(f"{where}:{name}: {fault}; expected an importable module before ':'") from fault
    if not is_known(name) and _find(name) is None:
        known = names()
        raise UnknownEnvironment(f"environment {name!r}: expected one of {', '.join(known)}{did_you_mean(name, known)}")
    return importlib.import_module(f"marft_envs.{name}")


def make(name: str, **arguments: Any) -> AECEnv[Any, Any, Any]:
    """Return ``marft_envs.<name>.env(**arguments)``; see ``environment_module`` for the forms of ``name``."""
    environment: AECEnv[Any, Any, Any] = environment_module(name).env(**arguments)
    return environment


def _find(name: str) -> Registration | None:
    if not is_known(name):
        entry_points.load(name)
    return _REGISTERED.get(name)


install_finder(_find)
