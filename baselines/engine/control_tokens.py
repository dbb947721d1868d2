"""Control strings of tokenizers and chat templates, and their neutralization in the contents of messages.

A conversation's structure consists of control strings such as ``<|im_start|>``, ``<end_of_turn>`` or ``[INST]``. If one
of them occurs in the content of a message, a tokenizer makes the same ids of it as of the template's own, so that a
teammate's text could end its turn and open a system message. ``ControlTokens.neutralize`` puts a blank before the last
character (``<|im_start| >``): the text stays readable, and the tokenizer no longer recognizes it. Text without control
strings is not changed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from marft_envs.game.observation import END_THINKING, THINKING

# <|im_start|>, <start_of_turn>, <<SYS>>, </s>; [INST], [/INST], [TOOL_RESULTS]
MARKUP = re.compile(r"<{1,2}[^\s<>]{1,80}>{1,2}|\[/?[A-Z][A-Z_]{1,40}\]")
_HTML = re.compile(r"</?[a-z]+[1-6]?>")
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_SPECIAL_IDS: WeakKeyDictionary[Any, frozenset[int]] = WeakKeyDictionary()


def without_surrogates(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate, which no tokenizer can encode."""
    return text if text.isascii() else _SURROGATE.sub(_REPLACEMENT, text)


class ControlTokens:
    """The control strings of a model.

    Args:
        strings: Control strings.
    """

    def __init__(self, strings: Iterable[str]) -> None:
        self.strings = frozenset(text for text in strings if text.strip())
        self._first = frozenset(text[0] for text in self.strings)
        # longest first: a string that begins with another one is matched as a whole
        ordered = sorted(self.strings, key=lambda text: (-len(text), text))
        self._pattern = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")

    def neutralize(self, text: str) -> str:
        """Return the text without control strings and lone surrogates.

        Args:
            text: The content of a message.

        Returns:
            The text, with a blank before the last character of each control string; a control string of one character
            becomes U+FFFD. A text that contains one only after Unicode normalization (NFKC) is normalized first,
            because many tokenizers normalize.
        """
        text = without_surrogates(text)
        if not self._first.isdisjoint(text):
            text = self._pattern.sub(_split, text)
        if not text.isascii():
            normalized = unicodedata.normalize("NFKC", text)
            if self._pattern.search(normalized):
                text = self._pattern.sub(_split, normalized)
        return text


def _split(match: re.Match[str]) -> str:
    found = match.group()
    return f"{found[:-1]} {found[-1]}" if len(found) > 1 else _REPLACEMENT


def control_strings(tokenizer: Any, source: str, scaffolds: Sequence[Sequence[str]]) -> set[str]:
    """Return the control strings of a tokenizer and of its chat template.

    They are the tokenizer's special tokens; its other added tokens if they look like markup (some tokenizers also add
    runs of blanks and HTML tags, which no template uses: those stay); all markup of the template; and the labels that
    it writes before a message, such as "USER:".

    Args:
        tokenizer: The tokenizer.
        source: The chat template, "" for none.
        scaffolds: What the template writes around the contents of some conversations: of each the text before the
            first content, that between the first two, and so on, and that after the last.
    """
    found = set(tokenizer.all_special_tokens)
    for token in tokenizer.added_tokens_decoder.values():
        text = str(token.content)
        is_markup = MARKUP.fullmatch(text) and (not _HTML.fullmatch(text) or text in (THINKING, END_THINKING))
        if token.special or is_markup:
            found.add(text)
    found.update(MARKUP.findall(source))
    for pieces in scaffolds:
        for piece in pieces:
            found.update(MARKUP.findall(piece))
        found.update(label for piece in pieces[:-1] if (label := _label(piece)))
    return found


def _label(piece: str) -> str:
    """Return the label at the end of the text before a content, such as "USER:"; "" if there is none."""
    lines = [line for line in MARKUP.sub("\n", piece).splitlines() if line.strip()]
    label = lines[-1].strip() if lines else ""
    return label if label.endswith(":") and len(label) > 2 else ""


def special_ids(tokenizer: Any) -> frozenset[int]:
    """Return the ids that no text shows: all special tokens except those around a model's thinking."""
    if tokenizer not in _SPECIAL_IDS:
        added = tokenizer.added_tokens_decoder
        ids = {i for i, token in added.items() if token.special} | set(tokenizer.all_special_ids)
        thinking = {i for i, token in added.items() if token.content in (THINKING, END_THINKING)}
        _SPECIAL_IDS[tokenizer] = frozenset(ids - thinking)
    return _SPECIAL_IDS[tokenizer]
