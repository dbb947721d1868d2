"""Where activated adapters begin: the invocation tokens of a tokenizer, and their position in a prompt.

Source: Li et al. 2025, serving with Activated LoRA, https://arxiv.org/abs/2512.17910.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from baselines.engine.chat_template import ChatSettings, template_of

if TYPE_CHECKING:
    from baselines.models.load import LoadedModel


def invocation_ids(loaded: LoadedModel, text: str, settings: ChatSettings) -> tuple[int, ...]:
    """Return the token ids that activate adapters.

    Args:
        loaded: The base model with its tokenizer.
        text: ``LoraSettings.invocation``; "" for the header of the reply in the chat template. Those ids are what all
            prompts have in common after the last message, without white space at the end: the header before a
            ``reply_prefix`` may lack an empty thinking part, and white space may be one token with what follows it.
        settings: Settings of the chat template.

    Raises:
        ValueError: There is no text, and no chat template that writes a header.
    """
    tokenizer = loaded.tokenizer

    def encode(part: str) -> list[int]:
        return list(tokenizer(part, add_special_tokens=False)["input_ids"])

    if text:
        return tuple(encode(text))
    found: list[int] = []
    if tokenizer.chat_template is not None:
        closed, *opened = map(encode, template_of(tokenizer, loaded.name, settings).reply_openings())
        start = _common([closed, opened[0]])
        found = opened[0][start:][: _common([ids[start:] for ids in opened])]
        while found and not tokenizer.decode(found[-1:]).strip():
            found.pop()
    if not found:
        raise ValueError(
            f"lora.activated: model {loaded.name!r} has no chat template that writes a header before a reply; expected "
            'lora.invocation = "...", a text that occurs near the end of every prompt'
        )
    return tuple(found)


def base_tokens(prompt: Sequence[int], invocation: Sequence[int]) -> int:
    """Return how many first tokens of a prompt the base alone reads: those before the last invocation.

    Args:
        prompt: Token ids of the prompt.
        invocation: Token ids that activate an adapter; none if it is always active, which makes the number 0.

    Raises:
        ValueError: The prompt does not contain the invocation.
    """
    if not invocation:
        return 0
    wanted = tuple(invocation)
    for start in range(len(prompt) - len(wanted), -1, -1):
        if tuple(prompt[start : start + len(wanted)]) == wanted:
            return start
    raise ValueError(
        f"lora.activated: a prompt that ends in the token ids {list(prompt[-8:])} does not contain the invocation "
        f"tokens {list(wanted)}; expected lora.invocation = a text that occurs in every prompt, as tokens of its own"
    )


def _common(sequences: Sequence[Sequence[int]]) -> int:
    """Return how many first elements all sequences have in common."""
    columns = enumerate(zip(*sequences, strict=False))
    return next((i for i, column in columns if len(set(column)) > 1), min(map(len, sequences)))
