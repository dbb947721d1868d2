"""Preset teams for programming: solo, duo, trio, quartet, octet, each also anonymous.

Only the role that answers reads the format of the answer, one fenced code block.
"""

from __future__ import annotations

from collections.abc import Callable

from marft_envs.team.presets import RoleInstructions, preset_teams
from marft_envs.team.team import Team

_FORMAT = "Reply with the complete program in one ```python code block."
INSTRUCTIONS = RoleInstructions(
    solo=f"Solve the programming problem. First think about the algorithm and the edge cases. {_FORMAT}",
    planner="You are the planner of a team that solves programming problems. In a few sentences, state what the "
    "program reads and returns, which algorithm is fast enough, and which edge cases matter. Do not write code.",
    reasoner="You are the reasoner of a team that solves programming problems. Work out the algorithm step by step: "
    "data structures, running time and edge cases. A teammate reads your reasoning and writes the program.",
    checker="You are the checker of a team that solves programming problems. Read your teammates' work and trace it on "
    "small and extreme inputs. Name each mistake and how to fix it, or state that the work is correct.",
    actor="You are the programmer of a team. Read the problem and your teammates' messages, check their work, and "
    f"write the program. {_FORMAT}",
)
TEAMS: dict[str, Callable[[], Team]] = preset_teams(INSTRUCTIONS)
