"""Replies: from generated token ids to the text that the environment receives, and back for scripted replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baselines.engine.control_tokens import special_ids
from marft_envs.game.observation import END_THINKING, THINKING

_TAIL = 8  # ids of the prompt to decode together with the action
_INCOMPLETE = "\ufffd"  # what decoders make of a part of a character


def action_text(tokenizer: Any, prompt: Sequence[int], action: Sequence[int]) -> str:
    """Return the text that an action adds to its prompt, without special tokens.

    The end of the prompt is decoded together with the action, because SentencePiece decoders remove the blank before
    the first word of what they decode.

    Args:
        tokenizer: The tokenizer of the model.
        prompt: Token ids of the prompt.
        action: Token ids of the action.
    """
    hidden = special_ids(tokenizer)
    before = [i for i in prompt[-_TAIL:] if i not in hidden]
    ids = [i for i in action if i not in hidden]
    head, whole = _decode(tokenizer, before), _decode(tokenizer, before + ids)
    if whole.startswith(head):
        return whole[len(head) :]
    if head.endswith(_INCOMPLETE):  # the prompt ends within a character, which the action completes
        return whole[len(head.rstrip(_INCOMPLETE)) :]
    # An incomplete character at the end of the action changes how the prompt's last bytes are decoded (byte fallback):
    # decode after a letter instead.
    letter = tokenizer("a", add_special_tokens=False)["input_ids"]
    return _decode(tokenizer, letter + ids)[len(_decode(tokenizer, letter)) :]


def _decode(tokenizer: Any, ids: list[int]) -> str:
    return tokenizer.decode(ids, clean_up_tokenization_spaces=False)


def visible_text(text: str) -> str:
    """Return a reply without its thinking: ``<think>...</think>``, also if it is not closed.

    Text before a ``</think>`` that nothing opens is thinking, too. White space after a part that is left out is removed
    if there is some before it, or nothing. A reply without thinking is not changed.
    """
    while True:
        opened, closed = text.find(THINKING), text.find(END_THINKING)
        if opened == closed == -1:
            return text
        if 0 <= closed < opened or opened < 0:  # nothing opens it: all text before it is thinking
            opened = 0
        else:
            closed = text.find(END_THINKING, opened)
        before, after = text[:opened], text[closed + len(END_THINKING) :] if closed >= 0 else ""
        text = before + (after.lstrip() if not before or before[-1].isspace() else after)


def open_thinking(text: str) -> str:
    """Return the end of a text from a ``<think>`` that is not closed; "" if there is none."""
    opened = text.rfind(THINKING)
    return text[opened:] if opened >= 0 and END_THINKING not in text[opened:] else ""
