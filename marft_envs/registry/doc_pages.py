"""Doc pages of environments: those of registered tasks, and the list of the game's arguments on every page."""

from __future__ import annotations

import inspect
import re

from marft_envs.game.flex_mg import FlexMG
from marft_envs.registry.env_arguments import GAME_PARAMETERS, choices_of, choose_team, task_parameters
from marft_envs.registry.registration import Registration
from marft_envs.registry.versioned_names import pettingzoo_id
from marft_envs.team.presets import neutral_instructions, preset_teams
from marft_envs.team.team import Team

_SHARED_ROWS = """\
| observation | `{"messages": tuple of {"role", "name", "content"}, "reply_prefix": str}`; all values are strings |
| action | a string of at most the role's `max_chars` characters; a longer one is clipped |
| reward | 0 until the episode ends; then the team's score in [0, 1] to every agent; see `reward=` |
| end | terminated when the answer is graded; truncated by a fault of the grader or an outside limit |"""
"""The rows of the table that are the same for every registered task."""


def task_page(registration: Registration) -> str:
    """Return the doc page of a registered task, which is also the docstring of its module."""
    summary, _, rest = registration.page.partition("\n\n")
    name = registration.name
    other_name = pettingzoo_id(name)
    team = choose_team(registration.team, preset_teams(neutral_instructions(registration.instructions)))
    team_name = "a team of its own" if isinstance(registration.team, Team) else f'team "{registration.team}"'
    table = [
        "| property | value |",
        "|---|---|",
        f"| import | `marft_envs.{name}` or `marft_envs.make({name!r})`; in PettingZoo and Gymnasium: `{other_name}` |",
        f"| agents | {', '.join(f'`{agent}`' for agent in team.agents)} ({team_name}); see `team=` |",
        _SHARED_ROWS,
    ]
    parts = [summary, "\n".join(table), "Arguments:\n\n" + "\n".join(_argument_lines(registration)), rest.strip()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _argument_lines(registration: Registration) -> list[str]:
    choices = choices_of(registration.task)
    lines = []
    for name, parameter in task_parameters(registration.task).items():
        allowed = f" (one of {', '.join(map(repr, choices[name]))})" if name in choices else ""
        lines.append(f"* `{name}={parameter.default!r}`: an argument of the task{allowed}.")
    teams = ", ".join(f'"{team}"' for team in preset_teams(neutral_instructions("")) if not team.endswith("_anonymous"))
    return [
        *lines,
        f'* `team`: {teams}, each also with the suffix "_anonymous"; a .yaml file; or a `marft_envs.Team`.',
        "* `dependency`, `stop`: the dependency function D and the stop rule, in place of the team's own.",
        *([f"* `rounds={registration.rounds}`: the largest number of rounds."] if registration.rounds != 1 else []),
        f"* {', '.join(f'`{argument}`' for argument in GAME_PARAMETERS)}: arguments of the game. The page of this "
        "environment lists their values, as does `help(marft_envs.FlexMG)`.",
    ]


def game_arguments_section() -> str:
    """Return the section of every page that describes the arguments of the game, from the docstring of ``FlexMG``."""
    arguments = re.search(r"^Args:\n(.*?)^\S", inspect.getdoc(FlexMG) or "", re.DOTALL | re.MULTILINE)
    entries = re.findall(r"^ {4}(\w+): (.*\n(?: {8}.*\n)*)", arguments[1] if arguments else "", re.MULTILINE)
    lines = [
        f"* `{name}={GAME_PARAMETERS[name].default!r}`: {' '.join(text.split())}"
        for name, text in entries
        if name in GAME_PARAMETERS
    ]
    return "\n".join(["## Arguments of the game", "", *lines])
