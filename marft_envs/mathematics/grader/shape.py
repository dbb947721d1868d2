r"""The outermost shape of an answer: matrix, list, tuple, interval, set, union, relation, or a single expression.

Each level takes one linear scan, which finds the separators outside all brackets. Any closing bracket may close any
opening one, as in (0, 1].
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["one", "list", "tuple", "set", "union", "matrix", "relation"]
MAX_PARTS = 200

_WORD_OR = r"\\text\{\s?,?\s?or\s?\}|(?<![A-Za-z\\])or(?![A-Za-z])|\\lor(?![A-Za-z])|\\vee(?![A-Za-z])|或"
_WORD_AND = r"\\text\{\s?,?\s?and\s?\}|(?<![A-Za-z\\])and(?![A-Za-z])|[和、]"
_LIST = re.compile(rf"(?:[,;]\s?)?(?:{_WORD_OR}|{_WORD_AND})|[,;]")
_OR = re.compile(_WORD_OR)
_UNION = re.compile(r"\\(?:big|Big)?cup(?![A-Za-z])|∪|(?<=[)\]}]) ?U ?(?=[(\[\\{])")
_RELATION = re.compile(
    r"\\(?:leqslant|geqslant|leq|geq|le|ge|lt|gt|neq|ne|approx|in|equiv|sim)(?![A-Za-z])|<=|>=|!=|:=|[=<>≤≥≠≈∈]"
)
_OPEN = {"(": ")", "[": "]", "\\{": "\\}", "{": "}", "\\langle": "\\rangle"}
_BRACKET = re.compile(
    r"\\begin(?![A-Za-z])|\\end(?![A-Za-z])|\\[lr](?:angle|floor|ceil|vert)(?![A-Za-z])|\\.|[()\[\]{}]", re.DOTALL
)
_UP = frozenset(["(", "[", "{", "\\{", "\\begin", "\\langle", "\\lfloor", "\\lceil"])
_DOWN = frozenset([")", "]", "}", "\\}", "\\end", "\\rangle", "\\rfloor", "\\rceil"])
_MATRIX = re.compile(
    r"(?:[(\[|] ?)?\\begin\{ ?([pbBvV]?(?:small)?matrix|array)\} ?(?:\{[lcr| ]*\})?(.*)\\end\{ ?\1 ?\}(?: ?[)\]|])?",
    re.DOTALL,
)
_TIMES = re.compile(r"(?:\\cdot|\\times|\*|·|×)\s*$")
_BRACKETED = re.compile(r"([\[\]])([^\[\]()]*)([\[\]])")
_ROW = re.compile(r"\\cr(?![A-Za-z])")
_THOUSANDS = re.compile(r"(?<![\d,])(\d{1,3}),(?=\d{3}(?!\d))")
_SIGNS = {
    "\\leq": "<=", "\\le": "<=", "\\leqslant": "<=", "≤": "<=", "\\geq": ">=", "\\ge": ">=", "\\geqslant": ">=",
    "≥": ">=", "\\lt": "<", "\\gt": ">", "\\ne": "!=", "\\neq": "!=", "≠": "!=", "≈": "~", "\\approx": "~",
    "\\sim": "~", "∈": "in", "\\in": "in", ":=": "=", "\\equiv": "mod",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """The outermost shape of an answer.

    Attributes:
        kind: The shape; "one" for a single expression.
        parts: The strings of which it consists: elements, sides of a relation, or entries of a matrix row by row.
        brackets: The brackets of a tuple or interval, such as "(]"; "||" for a determinant.
        signs: The signs of a relation, one fewer than its sides: "=", "<", "<=", ">", ">=", "!=", "~" (approximately),
            "in" or "mod".
        columns: The number of columns of a matrix.
        either: Whether the parts of a list are all joined by "or".
    """

    kind: Kind
    parts: tuple[str, ...]
    brackets: str = ""
    signs: tuple[str, ...] = ()
    columns: int = 0
    either: bool = False


def shape_of(text: str) -> Shape:
    """Return the outermost shape of a normalized string."""
    # The order is that of precedence, weakest binding first: a union of intervals is a union, and the comma in (1, 2)
    # belongs to the tuple, not to a list.
    if (begin := text.find("\\begin")) >= 0:
        factor, matrix = _factor_of(text, begin)
        if found := _MATRIX.fullmatch(matrix):
            return _matrix(found[2], matrix, factor)
    text = _iso_brackets(text)
    unions, _ = split_outside(text, _UNION)
    if len(unions) > 1:
        return Shape("union", tuple(unions))
    enclosed = _split_enclosing_brackets(text)
    if enclosed is not None:
        opening, body, closing = enclosed
        parts, _ = split_outside(body, _LIST)
        if opening == "\\{":
            return Shape("set", tuple(part for part in parts if part))
        if opening == "\\langle":  # a vector
            return Shape("tuple", tuple(parts), "()") if len(parts) > 1 else Shape("one", (text,))
        if len(parts) > 1 or opening + closing != "()":
            return Shape("tuple", tuple(parts), opening[-1:] + closing[-1:])
    # In "1,000, 2,000" the commas without a space separate thousands.
    without_thousands = _THOUSANDS.sub(r"\1", text) if ", " in text else text
    parts, separators = split_outside(without_thousands, _LIST)
    if len(parts) > 1:
        words = [separator for separator in separators if separator.strip(", ")]
        return Shape("list", tuple(parts), either=bool(words) and all(map(_OR.search, words)))
    sides, signs = split_outside(text, _RELATION)
    if len(sides) > 1:
        return Shape("relation", tuple(sides), signs=tuple(_SIGNS.get(sign, sign) for sign in signs))
    return Shape("one", (text,))


def split_outside(text: str, separator: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """Split ``text`` at the matches of ``separator`` that are outside all brackets.

    Returns:
        (parts, separators). A string of more than MAX_PARTS parts is not split.
    """
    parts: list[str] = []
    separators: list[str] = []
    brackets = [(m.start(), m.end(), m.group()) for m in _BRACKET.finditer(text)]
    depth, next_bracket, start = 0, 0, 0
    # Brackets and separators are both in order of position, so each is visited once: linear time.
    for match in separator.finditer(text):
        while next_bracket < len(brackets) and brackets[next_bracket][0] < match.start():
            depth += (brackets[next_bracket][2] in _UP) - (brackets[next_bracket][2] in _DOWN)
            next_bracket += 1
        if depth == 0 and match.end() > start:
            parts.append(text[start : match.start()].strip())
            separators.append(match.group())
            start = match.end()
            if len(parts) > MAX_PARTS:
                return [text], []
    return [*parts, text[start:].strip()], separators


def _split_enclosing_brackets(text: str) -> tuple[str, str, str] | None:
    """Return (opening, content, closing) if one pair of brackets encloses the whole string, else None."""
    first = next((opening for opening in _OPEN if text.startswith(opening)), None)
    if first is None or first == "{":
        return None
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += (match.group() in _UP) - (match.group() in _DOWN)
        if depth <= 0:
            if match.end() != len(text):
                return None
            return first, text[len(first) : match.start()].strip(), match.group()
    return None


def _factor_of(text: str, begin: int) -> tuple[str, str]:
    r"""Split \frac12 \begin{pmatrix} ... into (factor, matrix); the factor is "" if there is none."""
    start = len(text[:begin].rstrip(" ([|"))
    factor = _TIMES.sub("", text[:start]).strip()
    return (factor, text[start:].strip()) if factor and not _RELATION.search(factor) else ("", text)


def _iso_brackets(text: str) -> str:
    """Return the interval ]2, 4[ of ISO 80000-2 as (2, 4)."""
    if not (text.startswith("]") or text.endswith("[")):
        return text
    return _BRACKETED.sub(_round_where_reversed, text)


def _round_where_reversed(match: re.Match[str]) -> str:
    opening, inside, closing = match.groups()
    ends = [end.strip() for end in re.split("[,;]", inside)]
    if len(ends) != 2 or not all(ends):
        return match.group()
    return f"{'[' if opening == '[' else '('}{inside}{']' if closing == ']' else ')'}"


def _matrix(body: str, text: str, factor: str) -> Shape:
    """Return the shape of a matrix from its rows; a nested or ragged one, or one with empty entries, is "one"."""
    if "\\begin" in body:
        return Shape("one", (text,))
    rows = [row.split("&") for row in _ROW.split(body.replace("\\hline", "")) if row.strip()]
    widths = {len(row) for row in rows}
    entries = [entry.strip() for row in rows for entry in row]
    if len(widths) != 1 or len(entries) > MAX_PARTS or not all(entries):
        return Shape("one", (text,))
    if factor:
        entries = [f"-({entry})" if factor == "-" else f"({factor})({entry})" for entry in entries]
    bars = "||" if text.startswith("|") or "{vmatrix}" in text or "{Vmatrix}" in text else ""
    return Shape("matrix", tuple(entries), bars, columns=widths.pop())
