"""Actions before they enter the transcript: their space, repair of strings outside it, and tool calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gymnasium import Space

from marft_envs.game.rounds import Rounds
from marft_envs.game.spaces import ChoiceText, UnicodeText, as_utf8, is_utf8
from marft_envs.task import PublicProblem
from marft_envs.team.role import Role
from marft_envs.team.tools import ToolFault, answer_call, find_call
from marft_envs.transcript import Turn


def action_space(role: Role) -> Space[Any]:
    """Return the space of a role's choices, or of all strings of at most its ``max_chars`` characters."""
    return ChoiceText(role.choices) if role.choices else UnicodeText(role.max_chars)


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


def tool_turns(agent: str, role: Role, text: str, rounds: Rounds, problem: PublicProblem) -> tuple[list[Turn], str]:
    """Run the tool call of a message.

    Args:
        agent: The agent that wrote the message.
        role: Its role.
        text: The message.
        rounds: The present round, with the tool calls and results of the agent's turn so far.
        problem: The problem.

    Returns:
        The call and its result, or the call and a fault ("" for none). No turns if the message has no tool call, or
        the role has no calls left in this turn.
    """
    body = find_call(text)
    calls = sum(turn.kind == "call" for turn in rounds.tool_turns)
    if body is None or calls >= role.max_tool_calls:
        return [], ""
    call = Turn(rounds.number, agent, text, "call")
    try:
        own = {agent: problem.private[agent]} if agent in problem.private else {}
        result = as_utf8(answer_call(body, role.tools, replace(problem, private=own)))
    except ToolFault as fault:
        return [call], f"{agent}: {fault}"
    return [call, Turn(rounds.number, agent, result, "result")], ""
