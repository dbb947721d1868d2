"""Preset teams for any task: solo, duo, trio, quartet and octet, each also anonymous.

A subject writes the instructions of the five roles (``mathematics/teams.py``, ``coding/teams.py``). For any other task
``neutral_instructions`` quotes the task's own. A task may also bring its own Team.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from marft_envs.team.role import Role
from marft_envs.team.team import Team

NAMES = ("solo", "duo", "trio", "quartet", "octet")


@dataclass(frozen=True, slots=True)
class RoleInstructions:
    """The instructions of each role of the preset teams.

    Only ``solo`` and ``actor`` give the team's answer, so only these describe its format.

    Attributes:
        solo: For an agent that works alone.
        planner: For the agent that lists the steps of a solution.
        reasoner: For an agent that works out a solution.
        checker: For an agent that looks for mistakes.
        actor: For the agent that gives the team's answer.
    """

    solo: str
    planner: str
    reasoner: str
    checker: str
    actor: str


def neutral_instructions(instructions: str) -> RoleInstructions:
    """Return instructions for a task that only has its own ``instructions``, which each role quotes."""
    return RoleInstructions(
        solo=instructions,
        planner="You are the planner of a team. List in a few sentences the steps that lead to the answer of the task "
        f"below. Do not give the answer. The task: {instructions}",
        reasoner="You are the reasoner of a team. Work out the task below step by step. A teammate reads your work and "
        f"gives the answer. The task: {instructions}",
        checker="You are the checker of a team. Look for mistakes in your teammates' work on the task below. Describe "
        f"each mistake and how to correct it. If there is no mistake, write that. The task: {instructions}",
        actor="You give the answer of your team. Read what your teammates wrote, check it, and give the answer. "
        f"The task: {instructions}",
    )


def preset_teams(instructions: RoleInstructions) -> dict[str, Callable[[], Team]]:
    """Return a function that makes a Team for each name, from ``solo`` to ``octet_anonymous``."""
    makers = {name: _team_maker(name, instructions) for name in NAMES}
    return makers | {f"{name}_anonymous": _anonymous_maker(make) for name, make in makers.items()}


def _team_maker(name: str, instructions: RoleInstructions) -> Callable[[], Team]:
    return lambda: Team(*_members(name, instructions))


def _anonymous_maker(make: Callable[[], Team]) -> Callable[[], Team]:
    return lambda: make().anonymous()


def _members(name: str, instructions: RoleInstructions) -> tuple[dict[str, Role], str | list[tuple[str, str]]]:
    """Return the roles and D: a chain for the duo, "full" for trio and quartet, ``_octet_edges`` for the octet."""
    if name == "solo":
        return {"actor_0": Role(instructions.solo, answers=True)}, "chain"
    planner = Role(instructions.planner, summary="lists the steps that lead to the answer")
    reasoner = Role(instructions.reasoner, summary="works out the solution")
    checker = Role(instructions.checker, summary="looks for mistakes in the work of the others")
    actor = {"actor_0": Role(instructions.actor, answers=True)}
    if name == "duo":
        return {"reasoner_0": reasoner} | actor, "chain"
    if name == "trio":
        return {"planner_0": planner, "reasoner_0": reasoner} | actor, "full"
    if name == "quartet":
        return {"planner_0": planner, "reasoner_0": reasoner, "checker_0": checker} | actor, "full"
    reasoners, checkers = [f"reasoner_{i}" for i in range(3)], [f"checker_{i}" for i in range(3)]
    roles = {"planner_0": planner} | dict.fromkeys(reasoners, reasoner) | dict.fromkeys(checkers, checker)
    return roles | actor, _octet_edges(reasoners, checkers)


def _octet_edges(reasoners: list[str], checkers: list[str]) -> list[tuple[str, str]]:
    """Return edges from the planner to each reasoner, from each reasoner to its checker, and from all to the actor."""
    edges = [("planner_0", reasoner) for reasoner in reasoners] + list(zip(reasoners, checkers, strict=True))
    return edges + [(agent, "actor_0") for agent in ("planner_0", *reasoners, *checkers)]
