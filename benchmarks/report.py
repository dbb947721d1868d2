"""Rebuild the report of a results folder from its rows.jsonl.

    python benchmarks/report.py RESULTS_FOLDER

Writes report.html, report.md, summary.json and the curves of each task into the folder, and prints the tables. Needs
numpy, scipy and matplotlib, not torch. Exit code 2, with one line on stderr: the folder cannot be reported.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__" and not __package__:  # run as a file: the repository root replaces this folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.analysis.read_rows import ReportError, load_rows
from benchmarks.analysis.summary import Summary, summarise
from benchmarks.tables.curves import curve_name, draw_curves, rates_name
from benchmarks.tables.headline import headlines
from benchmarks.tables.html_report import render_html
from benchmarks.tables.report_text import render_text

__all__ = ["ReportError", "draw_curves", "load_rows", "main", "render_text", "summarise", "write_report"]


def write_report(folder: Path | str) -> str:
    """Write summary.json, the curves, report.md and report.html from ``folder/rows.jsonl`` alone.

    Args:
        folder: Results folder of ``compare.py``.

    Returns:
        The text of the report.

    Raises:
        ReportError: The folder or a row cannot be used.
    """
    folder = Path(folder)
    rows = load_rows(folder)
    summary = summarise(rows)
    text = render_text(summary)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    draw_curves(summary, folder)
    (folder / "report.md").write_text(_markdown(summary, text), encoding="utf-8")
    (folder / "report.html").write_text(render_html(summary, rows), encoding="utf-8")
    return text


def _markdown(summary: Summary, text: str) -> str:
    """Return the result in a sentence for each task, the text, and the curves."""
    images = []
    for task, figures in summary["tasks"].items():
        images.append(f"![learning curves, {task}]({curve_name(task)})")
        if figures["rates"]["sweep"]:
            images.append(f"![learning rates, {task}]({rates_name(task)})")
    results = "\n".join(f"* {sentence}" for sentence in headlines(summary).values())
    return f"# Comparison of learners\n\n{results}\n\n```text\n{text}```\n\n" + "\n".join(images) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of report.py and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/report.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results_folder", type=Path, help="folder that compare.py wrote, with rows.jsonl")
    folder = parser.parse_args(arguments).results_folder
    try:
        text = write_report(folder)
    except ReportError as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"report: cannot read or write in {folder}: {error.strerror or error}", file=sys.stderr)
        return 2
    print(text, end="")
    print(f"\nWritten to {folder}: report.html, report.md, summary.json, curve_*.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
