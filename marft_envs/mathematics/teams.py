"""Preset teams for mathematics.

| name | agents |
|---|---|
| solo, duo, trio, quartet, octet | the teams of ``marft_envs.team.presets``; add ``_anonymous`` to hide the roles |
| duo_guided | a reasoner and an actor for small models: each reply continues a fixed prefix |
| panel_2, panel_4, panel_8 | agents that all answer and see nobody, for the task ``report`` |
| panel_2_guided to panel_8_guided | the same for small models: each reply continues a fixed prefix |

Only the agent that answers is instructed how to format the final answer.
"""

from __future__ import annotations

from collections.abc import Callable

from marft_envs.team.presets import RoleInstructions, preset_teams
from marft_envs.team.role import Role
from marft_envs.team.team import Team

_FORMAT = "End with the final answer inside \\boxed{}, for example \\boxed{42}."
INSTRUCTIONS = RoleInstructions(
    solo=f"Solve the mathematics problem step by step. {_FORMAT}",
    planner="You are the planner of a team that solves a mathematics problem. In a few sentences, state what the "
    "problem asks for, list the known quantities, and name the steps that lead to the answer. Do not compute the "
    "answer.",
    reasoner="You are the reasoner of a team that solves a mathematics problem. Work out the solution step by step. "
    "A teammate reads your reasoning and gives the final answer.",
    checker="You are the checker of a team that solves a mathematics problem. Read your teammates' messages and check "
    "the reasoning and the arithmetic. If you find a mistake, name it and correct it. Otherwise, confirm that the "
    "work is correct.",
    actor="You give the final answer for a team that solves a mathematics problem. Read the problem and your "
    f"teammates' messages, check their work, and solve the problem. {_FORMAT}",
)


def duo_guided() -> Team:
    """Return the team reasoner_0 -> actor_0 for models that are too small to follow instructions.

    The reasoner's reply continues "Equation:", the actor's continues "Therefore the final answer is".
    """
    return Team(
        {
            "reasoner_0": Role("Write the equation that solves the problem.", reply_prefix="Equation:"),
            "actor_0": Role(
                "Answer the problem with one number.", answers=True, reply_prefix="Therefore the final answer is"
            ),
        }
    )


def panel(size: int, role: Role) -> Callable[[], Team]:
    """Return a function that makes a team of agents that all answer and see nobody.

    Args:
        size: The number of agents, named agent_0, agent_1 and so on.
        role: The role of every agent.
    """
    return lambda: Team({f"agent_{i}": role for i in range(size)}, "none")


_GUIDED = Role("Answer with the number only.", answers=True, reply_prefix="The answer is ")
PANELS: dict[str, Callable[[], Team]] = {f"panel_{n}": panel(n, Role(answers=True)) for n in (2, 4, 8)} | {
    f"panel_{n}_guided": panel(n, _GUIDED) for n in (2, 4, 8)
}
TEAMS: dict[str, Callable[[], Team]] = preset_teams(INSTRUCTIONS) | {"duo_guided": duo_guided} | PANELS
