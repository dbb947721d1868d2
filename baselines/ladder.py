"""The arms: one configuration of the one learner each. From ippo to marft neighbours differ in exactly one field.

| arm | critic | bootstrap | update | factor |
|---|---|---|---|---|
| ippo | own | own | simultaneous | off |
| mappo | **central** | own | simultaneous | off |
| mappo_chained | central | **successor** | simultaneous | off |
| marft_nofactor | central | successor | **sequential** | off |
| marft | central | successor | sequential | **on** |

With one adapter per agent on a frozen base the parameters are disjoint, and then marft_nofactor is mappo_chained,
number for number (algorithms.md section 4).

Beside the ladder: marft_token is marft with every token a decision; untrained never updates; magrpo has no critic and
compares group_size episodes on each problem (MAGRPO, arXiv 2508.04652); single is PPO with one agent in the team's
place, see ``arm_environment``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from baselines.learner_config import LearnerConfig
from marft_envs.arguments import expected_one_of

ippo = LearnerConfig()
mappo = replace(ippo, critic="central")
mappo_chained = replace(mappo, bootstrap="successor")
marft_nofactor = replace(mappo_chained, update="sequential")
marft = replace(marft_nofactor, factor="on")

LADDER = ("ippo", "mappo", "mappo_chained", "marft_nofactor", "marft")
SINGLE = "single"

ARMS: dict[str, LearnerConfig] = {
    "ippo": ippo,
    "mappo": mappo,
    "mappo_chained": mappo_chained,
    "marft_nofactor": marft_nofactor,
    "marft": marft,
    "marft_token": replace(marft, credit="token"),
    "magrpo": replace(ippo, critic="none", bootstrap="group"),
    SINGLE: ippo,
    "untrained": replace(ippo, update="none"),
}


def arm(name: str) -> LearnerConfig:
    """The arm of that name. ValueError lists the names, and says which is near."""
    if name not in ARMS:
        raise ValueError(expected_one_of("arm", name, ARMS))
    return ARMS[name]


class ArmEnvironment(NamedTuple):
    """What an arm plays: the environment's arguments, and the tokens that one reply may have."""

    environment_arguments: dict[str, Any]
    max_new_tokens: int


def arm_environment(name: str, arguments: Mapping[str, Any], agents: int, max_new_tokens: int) -> ArmEnvironment:
    """The environment as the arm plays it. Every arm takes the task's own team of ``agents``, but for ``single``: one
    agent (``team="solo"``), whose reply may be as long as all of the team's in a round together, so that a problem has
    the same token budget. What was spent in fact is in the rows (generated_tokens): compare at equal tokens, too.

    Sensible where the problem is public; where the agents hold private parts, one agent would face another task, which
    the caller must refuse. ValueError for fewer than one agent.
    """
    if agents < 1:
        raise ValueError(f"agents={agents!r}: expected at least 1")
    if name != SINGLE:
        return ArmEnvironment(dict(arguments), max_new_tokens)
    return ArmEnvironment({**arguments, "team": "solo"}, agents * max_new_tokens)
