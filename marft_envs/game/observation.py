"""What an agent reads: its profile, the problem, and the texts that D and memory let through, as chat messages.

o_j = concat(profile_j, s, {a_k : D[k, j] = 1} in execution order) (MARFT, arXiv 2504.16129, eq. of the effective
observation; algorithms.md section 1). Nothing here can see the gold: it gets ``problem.public`` only.
"""

from __future__ import annotations

from collections.abc import Sequence

from marft_envs.task import PublicProblem
from marft_envs.team.role import Role
from marft_envs.transcript import Turn

Message = dict[str, str]


def opening_messages(agent: str, role: Role, problem: PublicProblem, briefing: str = "") -> tuple[Message, ...]:
    """The messages that stand before anybody has spoken: the profile, then the problem with the private part.

    briefing: what the team's schedule tells the agent, at the end of its profile ("" for most).
    """
    profile = "\n\n".join(part for part in (role.profile, briefing) if part)
    task = "\n\n".join(part for part in (problem.prompt, problem.private.get(agent, "")) if part)
    messages = (
        {"role": "system", "name": agent, "content": profile},
        {"role": "user", "name": "task", "content": task},
    )
    return tuple(message for message in messages if message["content"])


def without_private(messages: Sequence[Message], private: str) -> tuple[Message, ...]:
    """An observation's messages without the private part, which ends what ``opening_messages`` says of the task. ValueError if
    it is not there."""
    if not private:
        return tuple(messages)
    said = [message["content"] if message["name"] == "task" else "" for message in messages]
    fits = (i for i, text in enumerate(said) if text and (text.endswith(private) or private.endswith(text)))
    place = next(fits, None)
    if place is None:
        raise ValueError(f"messages={list(messages)!r}: expected one by 'task' that ends with {private!r}")
    whole = said[place].endswith(private)  # else its beginning was cut off, and with it all that stood before
    public = said[place].removesuffix(private).removesuffix("\n\n") if whole else ""
    kept = [{**messages[place], "content": public}] if public else []
    return (*messages[:place], *kept, *messages[place + 1 :])


def as_message(agent: str, limit: int, turn: Turn) -> Message:
    """How ``agent`` reads one turn: its own as its assistant message, another's as a user message by that name, a
    tool's result as one by "tool", a task's feedback as one by "task". A text of more than ``limit`` characters loses
    its oldest ones."""
    _, speaker, text, kind = turn
    if len(text) > limit:
        text = text[-limit:]
    if kind == "result":
        return {"role": "user", "name": "tool", "content": text}
    if kind == "feedback":
        return {"role": "user", "name": "task", "content": text}
    return {"role": "assistant" if speaker == agent else "user", "name": speaker, "content": text}
