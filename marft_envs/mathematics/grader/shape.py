r"""The outer shape of an answer: a matrix, a list, a tuple, an interval, a set, a union, a relation, or one thing.

One linear scan per level finds what stands outside all brackets; an opening bracket may be closed by any other, as in
(0, 1].
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    """kind: "one", "list", "tuple", "set", "union", "matrix" or "relation". parts: texts, of a matrix row by row.

    brackets: of a tuple, as "(]"; of a determinant, "||". signs: of a relation, between its sides. columns: of a
    matrix. either: a list whose parts are joined by "or" alone.
    """

    kind: str
    parts: tuple[str, ...]
    brackets: str = ""
    signs: tuple[str, ...] = ()
    columns: int = 0
    either: bool = False


def shape_of(text: str) -> Shape:
    """The outermost shape of a cleaned text."""
    if (begin := text.find("\\begin")) >= 0:
        factor, matrix = _factor_of(text, begin)
        if found := _MATRIX.fullmatch(matrix):
            return _matrix(found[2], matrix, factor)
    text = _iso_brackets(text)
    unions, _ = split_outside(text, _UNION)
    if len(unions) > 1:
        return Shape("union", tuple(unions))
    inside = _inside(text)
    if inside is not None:
        opening, body, closing = inside
        parts, _ = split_outside(body, _LIST)
        if opening == "\\{":
            return Shape("set", tuple(part for part in parts if part))
        if len(parts) > 1 or opening + closing != "()":
            return Shape("tuple", tuple(parts), opening[-1:] + closing[-1:])
    listed = _THOUSANDS.sub(r"\1", text) if ", " in text else text
    parts, signs = split_outside(listed, _LIST)
    if len(parts) > 1:
        joined = [sign for sign in signs if sign.strip(", ")]
        return Shape("list", tuple(parts), either=bool(joined) and all(map(_OR.search, joined)))
    sides, signs = split_outside(text, _RELATION)
    if len(sides) > 1:
        return Shape("relation", tuple(sides), signs=tuple(_SIGNS.get(sign, sign) for sign in signs))
    return Shape("one", (text,))


def split_outside(text: str, separator: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """(parts, separators) of ``text`` split where ``separator`` stands outside all brackets."""
    parts: list[str] = []
    found: list[str] = []
    brackets = [(m.start(), m.end(), m.group()) for m in _BRACKET.finditer(text)]
    depth, at, start = 0, 0, 0
    for match in separator.finditer(text):
        while at < len(brackets) and brackets[at][0] < match.start():
            depth += (brackets[at][2] in _UP) - (brackets[at][2] in _DOWN)
            at += 1
        if depth == 0 and match.end() > start:
            parts.append(text[start : match.start()].strip())
            found.append(match.group())
            start = match.end()
            if len(parts) > MAX_PARTS:
                return [text], []
    return [*parts, text[start:].strip()], found


def _inside(text: str) -> tuple[str, str, str] | None:
    """(opening, content, closing) where one pair of brackets holds the whole text."""
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
    r"""(factor, matrix) of \frac12 \begin{pmatrix} ...; the factor is "" where there is none."""
    start = len(text[:begin].rstrip(" ([|"))
    factor = _TIMES.sub("", text[:start]).strip()
    return (factor, text[start:].strip()) if factor and not _RELATION.search(factor) else ("", text)


def _iso_brackets(text: str) -> str:
    """]2, 4[ as (2, 4)."""
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
    if "\\begin" in body:
        return Shape("one", (text,))
    rows = [row.split("&") for row in _ROW.split(body.replace("\\hline", "")) if row.strip()]
    widths = {len(row) for row in rows}
    cells = [cell.strip() for row in rows for cell in row]
    if len(widths) != 1 or len(cells) > MAX_PARTS or not all(cells):
        return Shape("one", (text,))
    if factor:
        cells = [f"-({cell})" if factor == "-" else f"({factor})({cell})" for cell in cells]
    bars = "||" if text.startswith("|") or "{vmatrix}" in text or "{Vmatrix}" in text else ""
    return Shape("matrix", tuple(cells), bars, columns=widths.pop())
