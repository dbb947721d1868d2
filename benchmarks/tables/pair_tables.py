"""The report's tables of differences between arms: at each arm's best rate, at the same rate, at equal tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.analysis.intervals import IDENTICAL, INCONCLUSIVE
from benchmarks.analysis.pairs import Summary
from benchmarks.tables.layout import NOTHING, bracket, p_value, percent, points, rate, table, with_interval, wrapped

SIGNIFICANT = 0.05
SAME_TOKENS = 0.01
METHODS = {
    "t over seeds": "t over seeds (below 10)",
    "hierarchical bootstrap": "hierarchical bootstrap, seeds then items (from 10 on)",
}


def arms_of(figures: Summary) -> list[tuple[str, str, Summary]]:
    """(mode, arm, figures) of every arm in every mode."""
    return [(mode, arm, block) for mode, modes in figures["modes"].items() for arm, block in modes["arms"].items()]


def _pairs(figures: Summary) -> str:
    """Paired differences with interval, power and the word."""
    pairs = [(mode, pair) for mode, block in figures["modes"].items() for pair in block["pairs"]]
    if not pairs:
        return ""
    several = any(pair["holm_tasks"] > 1 for _, pair in pairs)
    headings = ["mode", "pair", "diff.", "95 % interval", "verdict", "MDE", "seeds", "p"]
    headings += [*(["p (Holm)"] if several else []), "P(better)", "items +/-/all"]
    rows = [_pair_row(mode, pair, several) for mode, pair in pairs]
    lines = ["Paired difference of final accuracy in points, first arm minus second, on the same seeds and items"]
    lines += [table(headings, rows, keys=2), *_pair_words(pairs, "tasks")]
    return "\n".join(lines)


def _pair_row(mode: str, pair: Summary, several: bool) -> list[str]:
    name = f"{pair['first']} - {pair['second']}"
    interval = bracket(pair.get("low"), pair.get("high"), points)
    row = [mode, name, points(pair.get("mean")), interval, _verdict(pair)]
    row += [_detectable(pair), str(len(pair["seeds"]))]
    row += [_p(pair, "p")] + ([_p(pair, "p_holm")] if several else [])
    if "items" not in pair:
        return [*row, NOTHING, NOTHING]
    counts = f"{pair['first_better']}/{pair['second_better']}/{pair['items']}"
    return [*row, f"{pair['probability_of_improvement']:.2f}", counts]


def _detectable(pair: Summary) -> str:
    """Nothing where the seeds show no spread."""
    return percent(pair.get("minimum_detectable") or None)


def _p(pair: Summary, name: str) -> str:
    """Nothing for identical arms: there was no difference to test."""
    return NOTHING if pair["verdict"] == IDENTICAL else p_value(pair.get(name))


def _verdict(pair: Summary) -> str:
    """The word; a star where Holm's correction takes the difference back."""
    holm = pair["p_holm"]
    word: str = pair["verdict"]
    taken_back = word not in (INCONCLUSIVE, IDENTICAL) and holm is not None and holm >= SIGNIFICANT
    return word + (" *" if taken_back else "")


def _pair_words(pairs: Sequence[tuple[str, Summary]], family: str) -> list[str]:
    """What the table cannot say, each remark once with the pairs it holds for. family: what Holm corrects over."""
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
        lines.append(f"  * not after Holm's correction over the {family}: treat as inconclusive.")
    return lines


def _remarks(pair: Summary) -> list[str]:
    """Whole sentences about what limits one comparison."""
    said = [f"{pair['reason'].capitalize()}, therefore {INCONCLUSIVE}"] if pair["reason"] else []
    if pair["unpaired_seeds"] and pair["seeds"]:
        said.append(f"Only seeds finished in both arms are compared: {', '.join(map(str, pair['seeds']))}; "
                    f"{pair['unpaired_seeds']} finished in one arm only")  # fmt: skip
    if pair.get("items_left_out"):
        said.append(f"{pair['items_left_out']} items graded in one arm only are left out")
    if pair["verdict"] == IDENTICAL:
        said.append("Identical on every item of every seed")
    elif len(pair["seeds"]) > 1 and pair["minimum_detectable"] == 0:
        said.append("The same difference in every seed, so the seeds show no spread and there is no MDE")
    return said


def _trials(figures: Summary) -> str:
    """Every learning rate of every arm: what it was chosen by, and what came of it."""
    trials = figures["rates"]["trials"]
    if not trials:
        return ""
    modes = list(trials[0]["after"])
    rows = [
        [trial["arm"], rate(trial["rate"]), f"{len(trial['seeds'])}/{trial['started']}", percent(trial["reward"]),
         "*" if trial["chosen"] else "", f"{trial['collapsed']}/{len(trial['seeds'])}",
         *(with_interval(after) if (after := trial["after"][mode]) else NOTHING for mode in modes)] for trial in trials
    ]  # fmt: skip
    headings = ["arm", "rate", "seeds", "reward", "chosen", "collapsed", *(f"{mode} after" for mode in modes)]
    title = "All trials of the learning rate, accuracy in %. The choice is by the reward, the mean training reward (%)"
    title += "\nof the last quarter of updates"
    return f"{title}\n{table(headings, rows, keys=2)}"


def _same_rate(figures: Summary) -> str:
    """Steps of the ladder with the learning rate held equal."""
    pairs = figures["rates"]["same_rate"]
    if not pairs:
        return ""
    rows = [
        [pair["mode"], rate(pair["rate"]), f"{pair['first']} - {pair['second']}", points(pair.get("mean")),
         bracket(pair.get("low"), pair.get("high"), points), _verdict(pair),
         _detectable(pair), str(len(pair["seeds"])), _p(pair, "p"), _p(pair, "p_holm")] for pair in pairs
    ]  # fmt: skip
    headings = ["mode", "rate", "pair", "diff.", "95 % interval", "verdict", "MDE", "seeds", "p", "p (Holm)"]
    lines = ["The same at equal learning rates, steps of the ladder (Holm over tasks and rates)"]
    words = _pair_words([(f"{pair['mode']} {rate(pair['rate'])}", pair) for pair in pairs], "tasks and rates")
    return "\n".join([*lines, table(headings, rows, keys=3), *words])


def _equal_tokens(figures: Summary) -> str:
    """The differences where every arm had generated as many tokens as the most frugal run in all."""
    known = {mode: block["equal_tokens"] for mode, block in figures["modes"].items() if block["equal_tokens"]}
    if not known:
        return ""
    budget, spread = next((found["tokens"], found["spread"]) for found in known.values())
    if spread < SAME_TOKENS:
        told = f"At equal tokens: as above; the runs' generated tokens lie within {percent(spread)} % of each other."
        return "\n".join(wrapped(told, ""))
    rows = []
    for mode, found in known.items():
        for pair in found["pairs"]:
            levels = (percent(found["arms"][pair[name]]["mean"]) for name in ("first", "second"))
            interval = bracket(pair["low"], pair["high"], points)
            name = f"{pair['first']} - {pair['second']}"
            rows.append([mode, name, *levels, points(pair["mean"]), interval, pair["verdict"]])
    title = f"The same at equal tokens: accuracy in % after {budget:,.0f} generated tokens of training"
    headings = ["mode", "pair", "first", "second", "diff.", "95 % interval", "verdict"]
    return f"{title}\n{table(headings, rows, keys=2)}"


PARTS: tuple[Callable[[Summary], str], ...] = (_pairs, _trials, _same_rate, _equal_tokens)
