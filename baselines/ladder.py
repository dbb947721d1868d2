"""The arms of a comparison. Each arm is a configuration of the same learner.

From ippo to marft, the ladder, neighbouring arms differ in exactly one field:

| arm | critic | bootstrap | update | factor |
|---|---|---|---|---|
| ippo | own | own | simultaneous | off |
| mappo | **central** | own | simultaneous | off |
| mappo_chained | central | **successor** | simultaneous | off |
| marft_nofactor | central | successor | **sequential** | off |
| marft | central | successor | sequential | **on** |

With one adapter per agent on a frozen base model the agents share no trained parameters, and marft_nofactor equals
mappo_chained number for number (docs/reference/algorithms.md, section 4).

Arms outside the ladder:

* marft_token: marft in which every token is a decision.
* magrpo: no critic; ``group_size`` episodes on each problem are compared (MAGRPO, https://arxiv.org/abs/2508.04652).
* single: PPO with one agent instead of the team, with the team's token budget; see ``arm_environment``.
* untrained: no updates.
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
    """Return the configuration of an arm.

    Args:
        name: Name of the arm, see ``ARMS``.

    Raises:
        ValueError: If there is no such arm; the message lists the names and suggests the nearest.
    """
    if name not in ARMS:
        raise ValueError(expected_one_of("arm", name, ARMS))
    return ARMS[name]


class ArmEnvironment(NamedTuple):
    """The environment of an arm.

    Attributes:
        environment_arguments: Arguments of the environment.
        max_new_tokens: Maximum length of a reply in tokens.
    """

    environment_arguments: dict[str, Any]
    max_new_tokens: int


def arm_environment(name: str, arguments: Mapping[str, Any], agents: int, max_new_tokens: int) -> ArmEnvironment:
    """Return the environment that an arm is trained in.

    All arms except ``single`` use the task's own team. ``single`` uses one agent (``team="solo"``), whose reply may be
    as long as all replies of the team in a round together, so that the token budget per problem is the same. The tokens
    that were actually generated are in the rows (``generated_tokens``).

    ``single`` is meaningful only if the whole problem is public. If agents hold private parts, one agent would face a
    different task; the caller must refuse that.

    Args:
        name: Name of the arm.
        arguments: Arguments of the environment.
        agents: Number of agents of the team.
        max_new_tokens: Maximum length of an agent's reply in tokens.

    Raises:
        ValueError: If there is no agent.
    """
    if agents < 1:
        raise ValueError(f"agents={agents!r}: expected at least 1")
    if name != SINGLE:
        return ArmEnvironment(dict(arguments), max_new_tokens)
    return ArmEnvironment({**arguments, "team": "solo"}, agents * max_new_tokens)
