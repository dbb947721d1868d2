"""Gymnasium spaces of strings: any UTF-8 string up to a length, one of a few choices, and chat messages.

``gymnasium.spaces.Text`` stores its alphabet explicitly, which takes a second and hundreds of megabytes for all of
Unicode. ``UnicodeText`` never lists its alphabet: ``contains`` checks length and encoding, and flattening uses code
points as indices.
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
    """All code points that UTF-8 can encode, as a set that is never stored."""

    def __contains__(self, char: object) -> bool:
        return isinstance(char, str) and len(char) == 1 and not "\ud800" <= char <= "\udfff"

    def __iter__(self) -> Iterator[str]:
        return (char for code in range(sys.maxunicode + 1) if (char := chr(code)) in self)

    def __len__(self) -> int:
        return sys.maxunicode + 1


ALL_CODE_POINTS = _AllCodePoints()


def is_utf8(text: str) -> bool:
    """Return whether UTF-8 can encode ``text``; it cannot if there are lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_utf8(text: str) -> str:
    """Return ``text`` with each lone surrogate replaced by "?"."""
    return text if is_utf8(text) else text.encode("utf-8", "replace").decode("utf-8")


class UnicodeText(spaces.Text):
    """The space of all UTF-8 strings of ``min_length`` to ``max_length`` characters, both inclusive.

    Samples are printable, at most 40 characters long (or ``min_length``), and depend only on the seed.

    Args:
        max_length: The largest number of characters.
        min_length: The smallest number of characters.
        seed: Seeds ``sample``.
    """

    def __init__(self, max_length: int, *, min_length: int = 0, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length, min_length=min_length, charset=_PRINTABLE, seed=seed)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length and is_utf8(x)

    def sample(self, mask: None = None, probability: None = None) -> str:  # type: ignore[override]
        """Return a short printable string.

        Raises:
            ValueError: ``mask`` or ``probability`` is not None; they have no meaning here.
        """
        if mask is not None or probability is not None:
            raise ValueError(f"UnicodeText.sample: got mask={mask!r}, probability={probability!r}, expected None")
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

    __hash__ = None  # type: ignore[assignment]  # like every Gymnasium space: compared by value, so not hashable


class _CodePointList:
    """All characters in code-point order, as a sequence that is never stored: ``characters[i] == chr(i)``."""

    def __getitem__(self, index: int) -> str:
        return chr(index)

    def __len__(self) -> int:
        return sys.maxunicode + 1


class ChoiceText(spaces.Text):
    """The space of a fixed, small set of strings.

    Args:
        choices: The strings.
        seed: Seeds ``sample``.

    Raises:
        ValueError: There are no choices, or one of them is not a string.
    """

    def __init__(self, choices: Sequence[str], *, seed: int | np.random.Generator | None = None) -> None:
        if not choices or not all(isinstance(choice, str) for choice in choices):
            raise ValueError(f"choices={choices!r}: expected at least one string, and only strings")
        self.choices = tuple(choices)
        lengths = [len(choice) for choice in choices]
        alphabet = "".join(sorted(set("".join(choices)))) or " "
        super().__init__(max(max(lengths), 1), min_length=min(lengths), charset=alphabet, seed=seed)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and x in self.choices

    def sample(self, mask: None = None, probability: None = None) -> str:  # type: ignore[override]
        """Return one of the choices, drawn uniformly.

        Raises:
            ValueError: ``mask`` or ``probability`` is not None; they have no meaning here.
        """
        if mask is not None or probability is not None:
            raise ValueError(f"ChoiceText.sample: got mask={mask!r}, probability={probability!r}, expected None")
        return self.choices[int(self.np_random.integers(len(self.choices)))]

    def __repr__(self) -> str:
        return f"ChoiceText({list(self.choices)!r})"

    def __eq__(self, other: object, /) -> bool:
        return isinstance(other, ChoiceText) and self.choices == other.choices

    __hash__ = None  # type: ignore[assignment]


def message_space(max_length: int) -> spaces.Dict:
    """Return the space of observations: ``{"messages": tuple of {"role", "name", "content"}, "reply_prefix": str}``.

    It has neither a key ``observation`` nor ``action_mask``: PettingZoo's ``api_test`` gives both a meaning that does
    not apply to strings.

    Args:
        max_length: The largest number of characters of a message.
    """
    message = spaces.Dict(role=UnicodeText(16, min_length=1), name=UnicodeText(128), content=UnicodeText(max_length))
    return spaces.Dict(messages=spaces.Sequence(message), reply_prefix=UnicodeText(max_length))
