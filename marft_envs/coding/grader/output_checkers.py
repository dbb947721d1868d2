"""Checkers: comparison of a program's output with the expected output, as strings.

| name | the output is correct if | parameters |
|---|---|---|
| exact | the lines are equal; trailing white space, trailing empty lines and CRLF are ignored | |
| tokens | the words are equal; line breaks and spacing are ignored | |
| numbers | the words of each line are equal, or decimals of the same value: 0.75 and 0.7500 | |
| float | the words of each line are equal; a word written as a float may differ by the tolerance | rel, abs |
| unordered | the lines are the same in any order, each the same number of times | |
| yes_no | as exact, with "yes" and "no" in any case | |
| custom | ``check(input, output, expected)`` in ``code`` returns True, in an isolated process of its own | code |

Numbers have ASCII digits. Nothing here runs code; "custom" runs in the sandbox (``run_tests``). A custom checker that
fails on an output is at fault (not graded), unless it accepts the expected output: then the output is malformed, which
is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from typing import Any

from marft_envs.arguments import expected_one_of

_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d{1,4})?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_WORD = re.compile(r"\S+")
CHECKERS = ("exact", "tokens", "numbers", "float", "unordered", "yes_no")
_YES_NO = frozenset(("yes", "no"))
_MAX_FLOAT_CHARS = 400


@dataclass(frozen=True)
class Checker:
    """How an output is compared with the expected one.

    Attributes:
        name: A name of the table above.
        rel: Relative tolerance of "float".
        abs: Absolute tolerance of "float"; the larger of the two tolerances counts.
        code: Python source of "custom", which defines ``check(input, output, expected)``.
    """

    name: str = "exact"
    rel: float = 1e-6
    abs: float = 1e-6
    code: str = ""

    def __post_init__(self) -> None:
        if self.name not in CHECKERS and self.name != "custom":
            raise ValueError(expected_one_of("checker", self.name, (*CHECKERS, "custom")))
        if (self.name == "custom") != bool(self.code):
            raise ValueError(
                f"checker={self.name!r} with code={self.code!r:.40}: expected code for 'custom' and only for it"
            )
        for name in ("rel", "abs"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
                raise ValueError(f"checker {name}={value!r}: expected a number in [0, 1)")


def as_checker(spec: str | Mapping[str, Any] | Checker | None) -> Checker:
    """Return a checker.

    Args:
        spec: A name, a mapping ``{"type": name, "abs": 1e-9}`` with the parameters of the table above, or a checker.
            None stands for "exact".

    Raises:
        ValueError: There is no such checker, or a parameter is not allowed.
    """
    if spec is None or isinstance(spec, Checker):
        return spec or Checker()
    if isinstance(spec, str):
        return Checker(spec)
    parameters = dict(spec)
    try:
        return Checker(parameters.pop("type"), **parameters)
    except (KeyError, TypeError):
        raise ValueError(f"checker={spec!r}: expected a name, or a mapping with type, rel, abs or code") from None


def is_correct(output: str, expected: str, checker: Checker) -> bool:
    """Return whether an output is correct, for every checker but "custom".

    An output can be as large as the limit of the sandbox. It is divided into no more parts than the expected output
    has, so that the time and the memory of this process are bounded.
    """
    if checker.name == "tokens":
        return _same_tokens(output, expected)
    output, expected = _stripped(output), _stripped(expected)
    if _number_of_lines(output) != _number_of_lines(expected):
        return False
    return _BY_LINES[checker.name](_lines(output), _lines(expected), checker)


def _stripped(text: str) -> str:
    """Return the text with line feeds only, and without white space and empty lines at the end."""
    return text.replace("\r\n", "\n").rstrip()


def _number_of_lines(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def _lines(text: str) -> list[str]:
    """Return the lines without trailing white space."""
    return [line.rstrip() for line in text.split("\n")] if text else []


def _exact(output: list[str], expected: list[str], checker: Checker) -> bool:
    return output == expected


def _same_tokens(output: str, expected: str) -> bool:
    words = (match.group() for match in _WORD.finditer(output))
    return all(word == wanted for word, wanted in zip_longest(words, expected.split()))


def _float(output: list[str], expected: list[str], checker: Checker) -> bool:
    return _by_token(output, expected, lambda word, wanted: _is_close(word, wanted, checker))


def _numbers(output: list[str], expected: list[str], checker: Checker) -> bool:
    return _by_token(output, expected, _is_same_decimal)


def _is_same_decimal(word: str, wanted: str) -> bool:
    """Return whether two words are decimals of exactly the same value."""
    if max(len(word), len(wanted)) > _MAX_FLOAT_CHARS:
        return False
    return all(_FLOAT.fullmatch(one) or _INTEGER.fullmatch(one) for one in (word, wanted)) and (
        Decimal(word) == Decimal(wanted)
    )


def _unordered(output: list[str], expected: list[str], checker: Checker) -> bool:
    return sorted(output) == sorted(expected)


def _yes_no(output: list[str], expected: list[str], checker: Checker) -> bool:
    return _by_token(
        output, expected, lambda word, wanted: wanted.lower() in _YES_NO and word.lower() == wanted.lower()
    )


def _by_token(output: list[str], expected: list[str], accepts: Callable[[str, str], bool]) -> bool:
    """Compare line by line and word by word. accepts(word, wanted): whether two unequal words match."""
    return all(_same_words(line, wanted.split(), accepts) for line, wanted in zip(output, expected, strict=True))


def _same_words(line: str, wanted_words: list[str], accepts: Callable[[str, str], bool]) -> bool:
    words = line.split(None, len(wanted_words))  # one more than wanted, if the line has more
    return len(words) == len(wanted_words) and all(
        word == wanted or accepts(word, wanted) for word, wanted in zip(words, wanted_words, strict=True)
    )


def _is_close(word: str, wanted: str, checker: Checker) -> bool:
    """Return whether a word is within the tolerance of one that is written as a float (not inf or nan)."""
    # float() of a string takes quadratic time in the number of digits, and a program chooses how many it writes.
    if len(word) > _MAX_FLOAT_CHARS or not _FLOAT.fullmatch(wanted):
        return False
    if not (_FLOAT.fullmatch(word) or _INTEGER.fullmatch(word)):
        return False
    return is_close(float(word), float(wanted), checker)


def is_close(actual: float, expected: float, checker: Checker) -> bool:
    """Return whether both are finite and differ by at most max(abs, rel * |expected|)."""
    finite = math.isfinite(actual) and math.isfinite(expected)
    return finite and abs(actual - expected) <= max(checker.abs, checker.rel * abs(expected))


_BY_LINES: dict[str, Callable[[list[str], list[str], Checker], bool]] = {
    "exact": _exact,
    "numbers": _numbers,
    "float": _float,
    "unordered": _unordered,
    "yes_no": _yes_no,
}
