"""What an agent reads: its profile, the problem, and the texts that D and memory let through, as chat messages.

o_j = concat(profile_j, s, {a_k : D[k, j] = 1} in execution order) (MARFT, arXiv 2504.16129, eq. of the effective
observation; algorithms.md section 1). Nothing here can see the gold: it gets ``problem.public`` only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from marft_envs.task import PublicProblem
from marft_envs.team import Role

Message = dict[str, str]


class Turn(NamedTuple):
    """One action: in which round, by whom, and its whole text."""

    round: int
    agent: str
    text: str


def opening(agent: str, role: Role, problem: PublicProblem) -> tuple[Message, ...]:
    """The messages that stand before anybody has spoken: the profile, then the problem with the private part."""
    task = "\n\n".join(part for part in (problem.prompt, problem.private.get(agent, "")) if part)
    messages = (
        {"role": "system", "name": agent, "content": role.instructions},
        {"role": "user", "name": "task", "content": task},
    )
    return tuple(message for message in messages if message["content"])


def observe(agent: str, role: Role, problem: PublicProblem, visible: Iterable[Turn]) -> tuple[Message, ...]:
    """All messages that ``agent`` reads.

    visible: the turns that D and the memory policy let through, oldest first; the agent's own are its assistant turns.
    """
    return extend(agent, opening(agent, role, problem), visible)


def extend(agent: str, head: tuple[Message, ...], visible: Iterable[Turn]) -> tuple[Message, ...]:
    """``observe`` with the opening given: it is the same all episode long. Every message is a fresh dict."""
    messages = [message.copy() for message in head]
    for _, speaker, text in visible:
        messages.append({"role": "assistant" if speaker == agent else "user", "name": speaker, "content": text})
    return tuple(messages)
