"""Names and versions of the environments: built in, registered by a decorator, or brought by another package.

A versioned name such as ``coins_v0`` is a module of its own, ``marft_envs.coins_v0``, with ``env()``, ``raw_env()`` and
a docstring that is the doc page. It is one of three:

* built in: a file ``marft_envs/<name>_v<N>.py``, found by its name and imported when it is first used;
* registered: ``@register("coins", version=0)`` on a Task class, anywhere; its module is made when it is first used;
* a plug-in: an entry point of the group ``marft_envs.tasks`` in an installed package (``plugins.py``).
"""

from __future__ import annotations

import importlib
import inspect
import keyword
import pkgutil
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pettingzoo import AECEnv

from marft_envs import door, plugins
from marft_envs.environment import GAME, TEAM, task_parameters
from marft_envs.indexing import with_checked_index
from marft_envs.pages import pettingzoo_id
from marft_envs.ready_made import neutral, ready_made
from marft_envs.suggest import did_you_mean, expected
from marft_envs.task import Task
from marft_envs.team import Team

_VERSIONED = re.compile(r"[a-z][a-z0-9_]*_v\d+")
TaskClass = TypeVar("TaskClass", bound=type[Task])

BUILT_IN = tuple(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]) if _VERSIONED.fullmatch(m.name))
_REGISTERED: dict[str, door.Registration] = {}


class RegistrationError(ValueError):
    """A task that cannot be registered; the message says what was expected."""


def register(
    name: str, *, version: int = 0, team: str | Team = "solo", instructions: str = ""
) -> Callable[[TaskClass], TaskClass]:
    """Class decorator: the Task becomes the environment ``<name>_v<version>``.

    team: the default, a ready-made one by name ("solo", "duo", ...) or a Team of your own. instructions: what the
    roles of ready-made teams are told of the task; by default the first paragraph of the class's docstring. The
    docstring is the doc page, and each argument of the constructor becomes one of ``env()``. ``problem`` gets an index
    that is an int within the task; another one is an IndexError before it. Raises RegistrationError.
    """

    def decorate(task: TaskClass) -> TaskClass:
        _check(name, version, task)
        full = f"{name}_v{version}"
        page = inspect.cleandoc(task.__doc__ or "")
        if not page:
            raise RegistrationError(f"{task.__name__} has no docstring: expected one, it is the doc page of {full}")
        told = instructions or " ".join(page.split("\n\n")[0].split())
        if not isinstance(team, Team) and team not in ready_made(neutral(told)):
            raise RegistrationError(expected("team", team, ready_made(neutral(told)), ", or a Team"))
        _check_free(full, task)
        task.name, task.version = name, version
        task.problem = with_checked_index(task.problem)  # type: ignore[method-assign,assignment]
        _REGISTERED[full] = door.Registration(full, task, team, told, page)
        module = sys.modules.get(task.__module__)
        if module is not None and task.__module__ == f"marft_envs.{full}":
            door.open_door(module, full, _REGISTERED.__getitem__)
        announce(full)
        return task

    return decorate


def _check(name: str, version: int, task: type[Task]) -> None:
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise RegistrationError(f"name={name!r}: expected lower-case letters, digits and _, as in 'coins'")
    if re.search(r"_v\d+$", name):
        raise RegistrationError(f"name={name!r}: expected it without the version, which is version={name[-1]}")
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise RegistrationError(f"version={version!r}: expected a whole number of at least 0")
    if not inspect.isclass(task) or not issubclass(task, Task):
        raise RegistrationError(f"@register({name!r}) on {task!r}: expected a subclass of marft_envs.Task")
    missing = sorted(getattr(task, "__abstractmethods__", ()))
    if missing:
        raise RegistrationError(f"{task.__name__} lacks {' and '.join(missing)}: expected problem and grade")
    for key, parameter in task_parameters(task).items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            raise RegistrationError(f"{task.__name__} takes {parameter}: expected arguments with names")
        if key in GAME or key in TEAM:
            raise RegistrationError(f"{task.__name__} takes {key!r}: expected another name, the game has that one")
        if parameter.default is parameter.empty:
            raise RegistrationError(
                f"{task.__name__} argument {key!r} has no default: expected one, so that env() works"
            )


def _check_free(full: str, task: type[Task]) -> None:
    """The same class again (a module that is reloaded, a notebook cell that is run again) takes its own place."""
    if full in BUILT_IN and task.__module__ != f"marft_envs.{full}":
        raise RegistrationError(f"{full} is built into marft_envs: expected another name or version")
    other = _REGISTERED.get(full)
    if other is not None and _place(other.task) != _place(task):
        raise RegistrationError(
            f"{full} is registered by {_place(other.task)} already, now again by {_place(task)}: "
            "expected another name or version"
        )


def _place(task: type[Task]) -> str:
    return f"{task.__module__}.{task.__qualname__}"


# ---- looking up


class UnknownEnvironment(ValueError):
    """No environment has that name; the message lists those that there are."""


def is_versioned(name: str) -> bool:
    """Whether ``name`` looks like an environment's: ``coins_v0``."""
    return _VERSIONED.fullmatch(name) is not None


def names() -> tuple[str, ...]:
    """All environments, sorted. Plug-ins are loaded; a broken one is left out with a warning that names its package."""
    plugins.load_all(is_known)
    return tuple(sorted({*BUILT_IN, *_REGISTERED}))


def is_known(name: str) -> bool:
    """Whether ``name`` is built in or registered by now; loads nothing."""
    return name in BUILT_IN or name in _REGISTERED


def environment_module(name: str) -> ModuleType:
    """The versioned module ``marft_envs.<name>``. ValueError for an unknown name, with the nearest one.

    "my_tasks:coins_v0" imports the module my_tasks first, which registers it (also in a worker process).
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
    """``marft_envs.<name>.env(**arguments)``."""
    environment: AECEnv[Any, Any, Any] = environment_module(name).env(**arguments)
    return environment


def with_dataset(name: Any) -> tuple[str, ...]:
    """The built-in environments whose ``dataset=`` takes ``name``: those that list it in ``DATASETS``."""
    modules = {known: importlib.import_module(f"marft_envs.{known}") for known in BUILT_IN}
    return tuple(known for known, module in modules.items() if name in getattr(module, "DATASETS", ()))


# ---- other people's registries


def announce(name: str) -> None:
    """Make ``gymnasium.make("marft/math-v0")`` work, and ``pettingzoo.make("aec", "marft/math-v0")`` where this
    pettingzoo has a registry (1.27 and later)."""
    single_agent = importlib.import_module("marft_envs.single_agent")  # it imports this module
    single_agent.register_with_gymnasium(name)
    try:
        from pettingzoo import aec_registry, register
    except ImportError:
        return
    if pettingzoo_id(name) not in aec_registry:
        register("aec", pettingzoo_id(name), entry_point=f"marft_envs.{name}:env")


def announce_built_in() -> None:
    """Announce what is built in; nothing is imported."""
    for name in BUILT_IN:
        announce(name)


def _find(name: str) -> door.Registration | None:
    if not is_known(name):
        plugins.load(name)
    return _REGISTERED.get(name)


door.install_finder(_find)
