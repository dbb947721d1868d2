"""The report as plain fixed-width text of at most 110 columns, ASCII only; reads a summary, computes no figure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from benchmarks.intervals import INCONCLUSIVE
from benchmarks.layout import (
    NOTHING,
    WIDTH,
    bracket,
    p_value,
    percent,
    plain,
    points,
    short,
    table,
    with_interval,
    wrapped,
)
from benchmarks.stability import TEAM
from benchmarks.summary import COLLAPSE_FALL, Summary

SIGNIFICANT = 0.05
# Shown in this order where the rows hold them: metric -> heading, and which extreme is the worrying one.
STABILITY = {
    "clip_fraction": ("clipped", "max"),
    "kl_reference": ("KL pi_0", "max"),
    "kl_behaviour": ("KL behav.", "max"),
    "entropy": ("entropy", "min"),
    "mean_length": ("tokens", "max"),
    "grad_norm": ("gradient", "max"),
    "truncated": ("truncated", "max"),
    "empty": ("empty", "max"),
    "skipped": ("skipped", "max"),
    "factor_ess": ("ESS", "min"),
    "factor_clamp_rate": ("clamped", "max"),
    "explained_variance": ("expl. var.", "min"),
    "skipped_batches": ("skipped batches", "max"),
}
METHODS = {
    "t over seeds": "t over seeds (below 10)",
    "hierarchical bootstrap": "hierarchical bootstrap, seeds then items (from 10 on)",
}
BUDGET = {
    "episodes": "episodes",
    "prompt_tokens": "prompt tokens",
    "generated_tokens": "generated tokens",
    "trained_tokens": "trained tokens",
    "optimiser_steps": "optimiser steps",
}


def render_text(summary: Summary) -> str:
    """The whole report; ends with a newline."""
    blocks = [_head(summary)]
    for task, figures in summary["tasks"].items():
        blocks += [_title(task, figures), *(part(figures) for part in PARTS)]
    return "\n\n".join(block for block in [*blocks, _legend(summary)] if block) + "\n"


def _head(summary: Summary) -> str:
    """What was compared, from where, and everything the reader has to know first."""
    lines = ["COMPARISON OF LEARNERS"]
    provenance = summary["provenance"]
    for key in ("config_hash", "hardware", "started"):
        if provenance.get(key):
            lines += wrapped(f"{key.replace('_', ' ')}: {plain(provenance[key])}", "  ")
    for note in summary["notes"]:
        lines += wrapped(f"NOTE: {note}", "  ")
    return "\n".join(lines)


def _title(task: str, figures: Summary) -> str:
    """Task, how many runs are finished, and which are not."""
    runs = figures["runs"]
    title = f"TASK {task}: {runs['finished']} of {runs['planned']} runs finished, {figures['updates']} updates"
    lines = [title, "=" * min(len(title), WIDTH)]
    if runs["unfinished"]:
        where = ", ".join(f"{run['arm']} seed {run['seed']} (update {run['update']})" for run in runs["unfinished"])
        lines += wrapped(f"Unfinished and left out of every figure below: {where}.", "")
    missing = runs["planned"] - runs["finished"] - len(runs["unfinished"])
    if missing > 0:
        lines.append(f"Planned runs without any row yet: {missing}.")
    return "\n".join(lines)


def _accuracy(figures: Summary) -> str:
    """Before and after, with intervals, and every seed's final accuracy."""
    rows = []
    for mode, arm, block in _arms(figures):
        rows.append([mode, arm, str(len(block["seeds"])), with_interval(block["before"]),
                     with_interval(block["after"]), percent(block["iqm"])])  # fmt: skip
    if not rows:
        return ""
    items = any(block["after"]["method"].startswith("Wilson") for _, _, block in _arms(figures))
    title = "Team accuracy in % [95 % t interval over seeds]"
    title += "\nAn arm with one seed: [Wilson interval over items]; it speaks of that model, not of other seeds" * items
    body = table(["mode", "arm", "seeds", "before", "after", "IQM after"], rows, keys=2)
    return f"{title}\n{body}\n\n{_finals(figures)}"


def _finals(figures: Summary) -> str:
    """All seeds, side by side."""
    seeds = sorted({seed for _, _, block in _arms(figures) for seed in block["seeds"]})
    rows = []
    for mode, arm, block in _arms(figures):
        final = dict(zip(block["seeds"], block["finals"], strict=True))
        rows.append([mode, arm, *(percent(final.get(seed)) for seed in seeds)])
    return "Final accuracy of each seed in %\n" + table(["mode", "arm", *(f"s{s}" for s in seeds)], rows, keys=2)


def _pairs(figures: Summary) -> str:
    """Paired differences with interval, power and the word."""
    pairs = [(mode, pair) for mode, block in figures["modes"].items() for pair in block["pairs"]]
    if not pairs:
        return ""
    several = any(pair["holm_tasks"] > 1 for _, pair in pairs)
    headings = ["mode", "pair", "diff.", "95 % interval", "MDE", "seeds", "p", *(["p (Holm)"] if several else [])]
    headings += ["verdict", "P(better)", "items +/-/all"]
    rows = [_pair_row(mode, pair, several) for mode, pair in pairs]
    lines = ["Paired difference of final accuracy in points, first arm minus second, on the same seeds and items"]
    lines += [table(headings, rows, keys=2), *_pair_words(pairs)]
    return "\n".join(lines)


def _pair_row(mode: str, pair: Summary, several: bool) -> list[str]:
    name = f"{pair['first']} - {pair['second']}"
    spread = pair.get("minimum_detectable")
    interval = bracket(pair.get("low"), pair.get("high"), points)
    row = [mode, name, points(pair.get("mean")), interval, percent(spread or None), str(len(pair["seeds"]))]
    row += [p_value(pair.get("p"))] + ([p_value(pair["p_holm"])] if several else [])
    if "items" not in pair:
        return [*row, _verdict(pair), NOTHING, NOTHING]
    counts = f"{pair['first_better']}/{pair['second_better']}/{pair['items']}"
    return [*row, _verdict(pair), f"{pair['probability_of_improvement']:.2f}", counts]


def _verdict(pair: Summary) -> str:
    """The word; a star where Holm's correction takes the difference back."""
    holm = pair["p_holm"]
    word: str = pair["verdict"]
    taken_back = word != INCONCLUSIVE and holm is not None and holm >= SIGNIFICANT
    return word + (" *" if taken_back else "")


def _pair_words(pairs: Sequence[tuple[str, Summary]]) -> list[str]:
    """What the table cannot say, each remark once with the pairs it holds for."""
    methods = sorted({pair["method"] for _, pair in pairs if not pair.get("method", "none").startswith("none")})
    lines = [f"  Interval: {', '.join(METHODS[method] for method in methods)}."] if methods else []
    remarks: dict[str, dict[str, None]] = {}
    for mode, pair in pairs:
        for remark in _remarks(pair):
            remarks.setdefault(remark, {})[f"{mode} {pair['first']} - {pair['second']}"] = None
    for remark, names in remarks.items():
        where = "all pairs" if len(names) == len(pairs) else ", ".join(names)
        lines += wrapped(f"{remark} ({where}).", "  ")
    if any(_verdict(pair).endswith("*") for _, pair in pairs):
        lines.append("  * not after Holm's correction over the tasks: treat as inconclusive.")
    return lines


def _remarks(pair: Summary) -> list[str]:
    """Whole sentences about what limits one comparison."""
    said = [f"{pair['reason'].capitalize()}, therefore {INCONCLUSIVE}"] if pair["reason"] else []
    if pair["unpaired_seeds"] and pair["seeds"]:
        said.append(f"Only seeds finished in both arms are compared: {', '.join(map(str, pair['seeds']))}; "
                    f"{pair['unpaired_seeds']} finished in one arm only")  # fmt: skip
    if pair.get("items_left_out"):
        said.append(f"{pair['items_left_out']} items graded in one arm only are left out")
    if pair.get("items") and pair["first_better"] == pair["second_better"] == 0:
        said.append("Identical on every item of every seed")
    elif len(pair["seeds"]) > 1 and pair["minimum_detectable"] == 0:
        said.append("The same difference in every seed, so the seeds show no spread and there is no MDE")
    return said


def _course(figures: Summary) -> str:
    """How training went: area, threshold, falls, and answers that could not be scored."""
    rows = []
    for mode, arm, block in _arms(figures):
        area, seeds, answers = block["area_under_curve"], len(block["seeds"]), block["graded"]
        falls = (sum(block["largest_fall"]) / seeds, max(block["largest_fall"]), max(block["final_fall"]))
        rows.append([
            mode, arm, with_interval(area) if area else NOTHING,
            _threshold(figures["modes"][mode]["threshold"], block, figures["updates"]),
            "/".join(percent(fall) for fall in falls), f"{block['collapsed']}/{seeds}",
            f"{block['no_answer']}/{answers}", f"{block['not_graded']}/{answers + block['not_graded']}",
        ])  # fmt: skip
    headings = ["mode", "arm", "area under curve", "updates to level", "fall mean/max/end", "collapsed", "NO_ANSWER",
                "NOT_GRADED"]  # fmt: skip
    return f"Course of training (area, level and falls in %)\n{table(headings, rows, keys=2)}" if rows else ""


def _threshold(level: float | None, block: Summary, last: int) -> str:
    """`5 to 56.7 (4/5)`: median updates to the level, and how many seeds reached it."""
    if level is None:
        return NOTHING
    middle = block["updates_to_threshold"]
    updates = f">{last}" if middle is None else f"{middle:g}"
    return f"{updates} to {percent(level)} ({block['threshold_reached']}/{len(block['seeds'])})"


def _budget(figures: Summary) -> str:
    """What one run used, and whether the arms used the same."""
    used = {arm: block for arm, block in figures["budget"].items() if block}
    if not used:
        return ""
    keys = [key for key in BUDGET if any(key in block for block in used.values())]
    rows = [
        [arm, *(f"{block[key]:,.0f}" if key in block else NOTHING for key in keys),
         f"{block['wall_s']:,.1f}" if "wall_s" in block else NOTHING]
        for arm, block in used.items()
    ]  # fmt: skip
    lines = ["Budget of one run (mean over seeds)", table(["arm", *(BUDGET[key] for key in keys), "wall s"], rows)]
    gaps = {BUDGET[key]: _relative_gap([block[key] for block in used.values() if key in block]) for key in keys}
    equal = [name for name, gap in gaps.items() if gap == 0]
    unequal = [f"{name} (by {percent(gap) if gap >= 0.0005 else '<0.1'} %)" for name, gap in gaps.items() if gap > 0]
    if len(used) > 1:
        words = [f"equal in all arms: {', '.join(equal)}"] if equal else []
        words += [f"differ: {', '.join(unequal)}"] if unequal else []
        lines += wrapped("; ".join(words).capitalize() + ".", "  ")
    for arm, block in used.items():
        if block["not_cumulative"]:
            lines.append(f"  NOTE: {arm}: {', '.join(block['not_cumulative'])} falls during a run; expected a total.")
    return "\n".join(lines)


def _relative_gap(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / max(values) if max(values) > 0 else 0.0


def _seconds(figures: Summary) -> str:
    """Seconds of one update and the stages they go to."""
    spent = {arm: block for arm, block in figures["seconds"].items() if block}
    stages = list(dict.fromkeys(stage for block in spent.values() for stage in block if stage != "wall_s"))
    rows = []
    for arm, block in spent.items():
        wall = block.get("wall_s", 0.0)
        known = sum(block.get(stage, 0.0) for stage in stages)
        shares = [(block.get(stage), wall or known) for stage in stages] + [(max(0.0, wall - known), wall)]
        rows.append([arm, f"{wall:.3f}" if wall else NOTHING, *(_share(part, whole) for part, whole in shares)])
    body = table(["arm", "one update", *stages, "other"], rows) if rows else ""
    return f"Seconds of one update and where they go (mean over updates and seeds)\n{body}" if rows else ""


def _share(part: float | None, whole: float) -> str:
    """`0.705 (19%)`; above a second two decimals are enough."""
    if part is None or whole <= 0:
        return NOTHING
    return f"{part:.{2 if whole >= 1 else 3}f} ({100 * part / whole:.0f}%)"


def _stability(figures: Summary) -> str:
    """Per agent, then for the whole team: mean of late updates, in brackets the worrying extreme."""
    found = [(arm, name, metrics) for arm, block in figures["stability"].items() for name, metrics in block.items()]
    agents = _stability_table([row for row in found if row[1] != TEAM])
    team = _stability_table([row for row in found if row[1] == TEAM])
    title = (
        "Stability per agent: mean over the last quarter of updates (in brackets over all updates and seeds: the\n"
        "smallest entropy, ESS and explained variance, else the largest value)"
    )
    return "\n".join([title, *filter(None, (agents, team))]) if agents or team else ""


def _stability_table(found: Sequence[tuple[str, str, Summary]]) -> str:
    metrics = [metric for metric in STABILITY if any(metric in figures for _, _, figures in found)]
    headings = ["arm", "agent", *(STABILITY[metric][0] for metric in metrics)]
    rows = [[arm, name, *(_late(figures.get(metric), STABILITY[metric][1]) for metric in metrics)]
            for arm, name, figures in found if set(figures) & set(metrics)]  # fmt: skip
    return table(headings, rows, keys=2) if rows else ""


def _late(found: Summary | None, extreme: str) -> str:
    return NOTHING if found is None or found["late"] is None else f"{short(found['late'])} ({short(found[extreme])})"


PARTS: tuple[Callable[[Summary], str], ...] = (_accuracy, _pairs, _course, _budget, _seconds, _stability)


def _legend(summary: Summary) -> str:
    """The words the tables use, once."""
    words = {
        "before, after": "accuracy before training and after the last update, on held-out problems",
        "IQM": "interquartile mean over seeds: the middle half of them",
        "MDE": "minimum detectable effect: smallest true difference, in points, that a paired t-test with this spread "
               "and number of seeds finds with power 0.8 at level 0.05",
        "p": "two-sided, by the method of the interval",
        "p (Holm)": "corrected over the tasks, for each pair of arms and decoding mode",
        "inconclusive": "the 95 % interval of the difference contains 0 or does not exist",
        "P(better)": "chance that a run of the first arm ends above a run of the second, ties counted half",
        "items +/-/all": "discordant items over all seeds: first arm scores higher / second arm higher / all",
        "area": "area under the curve per update: the mean accuracy on the way",
        "level": "half-way from the mean start to the best mean end; median updates (seeds that reach it)",
        "fall": "points below the run's own running best: largest, mean and max over seeds; max at the end",
        "collapsed": f"runs that end more than {100 * COLLAPSE_FALL:.0f} points below their own running best",
        "NO_ANSWER": "of graded items in the final evaluation; NOT_GRADED (a grader's fault) is in no accuracy",
    }  # fmt: skip
    if len(summary["tasks"]) == 1:
        del words["p (Holm)"]
    column = max(map(len, words)) + 2
    lines = [textwrap.wrap(text, WIDTH - 2 - column) for text in words.values()]
    parts = [
        f"  {word.ljust(column)}" + f"\n  {' ' * column}".join(part) for word, part in zip(words, lines, strict=True)
    ]
    return "\n".join(["Words", *parts])


def _arms(figures: Summary) -> list[tuple[str, str, Summary]]:
    return [(mode, arm, block) for mode, modes in figures["modes"].items() for arm, block in modes["arms"].items()]
