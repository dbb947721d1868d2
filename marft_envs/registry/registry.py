"""Registration of tasks, and environments by name.

Every environment has a versioned name, such as ``coins_v0``, and a module ``marft_envs.coins_v0`` with ``env()``,
``raw_env()`` and a docstring that is the doc page. An environment is one of these:

* built in: a file ``marft_envs/<name>_v<N>.py``, which is imported when it is first used;
* registered: a Task class, anywhere, with the decorator ``@register("coins", version=0)``; its module is created when
  it is first used;
* of another package: an entry point of the group ``marft_envs.tasks`` (see ``entry_points.py``).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from pettingzoo import AECEnv

from marft_envs.arguments import check_integer, did_you_mean, expected_one_of
from marft_envs.registry import entry_points
from marft_envs.registry.module_finder import fill_module, install_finder
from marft_envs.registry.pettingzoo_and_gymnasium import register_in_libraries
from marft_envs.registry.registration import Registration, RegistrationError, check_registration
from marft_envs.registry.versioned_names import BUILT_IN
from marft_envs.task import Task, with_index_check
from marft_envs.team.presets import neutral_instructions, preset_teams
from marft_envs.team.team import Team

TaskClass = TypeVar("TaskClass", bound=type[Task])
_REGISTERED: dict[str, Registration] = {}


class UnknownEnvironment(ValueError):
    """No environment has this name; the message lists the known names."""


def register(
    name: str, *, version: int = 0, team: str | Team = "solo", rounds: int = 1, instructions: str = ""
) -> Callable[[TaskClass], TaskClass]:
    """Return a class decorator that registers a Task as the environment ``<name>_v<version>``.

    Every argument of the task's constructor becomes an argument of ``env()``, and the class's docstring becomes the doc
    page. ``problem`` is wrapped to validate its index.

    Args:
        name: Lower-case letters, digits and ``_``, without the version.
        version: Raise it with every change that can affect learning.
        team: The default team: a preset by name ("solo", "duo", ...) or a Team of your own.
        rounds: The default number of rounds of an episode.
        instructions: The description of the task in the instructions of preset teams; by default the first paragraph
            of the class's docstring.

    Raises:
        RegistrationError: The name, the version, the class or the team cannot be registered.
        TypeError, ValueError: ``rounds`` is not an integer of at least 1.
    """

    check_integer("rounds", rounds, 1)

    def decorate(task: TaskClass) -> TaskClass:
        check_registration(name, version, task)
        full = f"{name}_v{version}"
        page = inspect.cleandoc(task.__doc__ or "")
        if not page:
            raise RegistrationError(
                f"{task.__name__} has no docstring: expected one, because it is the doc page of {full}"
            )
        description = instructions or " ".join(page.split("\n\n")[0].split())
        presets = preset_teams(neutral_instructions(description))
        if not isinstance(team, Team) and team not in presets:
            raise RegistrationError(expected_one_of("team", team, presets, ", or a Team"))
        _check_free(full, task)
        task.name, task.version = name, version
        task.problem = with_index_check(task.problem)  # type: ignore[method-assign,assignment]
        _REGISTERED[full] = Registration(full, task, team, rounds, description, page)
        module = sys.modules.get(task.__module__)
        if module is not None and task.__module__ == f"marft_envs.{full}":
            fill_module(module, full, _REGISTERED.__getitem__)
        register_in_libraries(full)
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

    Entry points of other packages are loaded. A plug-in that fails is omitted, with a warning that names its package.
    """
    entry_points.load_all(is_known)
    return tuple(sorted({*BUILT_IN, *_REGISTERED}))


def is_known(name: str) -> bool:
    """Return whether ``name`` is built in or already registered, without loading anything."""
    return name in BUILT_IN or name in _REGISTERED


def registering_module(name: str) -> str:
    """Return the name of the module whose task is registered as ``name``; "" if there is none."""
    return _REGISTERED[name].task.__module__ if name in _REGISTERED else ""


def environment_module(name: str) -> ModuleType:
    """Return the versioned module ``marft_envs.<name>``.

    Args:
        name: ``coins_v0``, or ``my_tasks:coins_v0`` to import the module ``my_tasks`` first, which registers the
            environment. The second form also works in a worker process.

    Raises:
        UnknownEnvironment: No environment has this name; the message suggests the nearest one.
    """
    module, _, name = name.rpartition(":") if isinstance(name, str) else ("", "", name)
    if module:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as fault:
            raise UnknownEnvironment(f"{module}:{name}: {fault}; expected an importable module before ':'") from fault
    if not is_known(name) and _find(name) is None:
        known = names()
        raise UnknownEnvironment(
            f"environment {name!r}: expected one of {', '.join(known)}{did_you_mean(name, known)}, "
            "or module:name for a task of your own"
        )
    return importlib.import_module(f"marft_envs.{name}")


def make(name: str, **arguments: Any) -> AECEnv[Any, Any, Any]:
    """Make an environment by name.

    Args:
        name: ``coins_v0``, or ``my_tasks:coins_v0`` to import the module ``my_tasks`` first.
        **arguments: Arguments of the environment, as its page lists them (``help(marft_envs.coins_v0)``).

    Returns:
        The PettingZoo environment ``marft_envs.<name>.env(**arguments)``.

    Raises:
        UnknownEnvironment: No environment has this name; the message suggests the nearest one.
        ValueError: An argument is unknown, or a value is not allowed.
    """
    environment: AECEnv[Any, Any, Any] = environment_module(name).env(**arguments)
    return environment


def _find(name: str) -> Registration | None:
    """Return the registration of a name, after loading the plug-in that registers it, if any."""
    if not is_known(name):
        entry_points.load(name)
    return _REGISTERED.get(name)


install_finder(_find)
