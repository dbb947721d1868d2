"""Ready-made teams for mathematics: solo, duo, trio, quartet, octet, and each of them anonymous.

The final answer's format is told to the answering role, and to nobody else. ``duo_guided`` is for models too small to
follow instructions: each reply begins with words given to it.
"""

from __future__ import annotations

from collections.abc import Callable

from marft_envs.team import Role, Team

_FORMAT = "End with the final answer inside \\boxed{}, for example \\boxed{42}."
_REASONER = Role(
    "You are the reasoner of a team that solves mathematics problems. Work out the solution step by step. "
    "A teammate reads your reasoning and gives the final answer."
)
_ACTOR = Role(
    "You are the member of a team who gives the final answer. Read the problem and what your teammates wrote, "
    f"check it, and solve the problem. {_FORMAT}",
    answers=True,
)
_PLANNER = Role(
    "You are the planner of a team that solves mathematics problems. Say in a few sentences what is asked, what is "
    "given, and which steps lead to the answer. Do not compute the answer."
)
_CRITIC = Role(
    "You are the checker of a team that solves mathematics problems. Read your teammates' work, look for a mistake in "
    "the reasoning or the arithmetic, and say what is wrong and how to mend it, or that it is right."
)


def solo() -> Team:
    """One agent that reasons and answers."""
    return Team({"actor_0": Role(f"Solve the mathematics problem step by step. {_FORMAT}", answers=True)})


def duo() -> Team:
    """reasoner_0 -> actor_0."""
    return Team({"reasoner_0": _REASONER, "actor_0": _ACTOR})


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


def trio() -> Team:
    """planner_0 -> reasoner_0 -> actor_0; the actor sees both."""
    return Team({"planner_0": _PLANNER, "reasoner_0": _REASONER, "actor_0": _ACTOR}, "full")


def quartet() -> Team:
    """planner_0, reasoner_0, checker_0, actor_0; each sees all before."""
    return Team({"planner_0": _PLANNER, "reasoner_0": _REASONER, "checker_0": _CRITIC, "actor_0": _ACTOR}, "full")


def octet() -> Team:
    """A planner, three reasoners side by side, three checkers (one for each), and an actor who sees all of them."""
    reasoners, checkers = [f"reasoner_{i}" for i in range(3)], [f"checker_{i}" for i in range(3)]
    roles = {"planner_0": _PLANNER} | dict.fromkeys(reasoners, _REASONER) | dict.fromkeys(checkers, _CRITIC)
    edges = [("planner_0", r) for r in reasoners] + list(zip(reasoners, checkers, strict=True))
    edges += [(agent, "actor_0") for agent in roles]
    return Team(roles | {"actor_0": _ACTOR}, edges)


_TEAMS: dict[str, Callable[[], Team]] = {team.__name__: team for team in (solo, duo, trio, quartet, octet, duo_guided)}
TEAMS: dict[str, Callable[[], Team]] = _TEAMS | {
    f"{name}_anonymous": lambda make=make: make().anonymous()  # type: ignore[misc]
    for name, make in _TEAMS.items()
    if name != "duo_guided"
}


def as_team(spec: str | Team) -> Team:
    """A team from its name in ``TEAMS``, or the Team itself. ValueError for an unknown name."""
    if isinstance(spec, Team):
        return spec
    if spec not in TEAMS:
        raise ValueError(f"team={spec!r}: expected one of {', '.join(TEAMS)} or a marft_envs.Team")
    return TEAMS[spec]()
