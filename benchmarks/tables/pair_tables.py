"""Tables of the differences between arms: at the selected rates, at equal rates, at equal tokens; and of the sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.analysis.intervals import IDENTICAL, INCONCLUSIVE
from benchmarks.analysis.pairs import Summary
from benchmarks.tables.layout import (
    NOTHING,
    Block,
    Table,
    bracket,
    p_value,
    percent,
    points,
    rate,
    with_interval,
    wrapped,
)

SIGNIFICANT = 0.05
SAME_TOKENS = 0.01
METHODS = {
    "t over seeds": "t over seeds (below 10)",
    "hierarchical bootstrap": "hierarchical bootstrap, seeds then items (from 10 on)",
}


def arms_of(figures: Summary) -> list[tuple[str, str, Summary]]:
    """Return (mode, arm, figures) for every arm in every mode."""
    return [(mode, arm, block) for mode, modes in figures["modes"].items() for arm, block in modes["arms"].items()]


def _pairs(figures: Summary) -> list[Block]:
    """Return the paired differences with interval, verdict and power."""
    pairs = [(mode, pair) for mode, block in figures["modes"].items() for pair in block["pairs"]]
    if not pairs:
        return []
    several = any(pair["holm_tasks"] > 1 for _, pair in pairs)
    headings = ["mode", "pair", "diff.", "95 % interval", "verdict", "MDE", "seeds", "p"]
    headings += [*(["p (Holm)"] if several else []), "P(better)", "items +/-/all"]
    rows = [_pair_row(mode, pair, several) for mode, pair in pairs]
    title = "Paired difference of final accuracy in points, first arm minus second, on the same seeds and items"
    return [Table(title, headings, rows, keys=2, notes=_notes(pairs, "tasks"))]


def between_tasks(summary: Summary) -> list[Table]:
    """Return the differences between each task and the reference of the study; nothing without a reference."""
    pairs = [(pair["mode"], pair) for pair in summary["task_differences"]]
    if not pairs:
        return []
    headings = ["mode", "tasks", "arm", "diff.", "95 % interval", "verdict", "MDE", "seeds", "p", "p (Holm)"]
    rows = []
    for mode, pair in pairs:
        shown, name, *cells = _pair_row(mode, pair, True)
        rows.append([shown, name, pair["arm"], *cells])
    title = "Differences between tasks: final accuracy in points, first task minus second, the same arm and seeds"
    notes = _notes([(f"{mode} {pair['arm']}", pair) for mode, pair in pairs], "tasks")
    return [Table(title, [*headings, "P(better)", "items +/-/all"], rows, keys=3, notes=notes)]


def _pair_row(mode: str, pair: Summary, several: bool) -> list[str]:
    name = f"{pair['first']} - {pair['second']}"
    interval = bracket(pair.get("low"), pair.get("high"), points)
    row = [mode, name, points(pair.get("mean")), interval, _verdict(pair)]
    row += [percent(pair.get("minimum_detectable")), str(len(pair["seeds"]))]
    row += [p_value(pair.get("p"))] + ([p_value(pair["p_holm"])] if several else [])
    if "items" not in pair:
        return [*row, NOTHING, NOTHING]
    counts = f"{pair['first_better']}/{pair['second_better']}/{pair['items']}"
    return [*row, f"{pair['probability_of_improvement']:.2f}", counts]


def _verdict(pair: Summary) -> str:
    """Return the verdict, with a star if it is withdrawn."""
    word: str = pair["verdict"]
    return word + (" *" if withdrawn(pair) else "")


def withdrawn(pair: Summary) -> bool:
    """Return whether a difference does not hold after Holm's correction."""
    holm = pair["p_holm"]
    return pair["verdict"] not in (INCONCLUSIVE, IDENTICAL) and holm is not None and bool(holm >= SIGNIFICANT)


def _notes(pairs: Sequence[tuple[str, Summary]], family: str) -> list[str]:
    """Return the notes below a table of pairs, each with the pairs to which it applies.

    Args:
        pairs: (mode, figures) of each row.
        family: Name of what Holm's correction is over.
    """
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
        lines.append(f"  * not significant after Holm's correction over {family}: treat as inconclusive.")
    return lines


def _remarks(pair: Summary) -> list[str]:
    """Return what limits one comparison, as sentences."""
    remarks = [f"{pair['reason'].capitalize()}, therefore {INCONCLUSIVE}"] if pair["reason"] else []
    if pair["unpaired_seeds"] and pair["seeds"]:
        remarks.append(f"Only seeds finished in both arms are compared: {', '.join(map(str, pair['seeds']))}; "
                    f"{pair['unpaired_seeds']} finished in one arm only")  # fmt: skip
    if pair.get("items_left_out"):
        remarks.append(f"{pair['items_left_out']} items that were graded in one arm only are left out")
    if pair["verdict"] == IDENTICAL:
        remarks.append("Identical on every item of every seed")
    return remarks


def _sweep(figures: Summary) -> list[Block]:
    """Return the learning-rate sweep: the training reward that selects a rate, and the accuracy after training."""
    sweep = figures["rates"]["sweep"]
    if not sweep:
        return []
    modes = list(sweep[0]["after"])
    rows = [
        [entry["arm"], rate(entry["rate"]), f"{len(entry['seeds'])}/{entry['started']}", percent(entry["reward"]),
         "*" if entry["selected"] else "", f"{entry['collapsed']}/{len(entry['seeds'])}",
         *(with_interval(after) if (after := entry["after"][mode]) else NOTHING for mode in modes)] for entry in sweep
    ]  # fmt: skip
    headings = ["arm", "rate", "seeds", "reward", "selected", "collapsed", *(f"{mode} after" for mode in modes)]
    title = (
        "Learning-rate sweep: accuracy in %. The rate with the highest reward is selected: the mean training reward\n"
    )
    title += "in % over the last quarter of updates"
    return [Table(title, headings, rows, keys=2)]


def _same_rate(figures: Summary) -> list[Block]:
    """Return the differences between neighbours on the ladder at equal learning rates."""
    pairs = figures["rates"]["same_rate"]
    if not pairs:
        return []
    rows = [
        [pair["mode"], rate(pair["rate"]), f"{pair['first']} - {pair['second']}", points(pair.get("mean")),
         bracket(pair.get("low"), pair.get("high"), points), _verdict(pair),
         percent(pair.get("minimum_detectable")), str(len(pair["seeds"])), p_value(pair.get("p")),
         p_value(pair["p_holm"])] for pair in pairs
    ]  # fmt: skip
    headings = ["mode", "rate", "pair", "diff.", "95 % interval", "verdict", "MDE", "seeds", "p", "p (Holm)"]
    title = "Paired difference at equal learning rates, neighbours on the ladder (Holm over tasks and rates)"
    notes = _notes([(f"{pair['mode']} {rate(pair['rate'])}", pair) for pair in pairs], "tasks and rates")
    return [Table(title, headings, rows, keys=3, notes=notes)]


def _equal_tokens(figures: Summary) -> list[Block]:
    """Return the differences at equal generated tokens."""
    known = {mode: block["equal_tokens"] for mode, block in figures["modes"].items() if block["equal_tokens"]}
    if not known:
        return []
    budget, spread = next((found["tokens"], found["spread"]) for found in known.values())
    if spread < SAME_TOKENS:
        text = (
            f"At equal tokens: as above, since the runs' generated tokens are within {percent(spread)} % of each other."
        )
        return ["\n".join(wrapped(text, ""))]
    rows = []
    for mode, found in known.items():
        for pair in found["pairs"]:
            levels = (percent(found["arms"][pair[name]]["mean"]) for name in ("first", "second"))
            interval = bracket(pair["low"], pair["high"], points)
            name = f"{pair['first']} - {pair['second']}"
            rows.append([mode, name, *levels, points(pair["mean"]), interval, pair["verdict"]])
    title = f"Paired difference at equal tokens: accuracy in % after {budget:,.0f} generated training tokens"
    headings = ["mode", "pair", "first", "second", "diff.", "95 % interval", "verdict"]
    return [Table(title, headings, rows, keys=2)]


PARTS: tuple[Callable[[Summary], list[Block]], ...] = (_pairs, _sweep, _same_rate, _equal_tokens)
