r"""LaTeX environments that arrange several lines, rewritten as one line.

``aligned`` and similar environments, and systems of equations in ``cases``, become lists: x = 1, y = 2. A row that
starts with a relation sign continues the row above it: x = 3 + 4 = 7. ``cases`` with a condition in each row become
``\begin{cases} value & condition \cr ... \end{cases}``. Matrices are not changed.
"""

from __future__ import annotations

import re

_LINES = "aligned|align|alignedat|alignat|gathered|gather|split|eqnarray|multline|multlined|flalign"
_PLAIN = "equation|displaymath|math|center|document"
_ENVIRONMENT = re.compile(
    rf"\\begin\s?\{{\s?(?P<name>(?:{_LINES}|{_PLAIN}|[dr]?cases)\*?)\s?\}}(?:\s?\[[tcb]\])?(?:(?<=at\}})\s?\{{\d\}})?"
    r"(?P<body>(?:(?!\\begin\s?\{|\\end\s?\{).)*+)\\end\s?\{\s?(?P=name)\s?\}",
    re.DOTALL,
)
_BRACED_ARRAY = re.compile(
    r"(?:\\left\s?|(?<!\\right)(?<!\\right ))\\\{\s?\\begin\s?\{\s?(array|aligned|matrix|gathered)\s?\}"
    r"(?:\s?\{[lcr|@ ]*\})?"
    r"(?P<body>(?:(?!\\begin\s?\{|\\end\s?\{).)*+)\\end\s?\{\s?\1\s?\}(?!\s?(?:\\right\s?)?\\\})(?:\s?\\right\s?\.)?",
    re.DOTALL,
)
_ROW_END = re.compile(r"\\\\(?:\s?\[[^\[\]]{0,8}\])?|\\cr(?![A-Za-z])")
_RELATION = re.compile(
    r"\s*(?:[=<>≤≥≠≈]|\\(?:leqslant|geqslant|leq|geq|le|ge|lt|gt|neq|ne|approx|equiv|in|iff|Rightarrow|implies)(?![A-Za-z]))"
)
_ANY_RELATION = re.compile(r"(?<!\\)[=<>≤≥≠]|\\(?:leqslant|geqslant|leq|geq|le|ge|lt|gt|neq|ne|in)(?![A-Za-z])")
_CONDITION = re.compile(
    r"[,;]?\s?(?:\\text\s?\{\s?,?\s?(?:if|when|for|where|otherwise|else)\b|\\text(?:rm|normal)?\s?\{\s?,?\s?(?:if|when|for|otherwise|else)\b"
    r"|\\(?:mathrm|mbox|hbox)\s?\{\s?,?\s?(?:if|when|for|otherwise|else)\b|\b(?:if|when|otherwise)\b)"
)
_SEPARATOR = re.compile(r"(?:\s|[,;.]|\\q?quad(?![A-Za-z])|\\[,;: !]|\\text\s?\{\s?(?:and|,)?\s?\}|~)+\Z")
MAX_ROWS = 40


def without_environments(text: str) -> str:
    r"""Return ``text`` with its environments of lines rewritten, each once; nested ones are rewritten from inside."""
    text = _BRACED_ARRAY.sub(lambda m: rf"\begin{{cases}}{m['body']}\end{{cases}}", text)
    return _ENVIRONMENT.sub(_on_one_line, text)


def _on_one_line(match: re.Match[str]) -> str:
    name, body = match["name"].rstrip("*"), match["body"]
    if name in _PLAIN.split("|"):
        return body
    rows = [row for row in _ROW_END.split(body) if row.strip()]
    if len(rows) > MAX_ROWS:
        return match.group()
    if name.endswith("cases"):
        pairs = [_value_and_condition(row) for row in rows]
        if len(pairs) > 1 and all(pairs):
            lines = r" \cr ".join(f"{value} & {condition}" for value, condition in filter(None, pairs))
            return rf"\begin{{cases}} {lines} \end{{cases}}"
    return _joined([row.replace("&", " ") for row in rows])


def _value_and_condition(row: str) -> tuple[str, str] | None:
    """Split a row of cases; None for an equation, as in a system of equations."""
    cells = row.split("&")
    if len(cells) > 2:
        return None
    if len(cells) == 1:
        condition = _CONDITION.search(row) or re.search(r",\s?(?=[^,]*\Z)", row)
        if condition is None or condition.start() == 0:
            return None
        cells = [row[: condition.start()], row[condition.start() :].lstrip(", ")]
    value, condition_text = (_SEPARATOR.sub("", cell.strip()) for cell in cells)
    words = _CONDITION.match(condition_text)
    if not value or not condition_text or _RELATION.match(condition_text) or _ANY_RELATION.search(value):
        return None
    return (value, condition_text) if words or _ANY_RELATION.search(condition_text) else None


def _joined(rows: list[str]) -> str:
    line = ""
    for row in rows:
        if line and not _RELATION.match(row):
            line = _SEPARATOR.sub("", line) + ", " + row.strip()
        else:
            line += " " + row.strip()
    return line.strip()
