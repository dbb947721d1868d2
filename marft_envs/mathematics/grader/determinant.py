r"""Determinants written out as expressions: \begin{vmatrix}a&b\\c&d\end{vmatrix} is ((a)(d)-(b)(c)).

Entries of matrices of up to three rows may be any expressions. Larger ones, of up to eight rows, must be fractions, and
their determinant is computed exactly. Every other determinant is left as it is.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import permutations

MAX_ROWS = 8
MAX_ENTRY_CHARS = 60

_BODY = r"(?P<body>(?:(?!\\begin\s?\{|\\end\s?\{).)*+)"
_DETERMINANT = re.compile(
    r"\\begin\s?\{\s?vmatrix\s?\}" + _BODY + r"\\end\s?\{\s?vmatrix\s?\}"
    r"|\|\s?\\begin\s?\{\s?(?P<inside>(?:small)?matrix|array)\s?\}(?:\s?\{[lcr ]*\})?"
    + _BODY.replace("body", "bars")
    + r"\\end\s?\{\s?(?P=inside)\s?\}\s?\|"
    r"|\\det\s?(?P<open>[(\[])?\s?\\begin\s?\{\s?(?P<name>(?:[pb]?(?:small)?matrix|array))\s?\}(?:\s?\{[lcr ]*\})?"
    + _BODY.replace("body", "det")
    + r"\\end\s?\{\s?(?P=name)\s?\}(?(open)\s?[)\]])",
    re.DOTALL,
)
_ROW_END = re.compile(r"\\cr(?![A-Za-z])")
_FRACTION = re.compile(
    r"-?\d{1,12}(?:\.\d{1,12})?(?:/\d{1,12})?|(?P<sign>-?)\\frac\{(?P<top>-?\d{1,12})\}\{(?P<bottom>\d{1,12})\}"
)


def expand_determinants(text: str) -> str:
    """Return a normalized string with its determinants written out."""
    return _DETERMINANT.sub(_expansion, text)


def _expansion(match: re.Match[str]) -> str:
    body = match["body"] or match["bars"] or match["det"] or ""
    rows = [[entry.strip() for entry in row.split("&")] for row in _ROW_END.split(body) if row.strip()]
    size = len(rows)
    if not 0 < size <= MAX_ROWS or any(len(row) != size for row in rows):
        return match.group()
    entries = [entry for row in rows for entry in row]
    if not all(entries) or max(map(len, entries)) > MAX_ENTRY_CHARS:
        return match.group()
    if size > 3:
        values = [[_fraction(entry) for entry in row] for row in rows]
        numbers = [[value for value in row if value is not None] for row in values]
        if any(len(row) != size for row in numbers):
            return match.group()
        value = _determinant(numbers)
        return rf"(\frac{{{value.numerator}}}{{{value.denominator}}})" if value.denominator > 1 else f"({value})"
    return f"({_leibniz(rows)})"


def _leibniz(rows: list[list[str]]) -> str:
    """Return the sum over all permutations of signed products of entries (the formula of Leibniz)."""
    terms = []
    for columns in permutations(range(len(rows))):
        inversions = sum(a > b for i, a in enumerate(columns) for b in columns[i + 1 :])
        factors = r" \cdot ".join(f"({row[column]})" for row, column in zip(rows, columns, strict=True))
        terms.append(("-" if inversions % 2 else "+") + factors)
    return "".join(terms).removeprefix("+")


def _fraction(text: str) -> Fraction | None:
    match = _FRACTION.fullmatch(text)
    if match is None:
        return None
    written = f"{match['sign']}{match['top']}/{match['bottom']}" if match["top"] else text
    try:
        return Fraction(written) if "." not in written or "/" not in written else None
    except (ValueError, ZeroDivisionError):  # -\frac{-1}{2}, 1/0
        return None


def _determinant(rows: list[list[Fraction]]) -> Fraction:
    """Return the determinant by elimination."""
    matrix, value = [list(row) for row in rows], Fraction(1)
    for column in range(len(matrix)):
        pivot = next((i for i in range(column, len(matrix)) if matrix[i][column]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != column:
            matrix[column], matrix[pivot], value = matrix[pivot], matrix[column], -value
        value *= matrix[column][column]
        for row in matrix[column + 1 :]:
            factor = row[column] / matrix[column][column]
            row[column:] = [a - factor * b for a, b in zip(row[column:], matrix[column][column:], strict=True)]
    return value
