"""The report as one HTML file without network: tables, interactive figures, and the episode browser.

The template is page/report.html. It includes uPlot (page/uplot, MIT licence) for the figures, and the parts that it
shares with the page of a trace, which are files in marft_envs/traces/page. They are read, not imported: the report
needs no product code.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.analysis.pairs import Summary
from benchmarks.analysis.read_rows import Row
from benchmarks.tables.chart_data import learning_curves, stability_panels
from benchmarks.tables.glossary import ARMS, HEADINGS, LEGEND
from benchmarks.tables.headline import headlines
from benchmarks.tables.html_tables import html_table, paragraphs_of, section
from benchmarks.tables.layout import Table
from benchmarks.tables.pair_tables import between_tasks
from benchmarks.tables.report_head import failure_sentence, few_seeds, provenance_tables
from benchmarks.tables.report_text import SECTIONS, task_title

PAGE = Path(__file__).parent / "page"
SHARED = Path(__file__).resolve().parents[2] / "marft_envs" / "traces" / "page"
_STABILITY_FIGURES = (
    '<p class="soft">Line: mean over agents and seeds. Band: from the smallest to the largest seed.</p>'
    '<div class="figures" id="stability-figures"></div>'
)
_GROUP = ("task", "arm", "seed", "update", "mode", "header", "episodes")


def render_html(summary: Summary, rows: Sequence[Row]) -> str:
    """Return the page of a comparison.

    Args:
        summary: Result of ``summarise``.
        rows: The rows that it was computed from.
    """
    groups = episode_groups(rows, summary)
    arms = list(dict.fromkeys(arm for figures in summary["tasks"].values() for arm in figures["arms"]))
    modes = list(dict.fromkeys(mode for figures in summary["tasks"].values() for mode in figures["modes"]))
    values = {
        "headlines": _headlines(summary),
        "warnings": "".join(f'<p class="warning">{html.escape(text)}</p>' for text in _warnings(summary))
        + _failures(summary),
        "tasks": _options(list(summary["tasks"])),
        "arms": _options(arms),
        "modes": _options(modes),
        "tables": _section("Differences between tasks", "".join(map(html_table, between_tasks(summary))))
        + "".join(_section(heading, section(summary, parts)) for heading, parts in SECTIONS.items()),
        "curves": table_of_curves(summary),
        "provenance": "".join(html_table(table, wrap=True) for table in provenance_tables(summary)) + _words(summary),
        "glossary": _glossary(arms),
        "charts": _json({"curves": learning_curves(summary), "stability": stability_panels(summary, rows)}),
        "count": f"{sum(len(group['episodes']) for group in groups):,}",
        "episodes": packed(groups),
    }
    return _filled((PAGE / "report.html").read_text(encoding="utf-8"), values)


def episode_groups(rows: Sequence[Row], summary: Summary) -> list[Row]:
    """Return the recorded episodes of each evaluation, for the episode browser.

    Where an arm was trained at several learning rates, its name has the rate.
    """
    several = {
        (task, entry["arm"]) for task, figures in summary["tasks"].items() for entry in figures["rates"]["sweep"]
    }
    groups = []
    for row in rows:
        if row["kind"] == "episodes":
            group = {name: row[name] for name in _GROUP}
            if (row["task"], row["arm"]) in several and row["learning_rate"] is not None:
                group["arm"] = f"{row['arm']}, rate {row['learning_rate']:g}"
            groups.append(group)
    return groups


def packed(groups: Sequence[Mapping[str, Any]]) -> str:
    """Return the data of the episode browser as gzip in base64, the same for the same data."""
    return base64.b64encode(gzip.compress(json.dumps(groups).encode(), mtime=0)).decode()


def _filled(template: str, values: Mapping[str, str]) -> str:
    """Return the template with its parts, ``/* include FILE */``, and values, ``<!-- NAME -->``."""

    def part(found: re.Match[str]) -> str:
        path = next(folder / found[1] for folder in (PAGE, SHARED) if (folder / found[1]).is_file())
        return path.read_text(encoding="utf-8")

    whole = re.sub(r"/\* include ([\w./]+) \*/", part, template)
    return re.sub(r"<!-- (\w+) -->", lambda found: values[found[1]], whole)


def _json(value: Any) -> str:
    """Return JSON that a script element can hold."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _headlines(summary: Summary) -> str:
    found = headlines(summary)
    return "".join(f'<p class="headline" data-task="{html.escape(t, quote=True)}">{html.escape(s)}</p>'
                   for t, s in found.items())  # fmt: skip


def _warnings(summary: Summary) -> list[str]:
    """Return what limits the results: few seeds, notes, unfinished runs."""
    found = [" ".join(few_seeds(summary["tasks"])).strip(), *summary["notes"]]
    return [text for text in [*found, *_runs(summary, rates=False)] if text]


def _failures(summary: Summary) -> str:
    """Return the failed runs, each with its traceback below its error."""
    return "".join(
        f'<details class="warning"><summary>Failed: {html.escape(failure_sentence(failure))}</summary>'
        f"<pre>{html.escape(chr(10).join(failure['traceback']) or failure['error'])}</pre></details>"
        for failure in summary["failures"]
    )


def _runs(summary: Summary, *, rates: bool) -> list[str]:
    """Return what the text report has below the titles of the tasks: of learning rates, or of unfinished runs."""
    return [
        f"{task}: {text}"
        for task, figures in summary["tasks"].items()
        for text in paragraphs_of(task_title(task, figures).split("\n")[2:])
        if text.startswith("Learning rates") == rates
    ]


def _section(heading: str, body: str) -> str:
    name = re.sub(r"\W+", "-", heading.lower())
    figures = _STABILITY_FIGURES if heading == "Stability" else ""
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{heading}</h2>{figures}{body}</section>' if body else ""


def _options(names: Sequence[str]) -> str:
    return "".join(f"<option>{html.escape(name)}</option>" for name in names)


def _words(summary: Summary) -> str:
    """Return the learning rates, the hash of the configuration, and how the page is rebuilt."""
    found = summary["provenance"].get("config_hash")
    words = [*_runs(summary, rates=True), *([f"Configuration {found}."] if found else [])]
    words.append("Every figure of this page is rebuilt from rows.jsonl by benchmarks/report.py.")
    return "".join(f'<p class="soft">{html.escape(text)}</p>' for text in words)


def _glossary(arms: Sequence[str]) -> str:
    """Return the arms and the words of the tables as lists."""
    used = {arm: ARMS[arm] for arm in arms if arm in ARMS}
    words = {**LEGEND, **{word: text for word, text in HEADINGS.items() if text not in LEGEND.values()}}
    parts = []
    for title, entries in (("Arms", used), ("Words of the tables", words)):
        listed = "".join(f"<dt>{html.escape(word)}</dt><dd>{html.escape(text)}</dd>" for word, text in entries.items())
        parts.append(f"<h3>{title}</h3><dl>{listed}</dl>" if entries else "")
    return "".join(parts)


def table_of_curves(summary: Summary) -> str:
    """Return the learning curves as a table, for readers who do not see the figures."""
    rows = [
        [task, mode, arm, str(update), f"{100 * mean:.1f}"]
        for task, figures in summary["tasks"].items()
        for mode, block in figures["modes"].items()
        for arm, curve in block["curves"].items()
        for update, mean in zip(curve["updates"], curve["mean"], strict=True)
    ]
    return html_table(Table("Accuracy at each evaluation", ["task", "mode", "arm", "update", "accuracy in %"], rows, 3))
