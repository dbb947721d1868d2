"""Conversations as a chat template can express them: merged turns, without names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baselines.engine.message_window import TASK, Message


@dataclass(frozen=True)
class Abilities:
    """What a chat template can express.

    Attributes:
        system: A system message.
        system_alone: A conversation of a system message only.
        empty_system: Content of the system message for conversations without one, where the template would otherwise
            write one of its own; None if it writes none.
        assistant_first: A conversation that begins with an assistant message.
        assistant_again: Several assistant messages in a row, and a reply after one.
    """

    system: bool
    system_alone: bool
    empty_system: str | None
    assistant_first: bool
    assistant_again: bool


def arrange(messages: Sequence[Message], abilities: Abilities) -> list[dict[str, str]]:
    """Return the conversation in the turns that a template can express.

    Neighbouring user messages become one turn, in which those of other agents begin with "name: ". What the template
    cannot express becomes part of a user turn: the system message, if there is no such role, begins the first one.
    Where user and assistant have to alternate, neighbouring assistant messages are merged, and an empty user turn is
    added before a conversation that begins with an assistant message and after one that ends with it. An agent's own
    messages stay assistant turns in their place.

    Args:
        messages: The messages of an observation.
        abilities: What the template can express.

    Returns:
        Turns with a role and a content.
    """
    first = next((i for i, m in enumerate(messages) if m["role"] != "system"), len(messages))
    system = "\n\n".join(m["content"] for m in messages[:first])
    turns: list[dict[str, str]] = []
    if first and not abilities.system:
        turns.append({"role": "user", "content": system})
    for message in messages[first:]:
        role = "assistant" if message["role"] == "assistant" else "user"
        merge = turns and turns[-1]["role"] == role and (role == "user" or not abilities.assistant_again)
        if merge:
            turns[-1]["content"] += "\n\n" + with_name(message)
        else:
            turns.append({"role": role, "content": with_name(message)})
    if turns and turns[0]["role"] == "assistant" and not abilities.assistant_first:
        turns.insert(0, {"role": "user", "content": ""})
    ends_open = turns[-1]["role"] == "assistant" and not abilities.assistant_again if turns else False
    if ends_open or (not turns and not abilities.system_alone):
        turns.append({"role": "user", "content": ""})
    if abilities.system and (first or abilities.empty_system is not None):
        turns.insert(0, {"role": "system", "content": system if first else abilities.empty_system or ""})
    return turns


def plain_text(messages: Sequence[Message]) -> str:
    """Return the conversation as plain text with a blank line after each message."""
    return "".join(with_name(message) + "\n\n" for message in messages)


def with_name(message: Mapping[str, str]) -> str:
    """Return the content, preceded by the author's name if another agent wrote it."""
    by_other = message["role"] == "user" and message.get("name", TASK) != TASK
    return f"{message['name']}: {message['content']}" if by_other else message["content"]
