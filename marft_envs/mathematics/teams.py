"""Ready-made teams for mathematics: solo, duo, trio, quartet, octet, each also anonymous; and a guided duo.

The final answer's format is told to the answering role, and to nobody else. ``duo_guided`` is for models too small to
follow instructions: each reply begins with words given to it.
"""

from __future__ import annotations

from collections.abc import Callable

from marft_envs.team.presets import RoleInstructions, preset_teams
from marft_envs.team.role import Role
from marft_envs.team.team import Team

_FORMAT = "End with the final answer inside \\boxed{}, for example \\boxed{42}."
TEXTS = RoleInstructions(
    solo=f"Solve the mathematics problem step by step. {_FORMAT}",
    planner="You are the planner of a team that solves mathematics problems. Say in a few sentences what is asked, "
    "what is given, and which steps lead to the answer. Do not compute the answer.",
    reasoner="You are the reasoner of a team that solves mathematics problems. Work out the solution step by step. "
    "A teammate reads your reasoning and gives the final answer.",
    checker="You are the checker of a team that solves mathematics problems. Read your teammates' work, look for a "
    "mistake in the reasoning or the arithmetic, and say what is wrong and how to mend it, or that it is right.",
    actor="You are the member of a team who gives the final answer. Read the problem and what your teammates wrote, "
    f"check it, and solve the problem. {_FORMAT}",
)


def duo_guided() -> Team:
    """reasoner_0 -> actor_0 for small models: "Equation: ...", then "Therefore the final answer is ..."."""
    return Team(
        {
            "reasoner_0": Role("Write the equation that solves the problem.", reply_prefix="Equation:"),
            "actor_0": Role(
                "Answer the problem with one number.", answers=True, reply_prefix="Therefore the final answer is"
            ),
        }
    )


def panel(members: int) -> Callable[[], Team]:
    """agent_0, agent_1, ... without edges and without role texts; everybody answers (for "report")."""
    return lambda: Team({f"agent_{i}": Role(answers=True) for i in range(members)}, "none")


PANELS: dict[str, Callable[[], Team]] = {f"panel_{n}": panel(n) for n in (2, 4, 8)}
TEAMS: dict[str, Callable[[], Team]] = preset_teams(TEXTS) | {"duo_guided": duo_guided} | PANELS
