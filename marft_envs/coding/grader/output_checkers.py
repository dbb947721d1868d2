"""Is an output right? Named checkers over text; nothing here runs anything, except "custom", which the sandbox runs.

| name | right when | parameters |
|---|---|---|
| exact | the lines are equal, trailing white space, trailing empty lines and CRLF apart | |
| tokens | the words are equal, line ends and spacing apart | |
| float | line by line the words are equal; a word written as a float may differ by the tolerance | rel, abs |
| unordered | the lines are the same, in any order, each as often | |
| yes_no | as exact, "yes" and "no" in any case | |
| custom | ``check(input, output, expected)`` of ``code`` returns True, in a locked process of its own | code |

A "custom" checker that fails on an output is at fault (not graded) unless it accepts the expected one: then it cannot
read the output, which is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d{1,4})?")
_YES_NO = frozenset(("yes", "no"))
_MOST_FLOAT_CHARS = 400


@dataclass(frozen=True)
class Checker:
    """name: one of the table. rel, abs: tolerances of "float". code: of "custom"."""

    name: str = "exact"
    rel: float = 1e-6
    abs: float = 1e-6
    code: str = ""

    def __post_init__(self) -> None:
        if self.name not in CHECKERS and self.name != "custom":
            raise ValueError(f"checker={self.name!r}: expected one of {', '.join((*CHECKERS, 'custom'))}")
        if (self.name == "custom") != bool(self.code):
            raise ValueError(f"checker={self.name!r} with code={self.code!r:.40}: only 'custom' has code, and needs it")
        for name in ("rel", "abs"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
                raise ValueError(f"checker {name}={value!r}: expected a number from 0 up to, not including, 1")


def as_checker(spec: str | Mapping[str, Any] | Checker | None) -> Checker:
    """A checker from its name, or from ``{"type": name, parameters}``; None is "exact"."""
    if spec is None or isinstance(spec, Checker):
        return spec or Checker()
    if isinstance(spec, str):
        return Checker(spec)
    parameters = dict(spec)
    try:
        return Checker(parameters.pop("type"), **parameters)
    except (KeyError, TypeError):
        raise ValueError(f"checker={spec!r}: expected a name, or a mapping with type, rel, abs or code") from None


def is_right(output: str, expected: str, checker: Checker) -> bool:
    """Whether a text is right; "custom" is not decided here."""
    return CHECKERS[checker.name](lines_of(output), lines_of(expected), checker)


def lines_of(text: str) -> list[str]:
    """Lines without trailing white space and without empty lines at the end."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _exact(output: list[str], expected: list[str], checker: Checker) -> bool:
    return output == expected


def _tokens(output: list[str], expected: list[str], checker: Checker) -> bool:
    return " ".join(output).split() == " ".join(expected).split()


def _float(output: list[str], expected: list[str], checker: Checker) -> bool:
    return _by_token(output, expected, lambda mine, theirs: _is_close(mine, theirs, checker))


def _unordered(output: list[str], expected: list[str], checker: Checker) -> bool:
    return sorted(output) == sorted(expected)


def _yes_no(output: list[str], expected: list[str], checker: Checker) -> bool:
    return _by_token(
        output, expected, lambda mine, theirs: theirs.lower() in _YES_NO and mine.lower() == theirs.lower()
    )


def _by_token(output: list[str], expected: list[str], also_right: Callable[[str, str], bool]) -> bool:
    """Equal line by line and word by word, or right for another reason."""
    pairs = [(line.split(), wanted.split()) for line, wanted in zip(output, expected, strict=False)]
    return len(output) == len(expected) and all(
        len(line) == len(wanted)
        and all(mine == theirs or also_right(mine, theirs) for mine, theirs in zip(line, wanted, strict=True))
        for line, wanted in pairs
    )


def _is_close(mine: str, theirs: str, checker: Checker) -> bool:
    """Within the tolerance of a word that is written as a float; never for inf and nan."""
    if len(mine) > _MOST_FLOAT_CHARS or not _FLOAT.fullmatch(theirs):
        return False
    if not (_FLOAT.fullmatch(mine) or re.fullmatch(r"[+-]?\d+", mine)):
        return False
    return close(float(mine), float(theirs), checker)


def close(mine: float, theirs: float, checker: Checker) -> bool:
    """Both finite, and within rel of the expected number's size or within abs."""
    finite = math.isfinite(mine) and math.isfinite(theirs)
    return finite and abs(mine - theirs) <= max(checker.abs, checker.rel * abs(theirs))


CHECKERS: dict[str, Callable[[list[str], list[str], Checker], bool]] = {
    "exact": _exact,
    "tokens": _tokens,
    "float": _float,
    "unordered": _unordered,
    "yes_no": _yes_no,
}
