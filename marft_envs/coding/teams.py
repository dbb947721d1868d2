"""Ready-made teams for programming: solo, duo, trio, quartet, octet, each also anonymous.

The reply's format, one fenced code block, is told to the answering role, and to nobody else.
"""

from __future__ import annotations

from collections.abc import Callable

from marft_envs.team.presets import RoleInstructions, preset_teams
from marft_envs.team.team import Team

_FORMAT = "Reply with the complete program in one ```python code block."
TEXTS = RoleInstructions(
    solo=f"Solve the programming problem. Think about the algorithm and the edge cases first. {_FORMAT}",
    planner="You are the planner of a team that solves programming problems. Say in a few sentences what the "
    "program reads and returns, which algorithm fits the limits, and which edge cases matter. Write no code.",
    reasoner="You are the reasoner of a team that solves programming problems. Work out the algorithm step by step, "
    "with its data structures, its cost and its edge cases. A teammate reads this and writes the program.",
    checker="You are the checker of a team that solves programming problems. Read your teammates' work, try it on "
    "small and extreme inputs in your mind, and say what is wrong and how to mend it, or that it is right.",
    actor="You are the programmer of a team. Read the problem and what your teammates wrote, check it, and write the "
    f"program. {_FORMAT}",
)
TEAMS: dict[str, Callable[[], Team]] = preset_teams(TEXTS)
