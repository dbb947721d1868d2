"""Text as a Gymnasium space: any UTF-8 string up to a length.

``gymnasium.spaces.Text`` wants its alphabet written out; for all of Unicode that is a second and hundreds of megabytes.
``UnicodeText`` has the alphabet of all code points without ever listing it, so ``contains`` is a length check and a
UTF-8 check, and flattening still works (a character's index is its code point).
"""

from __future__ import annotations

import string
import sys
from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np
from gymnasium import spaces

_PRINTABLE = string.ascii_letters + string.digits + string.punctuation + " \n"
_SAMPLE_LENGTH = 40


class _AllCodePoints(Set[str]):
    """Every code point that UTF-8 can encode, as a lazy set."""

    def __contains__(self, char: object) -> bool:
        return isinstance(char, str) and len(char) == 1 and not "\ud800" <= char <= "\udfff"

    def __iter__(self) -> Iterator[str]:
        return (char for code in range(sys.maxunicode + 1) if (char := chr(code)) in self)

    def __len__(self) -> int:
        return sys.maxunicode + 1


ALL_CODE_POINTS = _AllCodePoints()


def is_utf8(text: str) -> bool:
    """False for text with lone surrogates, which no file and no tokenizer can hold."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_utf8(text: str) -> str:
    """The text with "?" in place of each lone surrogate."""
    return text if is_utf8(text) else text.encode("utf-8", "replace").decode("utf-8")


class UnicodeText(spaces.Text):
    """All UTF-8 strings of ``min_length`` to ``max_length`` characters (both bounds inclusive).

    ``sample`` is short and printable (at most 40 characters), and the same for a seed in every process.
    """

    def __init__(self, max_length: int, *, min_length: int = 0, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length, min_length=min_length, charset=_PRINTABLE, seed=seed)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length and is_utf8(x)

    def sample(self, mask: None = None, probability: None = None) -> str:  # type: ignore[override]
        """A short printable string. ``mask=`` and ``probability=`` must be None: they mean nothing here."""
        if mask is not None or probability is not None:
            raise ValueError(
                f"UnicodeText.sample takes no mask: mask={mask!r}, probability={probability!r}, expected None"
            )
        longest = max(self.min_length, min(self.max_length, _SAMPLE_LENGTH))
        length = self.np_random.integers(self.min_length, longest + 1)
        return "".join(_PRINTABLE[i] for i in self.np_random.integers(0, len(_PRINTABLE), size=length))

    @property
    def character_set(self) -> Any:
        return ALL_CODE_POINTS

    def character_index(self, char: str) -> np.int32:
        return np.int32(ord(char))

    @property
    def character_list(self) -> Any:
        return _CodePointList()

    @property
    def characters(self) -> str:
        return "all of Unicode"

    def __repr__(self) -> str:
        return f"UnicodeText({self.min_length}, {self.max_length})"

    def __eq__(self, other: object, /) -> bool:
        return (
            isinstance(other, UnicodeText)
            and self.min_length == other.min_length
            and self.max_length == other.max_length
        )

    __hash__ = None  # type: ignore[assignment]  # like every gymnasium space: equal by bounds, so not hashable


class _CodePointList:
    """``list(all characters)`` in code-point order, without the list: ``chars[i] == chr(i)``."""

    def __getitem__(self, index: int) -> str:
        return chr(index)

    def __len__(self) -> int:
        return sys.maxunicode + 1


class ChoiceText(spaces.Text):
    """The texts of a short list, and no others; ``sample`` draws one of them."""

    def __init__(self, choices: Sequence[str], *, seed: int | np.random.Generator | None = None) -> None:
        if not choices or not all(isinstance(choice, str) for choice in choices):
            raise ValueError(f"choices={choices!r}: expected at least one text")
        self.choices = tuple(choices)
        lengths = [len(choice) for choice in choices]
        alphabet = "".join(sorted(set("".join(choices)))) or " "
        super().__init__(max(max(lengths), 1), min_length=min(lengths), charset=alphabet, seed=seed)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and x in self.choices

    def sample(self, mask: None = None, probability: None = None) -> str:  # type: ignore[override]
        """One of the choices, uniformly; ``mask=`` and ``probability=`` must be None."""
        if mask is not None or probability is not None:
            raise ValueError(
                f"ChoiceText.sample takes no mask: mask={mask!r}, probability={probability!r}, expected None"
            )
        return self.choices[int(self.np_random.integers(len(self.choices)))]

    def __repr__(self) -> str:
        return f"ChoiceText({list(self.choices)!r})"

    def __eq__(self, other: object, /) -> bool:
        return isinstance(other, ChoiceText) and self.choices == other.choices

    __hash__ = None  # type: ignore[assignment]


def message_space(max_length: int) -> spaces.Dict:
    """The space of an observation: ``{"messages": tuple of {"role", "name", "content"}, "reply_prefix": text}``.

    There is no key ``observation`` and no ``action_mask`` on purpose: PettingZoo's ``api_test`` gives both a meaning
    that text cannot have.
    """
    message = spaces.Dict(role=UnicodeText(16, min_length=1), name=UnicodeText(128), content=UnicodeText(max_length))
    return spaces.Dict(messages=spaces.Sequence(message), reply_prefix=UnicodeText(max_length))
