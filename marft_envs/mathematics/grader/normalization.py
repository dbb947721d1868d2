r"""Normalization of answers: one spelling for Unicode, LaTeX spacing and wrappers, in linear time.

Nothing is computed here. The fractions, superscripts and subscripts of Unicode are rewritten before NFKC, which would
turn 3½ into 31⁄2, 10² into 102 and 1010₂ into 10102.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from marft_envs.mathematics.grader.determinant import expand_determinants
from marft_envs.mathematics.grader.expression_tokens import is_word
from marft_envs.mathematics.grader.latex_environments import without_environments
from marft_envs.mathematics.grader.latex_layout import without_layout
from marft_envs.mathematics.grader.unit_notation import with_units_joined

_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−﹣－", "-"))
_SUPERSCRIPT = re.compile("[⁻⁰¹²³⁴-⁹]+")
_SUBSCRIPT = re.compile("[₋₀-₉]+")
_VULGAR = re.compile("[¼½¾⅐-⅞]")
_CIRCLED_LETTER = re.compile("[①-⑳]")
_ZERO_WIDTH = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_DIGIT = re.compile(r"[^\x00-\x7f]")
_FRAC_NAMES = re.compile(r"\\[dtc](frac|binom)(?![A-Za-z])")
_TEXT_NAMES = re.compile(
    r"\\(?:text|textrm|textbf|textit|textnormal|textsf|mathrm|mathbf|mathit|mathsf|mbox|hbox|bf|rm)\s?\{"
)
_TEXT_NUMBER = re.compile(r"\\text\{\s?([-+]?[\d.,/ %]++)\}")
_TEXT = re.compile(r"\\text\{((?:[^{}]|\{[^{}]*+\})*+)\}")
_SPACES = re.compile(r"(?:\\[,;: ]|~|\\q?quad(?![A-Za-z]{2})|\s)+")
_NOTHING = re.compile(
    r"\\!|\\(?:left|right)(?![A-Za-z])\.?|\\(?:displaystyle|limits|[bB]igg?[lr]?)(?![A-Za-z])|\\[()\[\]]|\\?\$"
)
_DIVIDED = re.compile(r"(?<=\d)\s*(?:\\?\$|\\[()\[\]])\s*(?=\d)")
_NEGATED = re.compile(r"\\not\s?(?:=|\\in(?![A-Za-z])|[<>])")
_NEGATIONS = {"=": r"\ne ", "n": r"\notin ", "<": r"\ge ", ">": r"\le "}
_ROW_END = re.compile(r"\\\\(?:\[[^\]]{0,8}\])?")
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z{}()\[\],;!%$])")
_DIFFERENTIAL = re.compile(r"\\text\{d\}\s?(?=\\?[A-Za-z])")
_BRACED_SIGN = re.compile(r"(?<![\^_A-Za-z}])\{([:=<>.]|\\colon)\s?\}|\\colon(?=\s?\d)")
_EMPTY = re.compile(r"[\^_]\s?\{\s?\}|(?<![A-Za-z\\}])\{\s?\}(?=.)|(?<=[\d)])\{\s?\}")
_APOSTROPHES = re.compile(r"(?<![\d'’.])\d{1,3}(?:['’]\d{3})++(?!\d)")
_SLANTED = re.compile(r"\^\s?\{?(\d+)\}?\s?/\s?_\s?(?:\{(\d+)\}|(\d+))")
CIRCLED = re.compile(r"(?:\s?(?:[,、;和与及]|and)?\s?\\textcircled\s?(?:\{\s?\d\d?\s?\}|\d))+")
_QUOTES = {'"': '"', "“": "”", "”": "”", "‘": "’", "'": "'", "`": "`", "«": "»", "「": "」", "``": "''", "**": "**"}
_MOD = re.compile(r"\\([pb])mod\s?(?=[\w{])")
_GROUPED = re.compile(r"(?<=\d)(?:\{,\}|,?\\!,?|\\,)(?=\d{3}(?!\d))")
_SYMBOLS = str.maketrans({
    "√": "\\sqrt ", "∪": "\\cup ", "≤": "\\le ", "≥": "\\ge ", "≠": "\\ne ", "∞": "\\infty ",
    "⁄": "/", "€": "", "£": "", "¥": "", "₹": "", "⟨": "\\langle ", "⟩": "\\rangle ", "∴": "\\therefore ",
    "⇒": "\\Rightarrow ", "→": "\\rightarrow ", "■": "\\blacksquare ", "∎": "\\blacksquare ", "□": "\\square ",
    "✓": "\\checkmark ", "✔": "\\checkmark ", "✅": "\\checkmark ",
})  # fmt: skip
_ELLIPSIS = re.compile(r"(\.\d+) ?\.\.\.")
_SHORT_FRAC = re.compile(r"\\frac\s?(?:\{([^{}]*+)\}|(\w))\s?(?:\{([^{}]*+)\}|(\w))")
_SHORT_ROOT = re.compile(r"\\sqrt\s?(\w)")
_SHORT_SCRIPT = re.compile(r"([\^_]|\\[pb]mod )\{(\w)\}")
_MAX_BRACES = 50
CACHED_CHARS = 300
_SPACE = re.compile(r" (?!(?<=\d )\d)")
"""A space, except between two digits: 1 2 is not 12."""
_SHORT_WORDS = frozenset(["no", "so", "up", "pm", "am", "ok"])
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
    if r"\text" in text or r"\Omega" in text or r"\circ" in text or "°" in text:
        text = _words(text)
    if "{}" in text or "{ }" in text:
        text = _EMPTY.sub("", text)
    if "{:" in text or "{=" in text or "{." in text or "{<" in text or "{>" in text or r"\colon" in text:
        text = _BRACED_SIGN.sub(lambda m: ":" if "colon" in m.group() else m[1], text)
    if "'" in text or "’" in text:
        text = _APOSTROPHES.sub(lambda m: re.sub("['’]", "", m.group()), text)
    if "/_" in text or "/ _" in text:
        text = _SLANTED.sub(lambda m: rf"\frac{{{m[1]}}}{{{m[2] or m[3]}}}", text)
    text = text.strip().rstrip(".,;:。 ").strip()
    if text[:1] in _QUOTES or text.startswith("**"):
        text = _without_quotes(text)
    return _without_outer_braces(text.removeprefix("=").lstrip())


def _ascii(text: str) -> str:
    text = _CIRCLED_LETTER.sub(lambda m: rf"\textcircled{{{unicodedata.normalize('NFKC', m.group())}}}", text)
    text = _VULGAR.sub(lambda m: " " + unicodedata.normalize("NFKC", m.group()).replace("⁄", "/"), text)
    text = _SUPERSCRIPT.sub(lambda m: "^{" + unicodedata.normalize("NFKC", m.group()) + "}", text)
    text = _SUBSCRIPT.sub(lambda m: "_{" + unicodedata.normalize("NFKC", m.group()) + "}", text)
    text = unicodedata.normalize("NFKC", _ZERO_WIDTH.sub("", text))
    return _DIGIT.sub(_ascii_digit, text).translate(_DASHES).translate(_SYMBOLS)


def _commands(text: str) -> str:
    if r"\\begin" in text:  # every backslash of the answer was escaped
        text = text.replace(r"\\", "\\")
    text = without_layout(text)
    if r"\begin" in text:
        text = without_environments(text)
    if r"\\" in text:  # a row of a matrix ends there; elsewhere it is a backslash that was escaped twice
        text = _ROW_END.sub(r"\\cr ", text) if "\\begin" in text else _DOUBLED.sub(r"\\", text)
    if r"\not" in text:
        text = _NEGATED.sub(lambda m: _NEGATIONS[m.group()[-1]], text)
    text = _TEXT_NAMES.sub(r"\\text{", _FRAC_NAMES.sub(r"\\\1", text))
    text = _NOTHING.sub("", _DIVIDED.sub(" ", _GROUPED.sub("", text))).replace("\\%", "%")
    if r"\begin" in text and ("vmatrix" in text or "|" in text or r"\det" in text):
        text = expand_determinants(text)
    text = text.rstrip()
    return text.rstrip("\\ ") if text.endswith("\\") else text


def _words(text: str) -> str:
    r"""Rewrite what stands in \text but is no word: numbers, the d of an integral, circled numbers."""
    text = _TEXT_NUMBER.sub(r"\1", text)
    if r"\text{d}" in text:
        text = _DIFFERENTIAL.sub("d", text)
    if text.count(r"\text") > 1 or r"\mu" in text or r"\Omega" in text or r"\circ" in text or "°" in text:
        text = with_units_joined(text)
    if r"\textcircled" in text and CIRCLED.fullmatch(circled := unwrap_text(text).strip()):
        # The circled numbers of statements are a set: both orders are written in the same way.
        text = "".join(rf"\textcircled{{{n}}}" for n in sorted(map(int, re.findall(r"\d+", circled))))
    return text


def _without_quotes(text: str) -> str:
    """Return ``"42"`` as ``42``, for quotation marks, backquotes and bold that enclose the whole string."""
    for opening in (text[:2], text[:1]):
        closing = _QUOTES.get(opening)
        inside = text[len(opening) : len(text) - len(closing)] if closing else ""
        if closing and text.endswith(closing) and inside and opening not in inside and closing not in inside:
            return inside.strip().rstrip(".,;:").strip()
    return text


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
    if _PHRASE.fullmatch(text) and (is_word(text) or text.casefold() in _SHORT_WORDS):
        text = text.casefold()
    text = _SHORT_FRAC.sub(lambda m: rf"\frac{{{m[1] or m[2] or ''}}}{{{m[3] or m[4] or ''}}}", text)
    text = _MOD.sub(r"\\\1mod ", text)
    text = _SHORT_SCRIPT.sub(r"\1\2", _SHORT_ROOT.sub(r"\\sqrt{\1}", text))
    return _SPACE.sub("", text)


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
