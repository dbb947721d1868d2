"""``python -m marft_envs play``: play one episode on the terminal, typing the replies of all agents."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from marft_envs.game.flex_mg import FlexMG
from marft_envs.registry import make

HOW_TO_REPLY = (
    "one line; or start with ``` or an empty line, type several lines, and end with a line that is only a dot"
)


def typed_reply(prompt: str) -> str:
    """Read one reply from the terminal, in the form that ``HOW_TO_REPLY`` describes.

    The end of the input also ends a reply of several lines.

    Raises:
        EOFError: The input ended before the reply began.
    """
    first = input(prompt)
    if first and not first.startswith("```"):
        return first
    lines = [first] if first else []
    with contextlib.suppress(EOFError):
        while (line := input()) != ".":
            lines.append(line)
    return "\n".join(lines)


def reference_text(game: FlexMG) -> str:
    """Return a correct reply if the task can write one (a program's gold is hidden tests), else the gold answer."""
    reference, gold = getattr(game.task, "reference_answer", None), game.problem.gold
    if reference is None or (isinstance(gold, Mapping) and set(game.team.answering) <= set(gold)):
        return f"the gold answer: {gold}"
    try:
        return f"a correct answer:\n{reference(game.problem)}"
    except ValueError as unknown:
        return str(unknown)


def play_by_hand(name: str, index: int | None, arguments: Mapping[str, Any]) -> None:
    """Play one episode: print the messages that each agent reads, and read its reply from the terminal.

    Args:
        name: The environment, as ``marft_envs.make`` takes it.
        index: The problem; None draws one.
        arguments: Arguments of ``env()``.
    """
    env = make(name, **arguments)
    env.reset(options={} if index is None else {"index": index})
    while not env.unwrapped.over:
        agent = env.agent_selection
        observation = env.observe(agent)
        print(f"\n--- {agent} reads")
        for message in observation["messages"]:
            print(f"[{message['role']} {message['name']}] {message['content']}")
        env.step(typed_reply(f"--- {agent} replies ({HOW_TO_REPLY}): {observation['reply_prefix']}"))
    outcome = env.unwrapped.outcome
    for agent, verdict in outcome.verdicts.items():
        print(f"\n{agent}: {verdict.outcome} {verdict.reason}".rstrip())
    print(f"team score {outcome.score:g}; {reference_text(env.unwrapped)}")
