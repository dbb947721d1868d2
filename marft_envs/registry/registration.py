"""Record of a task that is registered as an environment, and validation of what can be registered."""

from __future__ import annotations

import inspect
import keyword
import re
from dataclasses import dataclass
from typing import Any

from marft_envs.game.flex_mg import FlexMG
from marft_envs.registry.env_arguments import (
    GAME_PARAMETERS,
    TEAM_ARGUMENTS,
    choose_team,
    make_game,
    task_parameters,
)
from marft_envs.task import Task
from marft_envs.team.presets import neutral_instructions, preset_teams
from marft_envs.team.team import Team

_TEAM_PARAMETERS = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in ("team", "dependency", "stop")
]


class RegistrationError(ValueError):
    """A task that cannot be registered; the message names what was expected."""


@dataclass(frozen=True)
class Registration:
    """A registered task.

    Attributes:
        name: The environment's name with its version, ``coins_v0``.
        task: The Task class.
        team: The default team, by name or as a Team.
        rounds: The default number of rounds.
        instructions: The description of the task in the instructions of preset teams.
        page: The class's docstring, which is the doc page.
    """

    name: str
    task: type[Task]
    team: str | Team
    rounds: int
    instructions: str
    page: str

    def raw_env(
        self, *, team: str | Team | None = None, dependency: Any = None, stop: Any = None, **arguments: Any
    ) -> FlexMG:
        """Make the game from its own arguments and those of the task's constructor."""
        members = choose_team(
            self.team if team is None else team, preset_teams(neutral_instructions(self.instructions))
        )
        arguments = {"rounds": self.rounds, **arguments}
        return make_game(self.name, self.task, members, arguments, dependency=dependency, stop=stop)

    def signature(self) -> inspect.Signature:
        """Return the signature of ``env()`` with all arguments, for help() and editors."""
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in task_parameters(self.task).values()]
        game = {**GAME_PARAMETERS, "rounds": GAME_PARAMETERS["rounds"].replace(default=self.rounds)}
        return inspect.Signature([*_TEAM_PARAMETERS, *own, *game.values()])


def check_registration(name: str, version: int, task: type[Task]) -> None:
    """Raise RegistrationError unless ``task`` can be registered as ``<name>_v<version>``."""
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise RegistrationError(f"name={name!r}: expected lower-case letters, digits and _, such as 'coins'")
    if versioned := re.search(r"_v(\d+)$", name):
        raise RegistrationError(f"name={name!r}: expected a name without the version; pass version={versioned[1]}")
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise RegistrationError(f"version={version!r}: expected an integer of at least 0")
    if not inspect.isclass(task) or not issubclass(task, Task):
        raise RegistrationError(f"@register({name!r}) on {task!r}: expected a subclass of marft_envs.Task")
    missing = sorted(getattr(task, "__abstractmethods__", ()))
    if missing:
        raise RegistrationError(
            f"{task.__name__} lacks {' and '.join(missing)}: expected the methods problem and grade"
        )
    for key, parameter in task_parameters(task).items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            raise RegistrationError(f"{task.__name__} takes {parameter}: expected named parameters only")
        if key in GAME_PARAMETERS or key in TEAM_ARGUMENTS:
            raise RegistrationError(
                f"{task.__name__} takes {key!r}: expected another name, because env() has a parameter of that name"
            )
        if parameter.default is parameter.empty:
            raise RegistrationError(
                f"{task.__name__} argument {key!r} has no default: expected one, so that env() works without arguments"
            )
