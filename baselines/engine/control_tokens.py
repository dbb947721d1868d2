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
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary, proxy

from marft_envs.game.observation import END_THINKING, THINKING

# <|im_start|>, <start_of_turn>, <<SYS>>, </s>; [INST], [/INST], [TOOL_RESULTS]
MARKUP = re.compile(r"<{1,2}[^\s<>]{1,80}>{1,2}|\[/?[A-Z][A-Z_]{1,40}\]")
_HTML = re.compile(r"</?[a-z]+[1-6]?>")
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_SENTENCEPIECE_BLANK = "\u2581"
_ATTEMPTS = 8
_SPECIAL_IDS: WeakKeyDictionary[Any, frozenset[int]] = WeakKeyDictionary()


def without_surrogates(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate, which no tokenizer can encode."""
    return text if text.isascii() else _SURROGATE.sub(_REPLACEMENT, text)


class ControlTokens:
    """The control strings of a model.

    Args:
        strings: Control strings.
        headers: Lines that the template writes before a message, such as "### System". They are control strings where
            they begin a line.
        tokenizer: The tokenizer of the model. Text that only its normalization turns into a control string, and text
            that it encodes as a control token all the same, is neutralized, too.
    """

    def __init__(self, strings: Iterable[str], headers: Iterable[str] = (), tokenizer: Any = None) -> None:
        self.strings = frozenset(text for text in strings if text.strip())
        self.headers = frozenset(headers)
        # templates are kept for as long as their tokenizer lives, so they must not keep it alive
        self._tokenizer: Any = None if tokenizer is None else proxy(tokenizer)
        self._normalizer = getattr(getattr(tokenizer, "backend_tokenizer", None), "normalizer", None)
        self._pattern = _pattern(self.strings, self.headers)
        self._normalized_pattern = _pattern(*({self._normalized(t) for t in ts} for ts in (self.strings, self.headers)))
        self._forbidden_ids = self._control_ids()
        # a conversation is encoded anew in each round, and several times if it is too long
        self._neutralized = lru_cache(maxsize=4096)(self._neutralize)

    def neutralize(self, text: str) -> str:
        """Return the text without control strings and lone surrogates.

        Args:
            text: The content of a message.

        Returns:
            The text, with a blank before the last character of each control string; a control string of one character
            becomes U+FFFD. A text that contains one only after normalization (NFKC or the tokenizer's, with U+2581 as
            the blank that SentencePiece takes it for) is normalized first. The tokenizer encodes the result without
            any control token.
        """
        return self._neutralized(without_surrogates(text))

    def _neutralize(self, text: str) -> str:
        text = _split_all(self._pattern, text)
        if not text.isascii():
            normalized = unicodedata.normalize("NFKC", text)
            if self._pattern.search(normalized):
                text = _split_all(self._pattern, normalized)
        if self._normalizer is not None or _SENTENCEPIECE_BLANK in text:
            normalized = self._normalized(text)
            if self._normalized_pattern.search(normalized):
                text = _split_all(self._normalized_pattern, normalized)
        return self._without_control_ids(text)

    def _normalized(self, text: str) -> str:
        """Return the text as the tokenizer normalizes it, with blanks for U+2581 and none added at the beginning."""
        found = text if self._normalizer is None else self._normalizer.normalize_str(text)
        found = found.replace(_SENTENCEPIECE_BLANK, " ")
        return found if text[:1] in (" ", _SENTENCEPIECE_BLANK) else found.removeprefix(" ")

    def _control_ids(self) -> frozenset[int]:
        """Return the ids that no content may have. The one for unknown text is not among them: any text may have it."""
        if self._tokenizer is None:
            return frozenset()
        added = self._tokenizer.added_tokens_decoder.items()
        ids = {i for i, token in added if token.special or str(token.content) in self.strings}
        ids.update(self._tokenizer.all_special_ids)
        blank = {i for i, token in added if not str(token.content).strip()}
        return frozenset(ids - blank - {self._tokenizer.unk_token_id})

    def _without_control_ids(self, text: str) -> str:
        """Return the text without what the tokenizer encodes as control tokens."""
        for attempt in range(_ATTEMPTS):
            spans = self._control_spans(text)
            for start, end in sorted(spans, reverse=True):
                # a tokenizer that ignores blanks finds the token again: it is then replaced
                part = _split(text[start:end]) if attempt + 1 < _ATTEMPTS else _REPLACEMENT
                text = text[:start] + part + text[end:]
            if not spans:
                break
        return text

    def _control_spans(self, text: str) -> set[tuple[int, int]]:
        """Return the beginning and end of each control token in the text."""
        if not text or not self._forbidden_ids:
            return set()
        if not self._tokenizer.is_fast:  # it has no offsets, but its control tokens are matched literally
            ids = self._forbidden_ids.intersection(self._tokenizer(text, add_special_tokens=False)["input_ids"])
            tokens = [str(token) for token in self._tokenizer.convert_ids_to_tokens(sorted(ids))]
            return {match.span() for match in _pattern(tokens).finditer(text)}
        encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        pairs = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        return {(start, end) for i, (start, end) in pairs if i in self._forbidden_ids and start < end}


def _pattern(strings: Iterable[str], headers: Iterable[str] = ()) -> re.Pattern[str]:
    """Return the pattern of control strings, and of headers at the beginning of a line."""
    # shortest first: breaking a string also breaks the longer ones that begin with it
    anywhere = [re.escape(text) for text in sorted(strings, key=lambda text: (len(text), text)) if text]
    # blanks before a header: a template may strip a content
    lines = [rf"^[^\S\n]*{re.escape(text)}(?!\w)" for text in sorted(headers) if text]
    return re.compile("|".join([*anywhere, *lines]) or r"(?!)", re.MULTILINE)


def _split_all(pattern: re.Pattern[str], text: str) -> str:
    """Break all control strings, also those within one that was broken at another place."""
    for _ in range(_ATTEMPTS):
        broken = pattern.sub(lambda match: _split(match.group()), text)
        if broken == text:
            break
        text = broken
    return text


def _split(found: str) -> str:
    return f"{found[:-1]} {found[-1]}" if len(found) > 1 else _REPLACEMENT


def control_tokens(tokenizer: Any, source: str = "", scaffolds: Sequence[Sequence[str]] = ()) -> ControlTokens:
    """Return the control strings of a tokenizer and of its chat template, ready to be neutralized.

    Args:
        tokenizer: The tokenizer.
        source: The chat template, "" for none.
        scaffolds: What the template writes around the contents of some conversations: of each the text before the
            first content, that between the first two, and so on, and that after the last.
    """
    headers = {header for pieces in scaffolds for i, piece in enumerate(pieces[:-1]) if (header := _header(piece, i))}
    return ControlTokens(control_strings(tokenizer, source, scaffolds), headers, tokenizer)


def control_strings(tokenizer: Any, source: str, scaffolds: Sequence[Sequence[str]]) -> set[str]:
    """Return the control strings of a tokenizer and of its chat template.

    They are the tokenizer's special tokens; its other added tokens if they look like markup (some tokenizers also add
    runs of blanks and HTML tags, which no template uses: those stay); all markup of the template; and the labels that
    it writes before a message, such as "USER:".

    Args:
        tokenizer, source, scaffolds: As in ``control_tokens``.
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


def _header(piece: str, index: int) -> str:
    """Return the line before a content, such as "### System"; "" if there is none or if it has markup.

    Args:
        piece: The text before a content.
        index: Its number in the conversation. The text of number 0 begins a line.
    """
    lines = piece.rstrip().splitlines()
    line = lines[-1].strip() if lines and (len(lines) > 1 or index == 0) else ""
    return "" if len(line) < 3 or MARKUP.search(line) else line


def special_ids(tokenizer: Any) -> frozenset[int]:
    """Return the ids that no text shows: all special tokens except those around a model's thinking."""
    if tokenizer not in _SPECIAL_IDS:
        added = tokenizer.added_tokens_decoder
        ids = {i for i, token in added.items() if token.special} | set(tokenizer.all_special_ids)
        thinking = {i for i, token in added.items() if token.content in (THINKING, END_THINKING)}
        _SPECIAL_IDS[tokenizer] = frozenset(ids - thinking)
    return _SPECIAL_IDS[tokenizer]
