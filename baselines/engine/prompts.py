"""From an observation's messages to the token ids a model reads.

A message is `{"role": "system"|"user"|"assistant", "name": str, "content": str}` (marft_envs/game/observation.py). The user
message named "task" is the problem; user messages with another name were written by other agents. The
observation's reply_prefix is the beginning of the reply; the action continues it.
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
    messages: Sequence[Message], loaded: LoadedModel, reply_prefix: str = "", *, nothing: int | None = None
) -> list[int]:
    """Token ids [T] of the prompt that `messages` make for `loaded`; the reply begins with `reply_prefix`.

    A template that knows names (the tiny model's) gets the messages as they are. Other chat templates know two
    speakers only: neighbouring user messages become one, with `name: text` for what other agents wrote. A model
    without a chat template reads plain text with blank lines. nothing: the id that stands for a prompt without a token,
    where that is no error.
    """
    tokenizer: Any = loaded.tokenizer
    if not messages and nothing is not None:
        return tokenizer(reply_prefix, add_special_tokens=False)["input_ids"] or [nothing]
    _check(messages)
    if tokenizer.chat_template is None:
        ids = tokenizer(plain_text(messages) + reply_prefix)["input_ids"]
    else:
        chat = [dict(message) for message in messages] if loaded.names_in_template else merge_users(messages)
        ids = tokenizer(_chat_text(chat, tokenizer, reply_prefix), add_special_tokens=False)["input_ids"]
    if not ids and nothing is not None:
        return [nothing]
    if not ids:
        raise ValueError(f"messages: no token to start from, expected some text for {loaded.name!r}, got {messages!r}")
    return list(ids)


def _chat_text(chat: Sequence[Mapping[str, str]], tokenizer: Any, reply_prefix: str) -> str:
    """The template's text, its special tokens included: a new reply is opened, or one that begins with the prefix."""
    if not reply_prefix:  # transformers cannot continue an empty message
        return tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    open_reply = [*chat, {"role": "assistant", "content": reply_prefix}]
    text = tokenizer.apply_chat_template(open_reply, tokenize=False, continue_final_message=True)
    if not text.endswith(reply_prefix):  # a template that trims contents
        text += reply_prefix[len(reply_prefix.rstrip()) :]
    return text


def merge_users(messages: Sequence[Message]) -> list[dict[str, str]]:
    """The same conversation for a template of two speakers: neighbouring user messages merged, names in the text."""
    merged: list[dict[str, str]] = []
    for message in messages:
        role, text = message["role"], _signed(message)
        if role == "user" and merged and merged[-1]["role"] == "user":
            merged[-1]["content"] += "\n\n" + text
        else:
            merged.append({"role": role, "content": text})
    return merged


def plain_text(messages: Sequence[Message]) -> str:
    """The conversation as text, a blank line after each message."""
    return "".join(_signed(message) + "\n\n" for message in messages)


def _signed(message: Message) -> str:
    """The content, with the author's name in front where another agent wrote it."""
    by_other = message["role"] == "user" and message.get("name", TASK) != TASK
    return f"{message['name']}: {message['content']}" if by_other else message["content"]


def _check(messages: Sequence[Message]) -> None:
    if not messages:
        raise ValueError("messages: got none, expected at least one message with a role and a content")
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES or not isinstance(message.get("content"), str):
            raise ValueError(
                f"messages[{index}]: got {message!r}, expected a role of {ROLES} and a content of type str"
            )


def truncate_prompt(ids: Sequence[int], limit: int, *, bos_token_id: int | None = None) -> list[int]:
    """At most `limit` ids: the newest (last) ones, with the leading BOS kept where the prompt has one.

    ids [T] -> [min(T, limit)]. What is lost is the oldest text, so a long system message goes first.
    """
    if limit < 1:
        raise ValueError(f"limit: got {limit}, expected at least 1 token")
    if len(ids) <= limit:
        return list(ids)
    if limit > 1 and bos_token_id is not None and ids[0] == bos_token_id:
        return [bos_token_id, *ids[len(ids) - limit + 1 :]]
    return list(ids[len(ids) - limit :])
