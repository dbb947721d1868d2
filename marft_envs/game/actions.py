"""Actions before they enter the transcript: repair of strings outside the action space, and tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from marft_envs.game.spaces import as_utf8, is_utf8
from marft_envs.team.role import Role
from marft_envs.team.tools import answer_call, find_call
from marft_envs.transcript import Turn


def repair(action: str, limit: int) -> tuple[str, dict[str, Any]]:
    """Return an action that the space contains, and what ``infos`` reports of the repair.

    Args:
        action: Any string.
        limit: The role's ``max_chars``; a longer action is truncated.

    Returns:
        The action, and its flags: ``clipped`` (the original length) and ``malformed`` (lone surrogates, which no
        tokenizer and no file can hold, were replaced).
    """
    flags: dict[str, Any] = {}
    if len(action) > limit:
        flags["clipped"] = len(action)
        action = action[:limit]
    if not is_utf8(action):
        flags["malformed"] = "lone surrogates replaced by '?'"
        action = as_utf8(action)
    return action, flags


def tool_call(text: str, role: Role, tool_turns: Sequence[Turn]) -> str | None:
    """Return the body of the message's tool call; None if it has none, or the role has no calls left in this turn.

    Args:
        text: The agent's message.
        role: Its role.
        tool_turns: The calls and results of the turn so far.
    """
    body = find_call(text)
    calls = sum(turn.kind == "call" for turn in tool_turns)
    return None if calls >= role.max_tool_calls else body


def tool_result(body: str, role: Role) -> str:
    """Return the result of a tool call as a UTF-8 string. Raises ``ToolFault`` if the tool fails."""
    return as_utf8(answer_call(body, role.tools))
