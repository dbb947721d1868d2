"""Doc pages: the docstring of each versioned module, as docs/environments/<name>.md.

The page of a registered task is made of its docstring, its constructor and what is the same for every environment.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

from marft_envs.environment import GAME, choices_of, choose_team, task_parameters
from marft_envs.ready_made import neutral, ready_made
from marft_envs.team import Team

if TYPE_CHECKING:
    from marft_envs.door import Registration

FOLDER = Path("docs") / "environments"
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
    made = choose_team(registration.team, ready_made(neutral(registration.instructions)))
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
    teams = ", ".join(f'"{team}"' for team in ready_made(neutral("")) if not team.endswith("_anonymous"))
    return [
        *lines,
        f'* `team`: {teams}, each also with "_anonymous"; a .yaml file; or a `marft_envs.Team`.',
        "* `dependency`, `stop`: D and the rule to stop, in place of the team's own.",
        f"* {', '.join(f'`{argument}`' for argument in GAME)}: of the game, see `marft_envs.FlexMG`.",
    ]


def pettingzoo_id(name: str) -> str:
    """math_v0 -> marft/math-v0. Gymnasium's id is the same."""
    return "marft/" + re.sub(r"_v(\d+)$", r"-v\1", name)


def page(name: str) -> str:
    """The page of an environment as Markdown."""
    from marft_envs.registry import environment_module

    return f"# {stem(name)}\n\n{inspect.cleandoc(environment_module(name).__doc__ or '').strip()}\n"


def stem(name: str) -> str:
    """The name without the module before it: coins_v0 of my_tasks:coins_v0."""
    return name.rpartition(":")[2]


def summary(name: str) -> str:
    """The first line of an environment's page."""
    return page(name).splitlines()[2]


def write(names: tuple[str, ...], folder: Path) -> list[Path]:
    """Write the pages of ``names`` into ``folder``; -> the files."""
    pages = {folder / f"{stem(name)}.md": page(name) for name in names}
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return list(pages)


def stale(names: tuple[str, ...], folder: Path) -> list[str]:
    """What is wrong with the pages in ``folder``, a line each: missing, out of date, or of another one."""
    pages = {stem(name): page(name) for name in names}
    found = {path.stem: path for path in folder.glob("*_v*.md")}
    faults = [f"{folder / name}.md: missing" for name in pages if name not in found]
    for name, path in sorted(found.items()):
        if name not in pages:
            faults.append(f"{path}: no page of {', '.join(pages)}")
        elif path.read_text(encoding="utf-8") != pages[name]:
            faults.append(f"{path}: not the docstring of {name}")
    return faults
