"""The doc page of a registered task, from its docstring, its constructor and what all environments share."""

from __future__ import annotations

from marft_envs.registry.env_arguments import GAME, choices_of, choose_team, task_parameters
from marft_envs.registry.registration import Registration
from marft_envs.registry.versioned_names import pettingzoo_id
from marft_envs.team.presets import neutral_instructions, preset_teams
from marft_envs.team.team import Team

_SAME = """\
| observation | `{"messages": tuple of {"role", "name", "content"}, "reply_prefix": str}`, texts |
| action | any text up to the role's `max_chars` |
| reward | 0 until the end; then the team's score in [0, 1] to every agent; see `reward=` |
| end | termination when the answer is graded; truncation only after a fault of the grader or an outside limit |"""


def page_of_task(registration: Registration) -> str:
    """The doc page of a registered task, which is also the docstring of its module."""
    summary, _, rest = registration.page.partition("\n\n")
    name = registration.name
    other = pettingzoo_id(name)
    made = choose_team(registration.team, preset_teams(neutral_instructions(registration.instructions)))
    team = "a team of its own" if isinstance(registration.team, Team) else f'team "{registration.team}"'
    table = [
        "| | |",
        "|---|---|",
        f"| import | `marft_envs.{name}`, or `marft_envs.make({name!r})`; PettingZoo and Gymnasium: `{other}` |",
        f"| agents | {', '.join(f'`{agent}`' for agent in made.agents)} ({team}); see `team=` |",
        _SAME,
    ]
    parts = [summary, "\n".join(table), "Arguments\n" + "\n".join(_arguments(registration)), rest.strip()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _arguments(registration: Registration) -> list[str]:
    choices = choices_of(registration.task)
    lines = []
    for name, parameter in task_parameters(registration.task).items():
        allowed = f" (one of {', '.join(map(repr, choices[name]))})" if name in choices else ""
        lines.append(f"* `{name}={parameter.default!r}`: of the task{allowed}.")
    teams = ", ".join(f'"{team}"' for team in preset_teams(neutral_instructions("")) if not team.endswith("_anonymous"))
    return [
        *lines,
        f'* `team`: {teams}, each also with "_anonymous"; a .yaml file; or a `marft_envs.Team`.',
        "* `dependency`, `stop`: D and the rule to stop, in place of the team's own.",
        f"* {', '.join(f'`{argument}`' for argument in GAME)}: of the game, see `marft_envs.FlexMG`.",
    ]
