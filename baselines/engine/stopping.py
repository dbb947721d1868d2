"""When an action ends: the end tokens of a model, and stop strings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any


def end_token_ids(causal_lm: Any, tokenizer: Any) -> frozenset[int]:
    """Return the ids of all tokens that end a reply.

    They are the end tokens of the model's generation settings, of its configuration and of the tokenizer. Chat models
    differ in where they name the end of a turn, and many name several tokens: Llama 3, Gemma, Phi-3 and Qwen2.5 list
    them in the generation settings only.

    Args:
        causal_lm: A causal language model of transformers.
        tokenizer: Its tokenizer.
    """
    sources = (getattr(causal_lm, "generation_config", None), causal_lm.config.get_text_config(), tokenizer)
    ids: set[int] = set()
    for source in sources:
        found = getattr(source, "eos_token_id", None)
        if found is not None:
            ids.update(found if isinstance(found, list) else [found])
    return frozenset(ids)


class StopStrings:
    """Finds the token that completes a stop string.

    Only tokens whose text contains the last character of a string can complete it, so that the text of an action is
    decoded for few tokens.

    Args:
        tokenizer: The tokenizer.
        strings: The stop strings; none: nothing is ever found.
    """

    def __init__(self, tokenizer: Any, strings: Sequence[str]) -> None:
        self._tokenizer, self._strings = tokenizer, tuple(strings)
        # A token has at least one byte, so this many tokens before the last one cover a string. One more keeps a blank
        # at the string's beginning, which some decoders remove from the first token.
        self._tail = max((len(s.encode()) for s in self._strings), default=0) + 1
        self._candidates = _containing(tokenizer, frozenset(s[-1] for s in self._strings))

    def completed(self, token_ids: Sequence[int]) -> bool:
        """Return whether the last of some tokens completes a stop string."""
        if not self._strings or (self._candidates is not None and token_ids[-1] not in self._candidates):
            return False
        text = self._tokenizer.decode(token_ids[-self._tail :], clean_up_tokenization_spaces=False)
        return any(string in text for string in self._strings)


@lru_cache(maxsize=8)
def _containing(tokenizer: Any, characters: frozenset[str]) -> frozenset[int] | None:
    """Return the ids of the tokens whose text contains one of some characters; None: any token may complete one.

    A character outside ASCII may be made of several tokens, none of which contains it.
    """
    if not all(character.isascii() for character in characters):
        return None
    texts = tokenizer.batch_decode([[i] for i in range(len(tokenizer))]) if characters else []
    return frozenset(i for i, text in enumerate(texts) if characters & set(text))


def before_stop_strings(text: str, strings: Sequence[str]) -> str:
    """Return a text up to the first stop string in it."""
    return text[: min((at for at in map(text.find, strings) if at >= 0), default=len(text))]
