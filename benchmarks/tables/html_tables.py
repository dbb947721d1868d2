"""Tables of the report as HTML: those of all tasks with one title become one table, with a column for the task."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

from benchmarks.analysis.pairs import Summary
from benchmarks.tables.glossary import ARMS, HEADINGS
from benchmarks.tables.layout import NOTHING, Block, Table

Part = Callable[[Summary], list[Block]]
_TASK = "task"


def section(summary: Summary, parts: Sequence[Part]) -> str:
    """Return the tables, and the paragraphs between them, of some parts of the report."""
    merged: dict[str, tuple[str, list[tuple[str, Table]]]] = {}  # start of the title -> title, tables by task
    paragraphs: list[str] = []
    for task, figures in summary["tasks"].items():
        start = ""
        for block in (block for part in parts for block in part(figures)):
            if isinstance(block, str):
                paragraphs.append(f"{task}: {block}")
                continue
            # a table without a title continues the one before it, with other columns
            title = _one_line(block.title) or f"{start}, whole team"
            start = title.partition(": ")[0]
            merged.setdefault(start, (title, []))[1].append((task, block))
    tables = [_merged(title, found) for title, found in merged.values()]
    return "".join([*tables, *(f"<p>{html.escape(_one_line(text))}</p>" for text in paragraphs)])


def _merged(title: str, found: Sequence[tuple[str, Table]]) -> str:
    """Return one table from those of several tasks; a column that a task does not have is empty there."""
    headings = list(dict.fromkeys(heading for _, table in found for heading in table.headings))
    rows = []
    for task, table in found:
        for row in table.rows:
            cells = dict(zip(table.headings, row, strict=True))
            rows.append([task, *(cells.get(heading, NOTHING) for heading in headings)])
    notes = [f"{task}: {note}" for task, table in found for note in paragraphs_of(table.notes)]
    return html_table(Table(title, [_TASK, *headings], rows, keys=1 + found[0][1].keys, notes=notes))


def html_table(table: Table, *, wrap: bool = False) -> str:
    """Return a table that the page's script makes sortable and filterable.

    Args:
        table: The table.
        wrap: Whether long cells are wrapped.
    """
    title, _, rest = _one_line(table.title).partition(": ")
    name = html.escape(title, quote=True)
    rest = f'<p class="soft">{html.escape(rest[:1].upper() + rest[1:])}</p>' if rest else ""
    head = "".join(_heading(text, i < table.keys) for i, text in enumerate(table.headings))
    rows = "".join(_row(table, row) for row in table.rows)
    notes = "".join(f'<p class="soft">{html.escape(note)}</p>' for note in table.notes)
    return (
        f'<h3>{name}</h3>{rest}<div class="scroll" tabindex="0" role="region" aria-label="{name}">'
        f"<table{' class=wrap' * wrap}><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{notes}"
    )


def _heading(text: str, is_key: bool) -> str:
    help_text = f' data-help="{html.escape(HEADINGS[text], quote=True)}"' if text in HEADINGS else ""
    return f'<th scope="col"{" class=key" * is_key}{help_text}>{html.escape(text)}</th>'


def _row(table: Table, row: Sequence[str]) -> str:
    labels = dict(zip(table.headings[: table.keys], row, strict=False))
    own = [name for name in (_TASK, "mode") if name in labels]
    data = "".join(f' data-{name}="{html.escape(labels[name], quote=True)}"' for name in own)
    arms = labels.get("pair", labels.get("arm", ""))
    data += f' data-arms="{html.escape(arms.replace(" - ", " "), quote=True)}"' if arms else ""
    cells = [_cell(cell, i, table.keys) for i, cell in enumerate(row)]
    return f"<tr{data}>{''.join(cells)}</tr>"


def _cell(text: str, column: int, keys: int) -> str:
    shown = html.escape(text)
    if column == 0:
        return f'<th scope="row" class="key">{shown}</th>'
    help_text = f' data-help="{html.escape(ARMS[text], quote=True)}"' if column < keys and text in ARMS else ""
    return f"<td{' class=key' * (column < keys)}{help_text}>{shown}</td>"


def paragraphs_of(lines: Sequence[str]) -> list[str]:
    """Return the paragraphs of wrapped lines; a line that is indented by four continues the one before it."""
    found: list[str] = []
    for line in lines:
        if line.startswith("    ") and found:
            found[-1] += " " + line.strip()
        else:
            found.append(line.strip())
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())
