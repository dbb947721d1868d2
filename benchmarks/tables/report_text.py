"""Text of the report: ASCII of at most 110 columns. Formats a summary and computes no figure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from benchmarks.analysis.pairs import Summary
from benchmarks.tables.cost_tables import BUDGET_PARTS, STABILITY_PARTS
from benchmarks.tables.cost_tables import PARTS as COST
from benchmarks.tables.glossary import LEGEND
from benchmarks.tables.layout import (
    NOTHING,
    WIDTH,
    Block,
    Table,
    blocks_text,
    percent,
    rate,
    with_interval,
    wrapped,
)
from benchmarks.tables.pair_tables import PARTS as PAIRS
from benchmarks.tables.pair_tables import arms_of, between_tasks
from benchmarks.tables.report_head import head
from benchmarks.tables.role_tables import PARTS as ROLES
from benchmarks.tables.role_tables import drop

FLAT = 0.02  # a smaller rise of greedy accuracy counts as none


def render_text(summary: Summary) -> str:
    """Return the whole report, which ends with a newline.

    Args:
        summary: Result of ``summarise``.
    """
    blocks = [head(summary)]
    for task, figures in summary["tasks"].items():
        blocks += [task_title(task, figures), *blocks_text([block for part in PARTS for block in part(figures)])]
    blocks += [table.text() for table in between_tasks(summary)]
    return "\n\n".join(block for block in [*blocks, _legend(summary)] if block) + "\n"


def task_title(task: str, figures: Summary) -> str:
    """Return the heading of a task: its finished and unfinished runs and the learning rates."""
    runs = figures["runs"]
    title = f"TASK {task}: {runs['finished']} of {runs['planned']} runs finished, {figures['updates']} updates"
    lines = [title, "=" * min(len(title), WIDTH)]
    if runs["unfinished"]:
        names = ", ".join(map(_run_name, runs["unfinished"]))
        lines += wrapped(f"Unfinished, and left out of all figures below: {names}.", "")
    missing = runs["planned"] - runs["finished"] - len(runs["unfinished"])
    if missing > 0:
        lines.append(f"Planned runs that have not started: {missing}.")
    return "\n".join([*lines, *_rates(figures["rates"])])


def _run_name(run: Summary) -> str:
    setting = f" lr {rate(run['rate'])}" if "rate" in run else ""
    return f"{run['arm']}{setting} seed {run['seed']} (update {run['update']})"


def _rates(rates: Summary) -> list[str]:
    """Return the learning rate of each arm in the tables, and how it was selected."""
    learning = {arm: value for arm, value in rates["selected"].items() if value is not None}
    if not learning:
        return []
    counts = {arm: max(1, sum(entry["arm"] == arm for entry in rates["sweep"])) for arm in learning}
    listed = ", ".join(f"{arm} {rate(value)}" for arm, value in learning.items())
    number = (
        "one rate for each arm" if set(counts.values()) == {1} else f"selected from {max(counts.values())} for each arm"
    )
    if len(set(counts.values())) > 1:
        number = "UNEQUAL numbers of rates: " + ", ".join(f"{arm} {count}" for arm, count in counts.items())
    by = ", by training reward, never by held-out items" if max(counts.values()) > 1 else ""
    return wrapped(f"Learning rates: {listed} ({number}{by}).", "")


def _accuracy(figures: Summary) -> list[Block]:
    """Return the accuracy before and after training, and every seed's final accuracy."""
    blocks = arms_of(figures)
    if not blocks:
        return []
    rows = [
        [mode, arm, str(len(block["seeds"])), with_interval(block["before"]), with_interval(block["after"]),
         percent(block["iqm"])] for mode, arm, block in blocks
    ]  # fmt: skip
    single = [len(block["seeds"]) == 1 for _, _, block in blocks]
    title = "Team accuracy in % [95 % t interval over seeds]"
    if all(single):
        title = (
            "Team accuracy in % of one seed [95 % Wilson interval over items: about this model, not about other seeds]"
        )
    elif any(single):
        title += "\nAn arm with one seed has a Wilson interval over items: about this model, not about other seeds"
    headings = ["mode", "arm", "seeds", "before", "after", "IQM after"]
    return [Table(title, headings, rows, keys=2), *_sharpening(figures), _finals(figures)]


def _sharpening(figures: Summary) -> list[Block]:
    """Return a note about arms whose sampled accuracy only approaches the greedy accuracy before training."""
    modes = figures["modes"]
    if not {"sampled", "greedy"} <= set(modes):
        return []
    sampled, greedy = modes["sampled"]["arms"], modes["greedy"]["arms"]
    below = [arm for arm in sampled if arm in greedy and _sharpens(sampled[arm], greedy[arm])]
    if not below:
        return []
    start = max(greedy[arm]["before"]["mean"] for arm in below)
    text = f"Greedy accuracy starts at {percent(start)} %, above the final sampled accuracy, and does not rise "
    text += f"({', '.join(below)}): the team became more confident in answers that it already knew (sharpening)."
    return ["\n".join(wrapped(text, ""))]


def _sharpens(sampled: Summary, greedy: Summary) -> bool:
    start = greedy["before"]["mean"]
    least = sampled["gain"]["low"]  # None without an interval
    # A rise that may be noise is not called sharpening: the interval of the gain must exclude 0.
    rises = least is not None and least > 0 and sampled["after"]["mean"] <= start
    return rises and greedy["after"]["mean"] < start + FLAT


def _finals(figures: Summary) -> Table:
    """Return a table of the final accuracy of every seed."""
    seeds = sorted({seed for _, _, block in arms_of(figures) for seed in block["seeds"]})
    rows = []
    for mode, arm, block in arms_of(figures):
        final = dict(zip(block["seeds"], block["finals"], strict=True))
        rows.append([mode, arm, *(percent(final.get(seed)) for seed in seeds)])
    return Table("Final accuracy of each seed in %", ["mode", "arm", *(f"s{s}" for s in seeds)], rows, keys=2)


def _course(figures: Summary) -> list[Block]:
    """Return the course of training: area under the curve, level, best evaluation and falls."""
    rows = []
    for mode, arm, block in arms_of(figures):
        area, seeds = block["area_under_curve"], len(block["seeds"])
        falls = (sum(block["largest_fall"]) / seeds, max(block["largest_fall"]), max(block["final_fall"]))
        rows.append([
            mode, arm, with_interval(area) if area else NOTHING,
            _threshold(figures["modes"][mode]["threshold"], block, figures["updates"]),
            with_interval(block["best"]) if block["best"] else NOTHING,
            "/".join(percent(fall) for fall in falls), f"{block['collapsed']}/{seeds}",
        ])  # fmt: skip
    headings = ["mode", "arm", "area under curve", "updates to level", "best by training", "fall mean/max/end",
                "collapsed"]  # fmt: skip
    return [Table("Course of training (area, level, best and falls in %)", headings, rows, keys=2)] if rows else []


def _unscored(figures: Summary) -> list[Block]:
    """Return the shares of NO_ANSWER among answers and of NOT_GRADED among items and training episodes."""
    rows = [
        [mode, arm, str(block["answers"]), _share(block["no_answer"], block["answers"]),
         str(block["graded"] + block["not_graded"]), _share(block["not_graded"], block["graded"] + block["not_graded"]),
         _training_faults(figures, arm)]
        for mode, arm, block in arms_of(figures)
    ]  # fmt: skip
    headings = ["mode", "arm", "answers", "NO_ANSWER", "items", "NOT_GRADED", "NOT_GRADED in training"]
    title = "Final evaluations, all seeds: NO_ANSWER in % of the answers (count), NOT_GRADED in % of the items and\n"
    title += "of the training episodes. An item has an answer of each answering agent"
    return [Table(title, headings, rows, keys=2)] if rows else []


def _training_faults(figures: Summary, arm: str) -> str:
    used = figures["budget"].get(arm) or {}
    return _share(used["not_graded"], used["episodes"]) if "not_graded" in used and "episodes" in used else NOTHING


def _threshold(level: float | None, block: Summary, last: int) -> str:
    """Format the median updates to the level and the seeds that reach it, as in ``5 to 56.7 (4/5)``."""
    if level is None:
        return NOTHING
    middle = block["updates_to_threshold"]
    updates = f">{last}" if middle is None else f"{middle:g}"
    return f"{updates} to {percent(level)} ({block['threshold_reached']}/{len(block['seeds'])})"


def _share(count: float, of: float) -> str:
    """Format a share as ``1.2 (3)``: percent and count."""
    return f"{percent(count / of)} ({count:g})" if of else NOTHING


def _cooperation(figures: Summary) -> list[Block]:
    """Return the effect of shuffling messages, and statistics of what the agents write."""
    drops = [
        [arm, speaker, *(drop(found.get(name)) for name in ("before", "after"))]
        for arm, speakers in figures["cooperation"].items()
        for speaker, found in speakers.items()
    ]
    written = [
        [arm, agent, f"{f['tokens']:.1f}", percent(f["empty"]), percent(f["repeated"]), percent(f["distinct"])]
        for arm, agents in figures["messages"].items()
        for agent, f in agents.items()
    ]
    parts: list[Block] = []
    if drops:
        title = "Cooperation: drop of sampled accuracy in points when a speaker's messages are shuffled"
        parts.append(Table(title, ["arm", "speaker", "drop before", "drop after"], drops, keys=2))
    if written:
        title = "Messages of the final sampled evaluation: tokens per reply, and shares of the agent's replies in %"
        heads = ["arm", "agent", "tokens per reply", "empty", "repeated", "distinct"]
        parts.append(Table(title, heads, written, keys=2))
    return parts


PARTS: tuple[Callable[[Summary], list[Block]], ...] = (
    _accuracy,
    *PAIRS,
    _course,
    _unscored,
    _cooperation,
    *ROLES,
    *COST,
)
SECTIONS: dict[str, tuple[Callable[[Summary], list[Block]], ...]] = {
    "Differences between arms": PAIRS,
    "Accuracy": (_accuracy, _course, _unscored),
    "Cooperation": (_cooperation,),
    "Roles": ROLES,
    "Stability": STABILITY_PARTS,
    "Budget": BUDGET_PARTS,
}
"""Heading of the HTML report -> the parts below it."""


def _legend(summary: Summary) -> str:
    """Return the glossary of the tables."""
    words = dict(LEGEND)
    if len(summary["tasks"]) == 1:
        del words["p (Holm)"]
    column = max(map(len, words)) + 2
    lines = [textwrap.wrap(text, WIDTH - 2 - column) for text in words.values()]
    parts = [
        f"  {word.ljust(column)}" + f"\n  {' ' * column}".join(part) for word, part in zip(words, lines, strict=True)
    ]
    return "\n".join(["Words", *parts])
