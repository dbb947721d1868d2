"""Answers that are no expression: choices, words, times, ratios, numerals in a base. Each is compared in its own way.

Every reader takes a cleaned text and gives None for anything else, so that the next one may try.
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
_TIME = re.compile(
    r"(\d{1,2})(?::([0-5]\d)(?::([0-5]\d))?(?:\s?\(?\s?([aApP])\.?\s?[mM]\.?\s?\)?)?|\s?([aApP])\.?\s?[mM]\.?)"
)
_RATIO = re.compile(r"[^:]{1,200}(?::[^:]{1,200})+")
_TO = re.compile(r"\s(?:to|is to)\s|\s?\\colon\s?")
_NUMERAL = re.compile(r"(-?[0-9A-Za-z]+(?:\.[0-9A-Za-z]+)?)\s?_\s?(?:\{\s?(\w+)\s?\}|(\d+))")
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
    """Digits as written, without leading zeros, and their base."""

    digits: str
    base: str


def read_choice(text: str) -> tuple[str, str] | None:
    """(letter, text of the option): C, (C), C. and (C) 12. A bare small letter is a variable."""
    match = _CHOICE.fullmatch(text)
    if match is None:
        return None
    return (match[1] or match[2] or match[3]).upper(), match[4].strip()


def read_time(text: str) -> tuple[int, int, int, str] | None:
    """(hour, minute, second, "a", "p" or ""): 3:30, 3:30:15, 3:30 p.m., 9 a.m."""
    match = _TIME.fullmatch(unwrap_text(text).replace("  ", " ").strip())
    if match is None or int(match[1]) > 24:
        return None
    return int(match[1]), int(match[2] or 0), int(match[3] or 0), (match[4] or match[5] or "").lower()


def same_time(a: tuple[int, int, int, str], b: tuple[int, int, int, str]) -> bool:
    """3:30 is 03:30 and 3:30 p.m.; 3:30 p.m. is 15:30 and not 3:30 a.m."""
    if a[3] and b[3]:
        return a == b
    if a[:3] == b[:3]:
        return True
    marked, bare = (a, b) if a[3] else (b, a)
    return marked[3] == "p" and (marked[0] % 12 + 12, *marked[1:3]) == bare[:3]


def read_ratio(text: str) -> list[str] | None:
    """The terms of a ratio: 2:3, 2 : 3 : 4, 2 to 3."""
    text = _TO.sub(":", unwrap_text(text).replace("  ", " "))
    if not _RATIO.fullmatch(text):
        return None
    return [part.strip() for part in text.split(":")]


def same_ratio(a: list[str], b: list[str]) -> bool | None:
    """Equality of the ratios' values; None where a term is no number."""
    numbers = [[parse_number(term) for term in side] for side in (a, b)]
    if any(n is None for side in numbers for n in side):
        return None
    left, right = ([n.value for n in side if n is not None] for side in numbers)
    if len(left) != len(right) or not left[0] or not right[0]:
        return False
    return [x / left[0] for x in left] == [x / right[0] for x in right]


def ratio_value(terms: list[str]) -> Fraction | None:
    """2:3 as 2/3."""
    numbers = [parse_number(term) for term in terms]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None or not numbers[1].value:
        return None
    return numbers[0].value / numbers[1].value


def read_numeral(text: str) -> Numeral | None:
    """1010_2, 1010_{2}, 1010_{two}, 1010 base 2."""
    plain = " ".join(unwrap_text(text.replace(r"_\text", "_")).split())
    match = _NUMERAL.fullmatch(plain) or _BASE_WORDS.fullmatch(plain)
    if match is None:
        return None
    base = next(group for group in match.groups()[1:] if group)
    base = _BASES.get(base.casefold(), base)
    if not base.isdigit() or not 2 <= int(base[:3]) <= 36 or len(base) > 2:
        return None
    if not any(c.isdigit() for c in match[1]) and not _all_digits(match[1], int(base)):
        return None
    sign, digits = ("-", match[1][1:]) if match[1].startswith("-") else ("", match[1])
    return Numeral(sign + (digits.lstrip("0") or "0").upper(), base)


def _all_digits(letters: str, base: int) -> bool:
    """FF of base 16: several letters, each a digit of the base; x_16 is a variable with an index."""
    return len(letters) > 1 and all(c.isalpha() and ord(c.upper()) - ord("A") + 10 < base for c in letters)


def words_of(text: str) -> list[str]:
    r"""The words of a cleaned text, LaTeX commands and \text itself left out."""
    return _WORD.findall(_COMMAND.sub(" ", unwrap_text(text)))


def word_key(text: str) -> str:
    """What two answers in words are compared by: no case, article, punctuation or ordinal ending."""
    plain = " ".join(unwrap_text(text).split()).casefold().strip("\"'“”‘’*_ ")
    key = _DROP.sub("", _ARTICLE.sub("", _ORDINAL.sub("", plain)))
    bare = key.replace("\\", "")
    return "∅" if bare in _NOTHING else "undefined" if bare in _UNDEFINED else key
