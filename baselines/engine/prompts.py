"""Prompts: the messages of an observation as the token ids that a model reads.

A message is ``{"role": "system" | "user" | "assistant", "name": str, "content": str}``, see
marft_envs/game/observation.py. The user message named "task" is the problem. User messages with another name were
written by other agents. The observation's ``reply_prefix`` is the beginning of the reply, which the action continues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baselines.models.load import LoadedModel

Message = Mapping[str, str]
ROLES = ("system", "user", "assistant")
TASK = "task"


def render(
    messages: Sequence[Message], loaded: LoadedModel, reply_prefix: str = "", *, empty_id: int | None = None
) -> list[int]:
    """Return the prompt of a conversation as token ids [T].

    A chat template that reads names (the tiny models') gets the messages as they are. Most templates require that user
    and assistant alternate, so neighbouring user messages are merged, with "name: text" for those of other agents. A
    model without a chat template reads the contents with a blank line after each.

    Args:
        messages: The messages of an observation.
        loaded: The model that reads the prompt.
        reply_prefix: Beginning of the reply.
        empty_id: The only id of a prompt that would have no token. None makes such a prompt an error.

    Raises:
        ValueError: A message has no valid role or content, or the prompt has no token and ``empty_id`` is None.
    """
    tokenizer: Any = loaded.tokenizer
    if not messages and empty_id is not None:
        return tokenizer(reply_prefix, add_special_tokens=False)["input_ids"] or [empty_id]
    _check(messages)
    if tokenizer.chat_template is None:
        ids = tokenizer(plain_text(messages) + reply_prefix)["input_ids"]
    else:
        chat = [dict(message) for message in messages] if loaded.names_in_template else merge_users(messages)
        ids = tokenizer(_chat_text(chat, tokenizer, reply_prefix), add_special_tokens=False)["input_ids"]
    if not ids and empty_id is not None:
        return [empty_id]
    if not ids:
        raise ValueError(
            f"messages: the prompt of {loaded.name!r} has no token to start from; expected some text, got {messages!r}"
        )
    return list(ids)


def _chat_text(chat: Sequence[Mapping[str, str]], tokenizer: Any, reply_prefix: str) -> str:
    """Return the template's text, special tokens included, with an open reply that begins with the prefix."""
    if not reply_prefix:  # transformers refuses to continue an empty message
        return tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    open_reply = [*chat, {"role": "assistant", "content": reply_prefix}]
    text = tokenizer.apply_chat_template(open_reply, tokenize=False, continue_final_message=True)
    if not text.endswith(reply_prefix):  # the template strips contents: append the white space again
        text += reply_prefix[len(reply_prefix.rstrip()) :]
    return text


def merge_users(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Merge neighbouring user messages, for chat templates that require user and assistant to alternate.

    Args:
        messages: The messages of an observation.

    Returns:
        Messages without names. The contents of other agents begin with "name: ".
    """
    merged: list[dict[str, str]] = []
    for message in messages:
        role, text = message["role"], _with_name(message)
        if role == "user" and merged and merged[-1]["role"] == "user":
            merged[-1]["content"] += "\n\n" + text
        else:
            merged.append({"role": role, "content": text})
    return merged


def plain_text(messages: Sequence[Message]) -> str:
    """Return the conversation as plain text with a blank line after each message."""
    return "".join(_with_name(message) + "\n\n" for message in messages)


def _with_name(message: Message) -> str:
    """Return the content, preceded by the author's name if another agent wrote it."""
    by_other = message["role"] == "user" and message.get("name", TASK) != TASK
    return f"{message['name']}: {message['content']}" if by_other else message["content"]


def _check(messages: Sequence[Message]) -> None:
    if not messages:
        raise ValueError("messages: got none, expected at least one message with a role and a content")
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES or not isinstance(message.get("content"), str):
            raise ValueError(
                f"messages[{index}]: got {message!r}, expected a role in {ROLES} and a content of type str"
            )


def truncate_prompt(ids: Sequence[int], limit: int, *, bos_token_id: int | None = None) -> list[int]:
    """Truncate a prompt from the front, so that the newest text remains.

    Args:
        ids: Token ids [T].
        limit: Largest number of ids to return.
        bos_token_id: The tokenizer's BOS id. If the prompt begins with it, it stays in front.

    Returns:
        Token ids [min(T, limit)].
    """
    if limit < 1:
        raise ValueError(f"limit={limit}: expected at least 1 token")
    if len(ids) <= limit:
        return list(ids)
    if limit > 1 and bos_token_id is not None and ids[0] == bos_token_id:
        return [bos_token_id, *ids[len(ids) - limit + 1 :]]
    return list(ids[len(ids) - limit :])
