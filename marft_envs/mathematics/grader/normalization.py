r"""Normalization of answers: one spelling for Unicode, LaTeX spacing and wrappers, in linear time.

Nothing is computed here. The fractions, superscripts and subscripts of Unicode are rewritten before NFKC, which would
turn 3½ into 31⁄2, 10² into 102 and 1010₂ into 10102.
"""

from __future__ import annotations

import functools
import re
import unicodedata

_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−﹣－", "-"))
_SUPERSCRIPT = re.compile("[⁻⁰¹²³⁴-⁹]+")
_SUBSCRIPT = re.compile("[₋₀-₉]+")
_VULGAR = re.compile("[¼½¾⅐-⅞]")
_DIGIT = re.compile(r"[^\x00-\x7f]")
_FRAC_NAMES = re.compile(r"\\[dtc](frac|binom)(?![A-Za-z])")
_TEXT_NAMES = re.compile(
    r"\\(?:text|textrm|textbf|textit|textnormal|textsf|mathrm|mathbf|mathit|mathsf|mbox|hbox|bf|rm)\s?\{"
)
_TEXT_NUMBER = re.compile(r"\\text\{\s?([-+]?[\d.,/ %]++)\}")
_TEXT = re.compile(r"\\text\{((?:[^{}]|\{[^{}]*+\})*+)\}")
_SPACES = re.compile(r"(?:\\[,;: ]|~|\\q?quad(?![A-Za-z])|\s)+")
_NOTHING = re.compile(
    r"\\!|\\(?:left|right)(?![A-Za-z])\.?|\\(?:displaystyle|limits|[bB]igg?[lr]?)(?![A-Za-z])|\\[()\[\]]|\\?\$"
)
_ROW_END = re.compile(r"\\\\(?:\[[^\]]{0,8}\])?")
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z{}])")
_MOD = re.compile(r"\\([pb])mod\s?(?=[\w{])")
_GROUPED = re.compile(r"(?<=\d)(?:\{,\}|,?\\!,?|\\,)(?=\d{3}(?!\d))")
_SYMBOLS = str.maketrans({
    "√": "\\sqrt ", "∪": "\\cup ", "≤": "\\le ", "≥": "\\ge ", "≠": "\\ne ", "∞": "\\infty ",
    "⁄": "/", "€": "", "£": "", "¥": "", "₹": "",
})  # fmt: skip
_ELLIPSIS = re.compile(r"(\.\d+) ?\.\.\.")
_SHORT_FRAC = re.compile(r"\\frac\s?(?:\{([^{}]*+)\}|(\w))\s?(?:\{([^{}]*+)\}|(\w))")
_SHORT_ROOT = re.compile(r"\\sqrt\s?(\w)")
_SHORT_SCRIPT = re.compile(r"([\^_]|\\[pb]mod )\{(\w)\}")
_MAX_BRACES = 50
CACHED_CHARS = 300
_PHRASE = re.compile(r"[^\W\d_]{2,}(?:[ ,.'-]+[^\W\d_]+)*")


def normalize(text: str) -> str:
    r"""Return ``text`` in the one notation that all other modules of the grader expect.

    Digits and the minus sign are ASCII, fractions are ``\frac``, words are in ``\text{...}``, and white space is a
    single space. ``$``, ``\left``, ``\right``, outer braces and trailing punctuation are removed.
    """
    return _normalize_short(text) if len(text) <= CACHED_CHARS else _normalize(text)


def _normalize(text: str) -> str:
    if not text.isascii():
        text = _ascii(text)
    if "\\" in text or "$" in text or "{,}" in text:
        text = _commands(text)
    text = _SPACES.sub(" ", text).replace("{,}", ",")
    if "..." in text:
        text = _ELLIPSIS.sub(r"\1\\ldots", text)
    if r"\text" in text:
        text = _TEXT_NUMBER.sub(r"\1", text)
    return _without_outer_braces(text.strip().rstrip(".,;:。 ").strip())


def _ascii(text: str) -> str:
    text = _VULGAR.sub(lambda m: " " + unicodedata.normalize("NFKC", m.group()).replace("⁄", "/"), text)
    text = _SUPERSCRIPT.sub(lambda m: "^{" + unicodedata.normalize("NFKC", m.group()) + "}", text)
    text = _SUBSCRIPT.sub(lambda m: "_{" + unicodedata.normalize("NFKC", m.group()) + "}", text)
    text = _DIGIT.sub(_ascii_digit, unicodedata.normalize("NFKC", text)).translate(_DASHES)
    return text.translate(_SYMBOLS)


def _commands(text: str) -> str:
    if "\\\\" in text:  # a row of a matrix ends there; elsewhere it is a backslash that was escaped twice
        text = _ROW_END.sub(r"\\cr ", text) if "\\begin" in text else _DOUBLED.sub(r"\\", text)
    text = _TEXT_NAMES.sub(r"\\text{", _FRAC_NAMES.sub(r"\\\1", text))
    return _NOTHING.sub("", _GROUPED.sub("", text)).replace("\\%", "%")


_normalize_short = functools.lru_cache(maxsize=8192)(_normalize)


def unwrap_text(text: str) -> str:
    r"""Return ``text`` without the command ``\text``: ``5 \text{ cm}`` becomes ``5  cm ``."""
    return _TEXT.sub(r" \1 ", text)


def comparison_key(text: str) -> str:
    """Return a string that is equal for two answers that are spelled alike.

    Spaces are removed, short forms such as ``\\frac12`` are written out, and words are in lower case. A single letter
    keeps its case: e is a number, and E may be a choice.
    """
    return _key_short(text) if len(text) <= CACHED_CHARS else _key(text)


def _key(text: str) -> str:
    text = unwrap_text(normalize(text)).strip()
    if _PHRASE.fullmatch(text):
        text = text.casefold()
    text = _SHORT_FRAC.sub(lambda m: rf"\frac{{{m[1] or m[2] or ''}}}{{{m[3] or m[4] or ''}}}", text)
    text = _MOD.sub(r"\\\1mod ", text)
    text = _SHORT_SCRIPT.sub(r"\1\2", _SHORT_ROOT.sub(r"\\sqrt{\1}", text))
    return text.replace(" ", "")


_key_short = functools.lru_cache(maxsize=8192)(_key)


def _ascii_digit(match: re.Match[str]) -> str:
    digit = unicodedata.decimal(match.group(), None)
    return match.group() if digit is None else str(digit)


def _without_outer_braces(text: str) -> str:
    """Return ``{{5}}`` as ``5``. Braces that do not enclose the whole string, as in ``{a}{b}``, are not changed."""
    depth = 0
    leading = len(text) - len(text.lstrip("{"))
    wrapped = min(leading, len(text) - len(text.rstrip("}")))
    if not 0 < wrapped <= _MAX_BRACES:
        return text
    # A pair of braces encloses everything exactly if the depth never falls below it before the trailing braces.
    # Counting the lowest depth finds the number of such pairs in one pass.
    lowest = wrapped
    for character in text[: len(text) - wrapped]:
        depth += (character == "{") - (character == "}")
        lowest = min(lowest, depth) if depth < wrapped and character == "}" else lowest
    return text[lowest : len(text) - lowest].strip() if depth == wrapped else text
