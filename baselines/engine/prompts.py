"""Prompts: the messages of an observation as the token ids that a model reads.

A message is ``{"role": "system" | "user" | "assistant", "name": str, "content": str}``, see
marft_envs/game/observation.py. The user message named "task" is the problem. User messages with another name were
written by other agents. The observation's ``reply_prefix`` is the beginning of the reply, which the action continues.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from baselines.engine.chat_template import ChatSettings, template_of
from baselines.engine.control_tokens import ControlTokens, control_tokens, without_surrogates
from baselines.engine.conversation import plain_text
from baselines.engine.message_window import Message, fit
from baselines.engine.replies import open_thinking
from marft_envs.game.observation import THINKING

if TYPE_CHECKING:
    from baselines.models.load import LoadedModel

ROLES = ("system", "user", "assistant")
DEFAULTS = ChatSettings()
_PLAIN: WeakKeyDictionary[Any, ControlTokens] = WeakKeyDictionary()
_WARNED: WeakSet[Any] = WeakSet()  # tokenizers whose unknown words have been reported
log = logging.getLogger("baselines")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of one turn.

    Attributes:
        ids: Token ids.
        dropped_messages: Number of messages that were left out, because the prompt would have been too long.
        thinking: The end of the prompt from a ``<think>`` that it opens; "" if the reply does not begin with thinking.
    """

    ids: list[int]
    dropped_messages: int
    thinking: str


def make_prompt(
    observation: Mapping[str, Any],
    loaded: LoadedModel,
    limit: int,
    *,
    empty_id: int | None = None,
    settings: ChatSettings = DEFAULTS,
) -> Prompt:
    """Return the prompt of an observation with at most ``limit`` tokens.

    A warning is logged for the first prompt of a tokenizer with words that it does not know.

    Args:
        observation: ``messages`` and ``reply_prefix``, as the environment returns them.
        loaded: The model that reads the prompt.
        limit: Largest number of tokens. Of a longer conversation the oldest messages are left out (``fit``).
        empty_id: As in ``render``.
        settings: Date and thinking of the chat template.

    Raises:
        ValueError: As ``render`` raises it.
        RunError: The prompt is too long, see ``fit``.
    """
    messages, prefix = observation["messages"], observation["reply_prefix"]
    ends: list[str] = []

    def encode(some: Sequence[Message]) -> list[int]:
        text, ids = _encoded(some, loaded, prefix, empty_id, settings)
        ends.append(text)
        return ids

    ids, dropped = fit(messages, limit, encode, loaded.name)
    _warn_of_unknown_words(ids, ends[-1], loaded)
    thinking = open_thinking(prefix)
    if not prefix and loaded.tokenizer.chat_template is not None and ends[-1].rstrip().endswith(THINKING):
        thinking = open_thinking(ends[-1])
    return Prompt(ids, dropped, thinking)


def render(
    messages: Sequence[Message],
    loaded: LoadedModel,
    reply_prefix: str = "",
    *,
    empty_id: int | None = None,
    settings: ChatSettings = DEFAULTS,
) -> list[int]:
    """Return the prompt of a conversation as token ids [T].

    A chat template that reads names (the tiny models') gets the messages as they are; for another one they are arranged
    in the turns that it can express (``conversation.arrange``). A model without a chat template reads the contents with
    a blank line after each. Control tokens in contents stay text (``control_tokens.py``).

    Args:
        messages: The messages of an observation.
        loaded: The model that reads the prompt.
        reply_prefix: Beginning of the reply.
        empty_id: The only id of a prompt that would have no token. None makes such a prompt an error.
        settings: Date and thinking of the chat template.

    Raises:
        ValueError: A message has no valid role or content, the prompt has no token and ``empty_id`` is None, or the
            chat template refuses the conversation.
    """
    return _encoded(messages, loaded, reply_prefix, empty_id, settings)[1]


def _encoded(
    messages: Sequence[Message], loaded: LoadedModel, prefix: str, empty_id: int | None, settings: ChatSettings
) -> tuple[str, list[int]]:
    """Return the prompt as text and as token ids."""
    tokenizer: Any = loaded.tokenizer
    if not messages and empty_id is not None:
        text = without_surrogates(prefix)
        return text, tokenizer(text, add_special_tokens=False)["input_ids"] or [empty_id]
    _check(messages)
    if tokenizer.chat_template is None:
        text = _plain_controls(tokenizer).neutralize(plain_text(messages)) + without_surrogates(prefix)
        ids = tokenizer(text)["input_ids"]
    else:
        template = template_of(tokenizer, loaded.name, settings)
        text = template.text(messages, prefix, by_name=loaded.names_in_template)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    if not ids and empty_id is None:
        raise ValueError(
            f"messages: the prompt of {loaded.name!r} has no token to start from; expected some text, got {messages!r}"
        )
    return text, list(ids) or [empty_id]  # type: ignore[list-item]


def _warn_of_unknown_words(ids: Sequence[int], text: str, loaded: LoadedModel) -> None:
    """Log a warning, once for a tokenizer, if a prompt has words or characters that the tokenizer does not know.

    Some tokenizers without an unknown token name their end token as one, which a prompt may contain.
    """
    tokenizer: Any = loaded.tokenizer
    unknown = tokenizer.unk_token_id
    if unknown is None or unknown in (tokenizer.eos_token_id, tokenizer.bos_token_id, tokenizer.pad_token_id):
        return
    count = ids.count(unknown)
    if count and tokenizer not in _WARNED:
        _WARNED.add(tokenizer)
        log.warning(
            "model %r does not know %d of the %d tokens of the prompt %.60r and reads them as %s: expected a problem "
            "that its tokenizer can express, or another model",
            loaded.name, count, len(ids), text, tokenizer.unk_token,
        )  # fmt: skip


def reply_ids(text: str, loaded: LoadedModel) -> list[int]:
    """Return the token ids of a reply that is given as text. Control tokens in it stay text."""
    tokenizer: Any = loaded.tokenizer
    known = tokenizer.chat_template is not None
    controls = template_of(tokenizer, loaded.name, DEFAULTS).controls if known else _plain_controls(tokenizer)
    return list(tokenizer(controls.neutralize(text), add_special_tokens=False)["input_ids"])


def _plain_controls(tokenizer: Any) -> ControlTokens:
    """Return the control strings of a tokenizer without a chat template."""
    if tokenizer not in _PLAIN:
        _PLAIN[tokenizer] = control_tokens(tokenizer)
    return _PLAIN[tokenizer]


def _check(messages: Sequence[Message]) -> None:
    if not messages:
        raise ValueError("messages: got none, expected at least one message with a role and a content")
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES or not isinstance(message.get("content"), str):
            raise ValueError(
                f"messages[{index}]: got {message!r}, expected a role in {ROLES} and a content of type str"
            )
