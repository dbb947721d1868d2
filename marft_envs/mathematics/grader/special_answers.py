"""Answers that are not expressions: choices, words, times, ratios and numerals in a base.

Each ``read_`` function takes a normalized string and returns None if it is not of its form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from marft_envs.mathematics.grader.normalization import unwrap_text
from marft_envs.mathematics.grader.number import parse_number

_CHOICE = re.compile(
    r"(?:\(([A-Ja-j])\)|\\text\{\s?\(?([A-Ja-j])\)?[.:]?\s?\}|([A-J])(?=[).:]|$))(?:[).:]|(?=\s|\\|$))\s?(.*)",
    re.DOTALL,
)
_ANOTHER_CHOICE = re.compile(
    r"\([A-J]\)|^\s?(?:\\text\{\s?)?(?:(?:or|and|not|[,/&(]|(?:is|are|was) (?:not|wrong|false|incorrect))(?![A-Za-z])"
    r"|[A-J](?=\s?(?:[).:,}]|$)))",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(\d{1,2})(?::([0-5]\d)(?::([0-5]\d))?(?:\s?\(?\s?([aApP])\.?\s?[mM]\.?\s?\)?)?|\s?([aApP])\.?\s?[mM]\.?)"
)
_RATIO = re.compile(r"[^:]{1,200}(?::[^:]{1,200})+")
_TO = re.compile(r"\s(?:to|is to)\s|\s?\\colon\s?")
_NUMERAL = re.compile(r"(-?[0-9A-Za-z]+(?:\.[0-9A-Za-z]+)?)\s?_\s?(?:\{\s?(\w+)\s?\}|(\d+))")
_GROUPED_DIGITS = re.compile(r"^(-?)\(([0-9A-Za-z.]+)\)(?=\s?_)")
_BASE_WORDS = re.compile(r"(-?[0-9A-Fa-f.]+)\s?\(?\s?(?:in )?base[ -](\w+)\s?\)?")
_BASE_NAMES = "two three four five six seven eight nine ten"
_BASES = {w: str(i) for i, w in enumerate(_BASE_NAMES.split(), 2)} | {"sixteen": "16"}
_NOTHING_WORDS = "emptyset varnothing ∅ {} emptyset none nosolution nosolutions norealsolution norealsolutions"
_NOTHING = frozenset(_NOTHING_WORDS.split())
_UNDEFINED = frozenset(["undefined", "dne", "doesnotexist", "isundefined"])
_WORD = re.compile(r"[^\W\d_]{2,}")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_ARTICLE = re.compile(r"^(?:the|an?)\s+(?=\w{2})")
_DROP = re.compile(r"[\s.,;:!?'\"’“”()\[\]-]+")


@dataclass(frozen=True, slots=True)
class Numeral:
    """A numeral in a base.

    Attributes:
        digits: The digits in upper case, with a minus sign if negative, without leading zeros.
        base: The base as a decimal string.
    """

    digits: str
    base: str


def read_choice(text: str) -> tuple[str, str] | None:
    """Read a choice: C, (C), C. or (C) 12.

    Returns:
        (letter in upper case, text of the option, possibly ""). A lower-case letter is a choice only in parentheses or
        ``\\text``; elsewhere it is a variable.
    """
    match = _CHOICE.fullmatch(text)
    if match is None or _ANOTHER_CHOICE.search(match[4]):
        return None
    return (match[1] or match[2] or match[3]).upper(), match[4].strip()


def read_time(text: str) -> tuple[int, int, int, str] | None:
    """Read a time of day: 3:30, 3:30:15, 3:30 p.m. or 9 a.m.

    Returns:
        (hour, minute, second, half of the day: "a", "p" or "" if not stated).
    """
    match = _TIME.fullmatch(unwrap_text(text).replace("  ", " ").strip())
    if match is None or int(match[1]) > 24:
        return None
    return int(match[1]), int(match[2] or 0), int(match[3] or 0), (match[4] or match[5] or "").lower()


def same_time(a: tuple[int, int, int, str], b: tuple[int, int, int, str]) -> bool:
    """Return whether two times are equal: 3:30 p.m. equals 3:30 and 15:30, and differs from 3:30 a.m."""
    if a[3] and b[3]:
        return a == b
    if a[:3] == b[:3]:
        return True
    with_half, without = (a, b) if a[3] else (b, a)
    return with_half[3] == "p" and (with_half[0] % 12 + 12, *with_half[1:3]) == without[:3]


def read_ratio(text: str) -> list[str] | None:
    """Read the terms of a ratio: 2:3, 2 : 3 : 4 or 2 to 3."""
    text = _TO.sub(":", unwrap_text(text).replace("  ", " "))
    if not _RATIO.fullmatch(text) or "=" in text:
        return None
    return [part.strip() for part in text.split(":")]


def same_ratio(a: list[str], b: list[str]) -> bool | None:
    """Return whether two ratios have the same value; None if a term is not a number."""
    numbers = [[parse_number(term) for term in side] for side in (a, b)]
    if any(n is None for side in numbers for n in side):
        return None
    left, right = ([n.value for n in side if n is not None] for side in numbers)
    if len(left) != len(right) or not left[0] or not right[0]:
        return False
    return [x / left[0] for x in left] == [x / right[0] for x in right]


def ratio_value(terms: list[str]) -> Fraction | None:
    """Return the value of a ratio of two numbers, 2/3 for 2:3; None for any other ratio."""
    numbers = [parse_number(term) for term in terms]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None or not numbers[1].value:
        return None
    return numbers[0].value / numbers[1].value


def read_numeral(text: str) -> Numeral | None:
    """Read a numeral in a base: 1010_2, 1010_{2}, 1010_{two} or 1010 base 2."""
    plain = " ".join(unwrap_text(text.replace(r"_\text", "_")).split())
    plain = _GROUPED_DIGITS.sub(r"\1\2", plain)
    match = _NUMERAL.fullmatch(plain) or _BASE_WORDS.fullmatch(plain)
    if match is None:
        return None
    base = next(group for group in match.groups()[1:] if group)
    base = _BASES.get(base.casefold(), base)
    if not base.isdecimal() or not 2 <= int(base[:3]) <= 36 or len(base) > 2:
        return None
    if not any(c.isdigit() for c in match[1]) and not _all_digits(match[1], int(base)):
        return None
    sign, digits = ("-", match[1][1:]) if match[1].startswith("-") else ("", match[1])
    return Numeral(sign + (digits.lstrip("0") or "0").upper(), base)


def _all_digits(letters: str, base: int) -> bool:
    """Return whether letters are a numeral, as FF in base 16. A single letter, as in x_16, is a variable."""
    return len(letters) > 1 and all(c.isalpha() and ord(c.upper()) - ord("A") + 10 < base for c in letters)


def words_of(text: str) -> list[str]:
    r"""Return the words of two or more letters in a normalized string, without LaTeX commands."""
    return _WORD.findall(_COMMAND.sub(" ", unwrap_text(text)))


def word_key(text: str) -> str:
    """Return a string that is equal for equal answers in words.

    Case, a leading article, punctuation and ordinal endings are removed. "none" and "no solution" are "∅", "does not
    exist" is "undefined".
    """
    plain = " ".join(unwrap_text(text).split()).casefold().strip("\"'`“”‘’«»*_ ")
    key = _DROP.sub("", _ARTICLE.sub("", _ORDINAL.sub("", plain)))
    bare = key.replace("\\", "")
    return "∅" if bare in _NOTHING else "undefined" if bare in _UNDEFINED else key
