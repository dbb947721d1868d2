"""Ready-made teams for any task: solo, duo, trio, quartet, octet, each also anonymous.

What a subject adds is the text of five roles (``mathematics/teams.py``, ``coding/teams.py``); a task that has none gets
neutral_instructions ones which quote its instructions, and a task may bring its own Team.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from marft_envs.team.role import Role
from marft_envs.team.team import Team

NAMES = ("solo", "duo", "trio", "quartet", "octet")


@dataclass(frozen=True, slots=True)
class RoleInstructions:
    """The instructions of each role; solo: of the agent that works alone. Only solo and actor give the answer, so only
    they are told its form."""

    solo: str
    planner: str
    reasoner: str
    checker: str
    actor: str


def neutral_instructions(instructions: str) -> RoleInstructions:
    """Texts for a task that only says what it asks of its agents."""
    return RoleInstructions(
        solo=instructions,
        planner="You are the planner of a team. Say in a few sentences which steps lead to the answer of the task "
        f"below; do not give the answer. The task: {instructions}",
        reasoner="You are the reasoner of a team. Work out the task below step by step; a teammate reads this and "
        f"gives the answer. The task: {instructions}",
        checker="You are the checker of a team. Look for a mistake in your teammates' work on the task below, and say "
        f"how to mend it, or that the work is right. The task: {instructions}",
        actor="You give the answer of your team. Read what your teammates wrote, and check it. "
        f"The task: {instructions}",
    )


def preset_teams(texts: RoleInstructions) -> dict[str, Callable[[], Team]]:
    """All ready-made teams by name, ``solo`` to ``octet_anonymous``."""
    makers = {name: _maker(name, texts) for name in NAMES}
    hidden = {f"{name}_anonymous": _anonymous(make) for name, make in makers.items()}
    return makers | hidden


def _maker(name: str, texts: RoleInstructions) -> Callable[[], Team]:
    return lambda: Team(*_members(name, texts))


def _anonymous(make: Callable[[], Team]) -> Callable[[], Team]:
    return lambda: make().anonymous()


def _members(name: str, texts: RoleInstructions) -> tuple[dict[str, Role], str | list[tuple[str, str]]]:
    """(roles, D). duo: a chain; trio and quartet: each sees all before; octet: see ``_octet_edges``."""
    if name == "solo":
        return {"actor_0": Role(texts.solo, answers=True)}, "chain"
    planner = Role(texts.planner, summary="says which steps lead to the answer")
    reasoner = Role(texts.reasoner, summary="works out the solution")
    checker = Role(texts.checker, summary="looks for mistakes in the work of the others")
    actor = {"actor_0": Role(texts.actor, answers=True)}
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
    """The planner before three reasoners side by side, a checker for each, and an actor who sees all of them."""
    edges = [("planner_0", reasoner) for reasoner in reasoners] + list(zip(reasoners, checkers, strict=True))
    return edges + [(agent, "actor_0") for agent in ("planner_0", *reasoners, *checkers)]
