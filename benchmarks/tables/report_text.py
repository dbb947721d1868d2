"""The report as plain fixed-width text of at most 110 columns, ASCII only; reads a summary, computes no figure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from benchmarks.analysis.pairs import Summary
from benchmarks.analysis.summary import COLLAPSE_FALL
from benchmarks.tables.cost_tables import PARTS as COST
from benchmarks.tables.layout import NOTHING, WIDTH, percent, points, rate, table, with_interval, wrapped
from benchmarks.tables.pair_tables import PARTS as PAIRS
from benchmarks.tables.pair_tables import arms_of
from benchmarks.tables.report_head import head

FLAT = 0.02  # greedy accuracy that rises by less has not risen


def render_text(summary: Summary) -> str:
    """The whole report; ends with a newline."""
    blocks = [head(summary)]
    for task, figures in summary["tasks"].items():
        blocks += [_title(task, figures), *(part(figures) for part in PARTS)]
    return "\n\n".join(block for block in [*blocks, _legend(summary)] if block) + "\n"


def _title(task: str, figures: Summary) -> str:
    """Task, how many runs are finished, which are not, and the learning rates."""
    runs = figures["runs"]
    title = f"TASK {task}: {runs['finished']} of {runs['planned']} runs finished, {figures['updates']} updates"
    lines = [title, "=" * min(len(title), WIDTH)]
    if runs["unfinished"]:
        where = ", ".join(map(_run_name, runs["unfinished"]))
        lines += wrapped(f"Unfinished and left out of every figure below: {where}.", "")
    missing = runs["planned"] - runs["finished"] - len(runs["unfinished"])
    if missing > 0:
        lines.append(f"Planned runs without any row yet: {missing}.")
    return "\n".join([*lines, *_rates(figures["rates"])])


def _run_name(run: Summary) -> str:
    trial = f" lr {rate(run['rate'])}" if "rate" in run else ""
    return f"{run['arm']}{trial} seed {run['seed']} (update {run['update']})"


def _rates(rates: Summary) -> list[str]:
    """Which learning rate each arm has in the tables, and how it came by it."""
    named = {arm: value for arm, value in rates["chosen"].items() if value is not None}
    if not named:
        return []
    counts = {arm: max(1, sum(trial["arm"] == arm for trial in rates["trials"])) for arm in named}
    told = ", ".join(f"{arm} {rate(value)}" for arm, value in named.items())
    number = "one trial each" if set(counts.values()) == {1} else f"the best of {max(counts.values())} trials of each"
    if len(set(counts.values())) > 1:
        number = "UNEQUAL numbers of trials: " + ", ".join(f"{arm} {count}" for arm, count in counts.items())
    by = ", by training reward, never by a test item" if max(counts.values()) > 1 else ""
    return wrapped(f"Learning rates: {told} ({number}{by}).", "")


def _accuracy(figures: Summary) -> str:
    """Before and after, with intervals, and every seed's final accuracy."""
    blocks = arms_of(figures)
    if not blocks:
        return ""
    rows = [
        [mode, arm, str(len(block["seeds"])), with_interval(block["before"]), with_interval(block["after"]),
         percent(block["iqm"])] for mode, arm, block in blocks
    ]  # fmt: skip
    single = [len(block["seeds"]) == 1 for _, _, block in blocks]
    title = "Team accuracy in % [95 % t interval over seeds]"
    if all(single):
        title = "Team accuracy in % of one seed [95 % Wilson interval over items: of that model, not of other seeds]"
    elif any(single):
        title += "\nAn arm with one seed: [Wilson interval over items]; it speaks of that model, not of other seeds"
    body = table(["mode", "arm", "seeds", "before", "after", "IQM after"], rows, keys=2)
    return "\n\n".join(filter(None, [f"{title}\n{body}", _sharpening(figures), _finals(figures)]))


def _sharpening(figures: Summary) -> str:
    """Where sampling surely rises, but to no more than greedy decoding's start, and greedy decoding does not rise."""
    modes = figures["modes"]
    if not {"sampled", "greedy"} <= set(modes):
        return ""
    sampled, greedy = modes["sampled"]["arms"], modes["greedy"]["arms"]
    below = [arm for arm in sampled if arm in greedy and _sharpens(sampled[arm], greedy[arm])]
    if not below:
        return ""
    start = max(greedy[arm]["before"]["mean"] for arm in below)
    told = f"Greedy decoding starts at {percent(start)} %, above the end of sampling, and does not rise "
    told += f"({', '.join(below)}): what rises is how surely the team says what it knew (sharpening)."
    return "\n".join(wrapped(told, ""))


def _sharpens(sampled: Summary, greedy: Summary) -> bool:
    start = greedy["before"]["mean"]
    least = sampled["gain"]["low"]  # None with one seed
    rises = least is not None and least > 0 and sampled["after"]["mean"] <= start
    return rises and greedy["after"]["mean"] < start + FLAT


def _finals(figures: Summary) -> str:
    """All seeds, side by side."""
    seeds = sorted({seed for _, _, block in arms_of(figures) for seed in block["seeds"]})
    rows = []
    for mode, arm, block in arms_of(figures):
        final = dict(zip(block["seeds"], block["finals"], strict=True))
        rows.append([mode, arm, *(percent(final.get(seed)) for seed in seeds)])
    return "Final accuracy of each seed in %\n" + table(["mode", "arm", *(f"s{s}" for s in seeds)], rows, keys=2)


def _course(figures: Summary) -> str:
    """How training went: area, threshold, the best evaluation on the way, falls."""
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
    return f"Course of training (area, level, best and falls in %)\n{table(headings, rows, keys=2)}" if rows else ""


def _unscored(figures: Summary) -> str:
    """Texts without an answer, and items without a verdict."""
    rows = [
        [mode, arm, str(block["graded"]), _share(block["no_answer"], block["answers"]),
         _share(block["not_graded"], block["graded"] + block["not_graded"]), _training_faults(figures, arm)]
        for mode, arm, block in arms_of(figures)
    ]  # fmt: skip
    headings = ["mode", "arm", "items", "NO_ANSWER", "NOT_GRADED", "NOT_GRADED in training"]
    title = "Answers of the final evaluations, all seeds: % (how many)"
    return f"{title}\n{table(headings, rows, keys=2)}" if rows else ""


def _training_faults(figures: Summary, arm: str) -> str:
    used = figures["budget"].get(arm) or {}
    return _share(used["not_graded"], used["episodes"]) if "not_graded" in used and "episodes" in used else NOTHING


def _threshold(level: float | None, block: Summary, last: int) -> str:
    """`5 to 56.7 (4/5)`: median updates to the level, and how many seeds reached it."""
    if level is None:
        return NOTHING
    middle = block["updates_to_threshold"]
    updates = f">{last}" if middle is None else f"{middle:g}"
    return f"{updates} to {percent(level)} ({block['threshold_reached']}/{len(block['seeds'])})"


def _share(count: float, of: float) -> str:
    """`1.2 (3)`: percent, and how many."""
    return f"{percent(count / of)} ({count:g})" if of else NOTHING


def _cooperation(figures: Summary) -> str:
    """Whether the agents need each other, and what they write."""
    drops = [
        [arm, speaker, *(_drop(ends.get(end)) for end in ("before", "after"))]
        for arm, speakers in figures["cooperation"].items()
        for speaker, ends in speakers.items()
    ]
    written = [
        [arm, agent, f"{f['tokens']:.1f}", percent(f["empty"]), percent(f["repeated"]), percent(f["distinct"])]
        for arm, agents in figures["messages"].items()
        for agent, f in agents.items()
    ]
    parts = []
    if drops:
        title = "Cooperation: drop of sampled accuracy in points when a speaker's messages are shuffled"
        parts.append(f"{title}\n{table(['arm', 'speaker', 'drop before', 'drop after'], drops, keys=2)}")
    if written:
        title = "Messages of the final sampled evaluation (of an agent's replies, in %)"
        heads = ["arm", "agent", "tokens a reply", "empty", "repeated", "distinct"]
        parts.append(f"{title}\n{table(heads, written, keys=2)}")
    return "\n\n".join(parts)


def _drop(found: Summary | None) -> str:
    if found is None:
        return NOTHING
    low, high = points(found["low"]), points(found["high"])
    return points(found["mean"]) + ("" if found["low"] is None else f" [{low}, {high}]")


PARTS: tuple[Callable[[Summary], str], ...] = (_accuracy, *PAIRS, _course, _unscored, _cooperation, *COST)


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
        "identical": "the same score on every item of every seed: no difference to test, so no p and no MDE",
        "P(better)": "chance that a run of the first arm ends above a run of the second, ties counted half",
        "items +/-/all": "discordant items over all seeds: first arm scores higher / second arm higher / all",
        "area": "area under the curve per update: the mean accuracy on the way",
        "level": "half-way from the mean start to the best mean end; median updates (seeds that reach it)",
        "best by training": "accuracy after the updates with the highest training reward: no test item chose that",
        "fall": "points below the run's own running best: largest, mean and max over seeds; max at the end",
        "collapsed": f"runs that end more than {100 * COLLAPSE_FALL:.0f} points below their own running best",
        "NO_ANSWER": "of all graded texts; NOT_GRADED: of all items, a fault of the grader, in no accuracy",
        "drop": "fall of the score when the speaker's messages are shuffled between episodes; 0: nobody needs it",
        "expl. var.": "what the critic explains of the returns, and its share of what knowing the label of "
                      "Task.progress alone would explain; a critic that reads the problem, too, may pass 100 %",
    }  # fmt: skip
    if len(summary["tasks"]) == 1:
        del words["p (Holm)"]
    column = max(map(len, words)) + 2
    lines = [textwrap.wrap(text, WIDTH - 2 - column) for text in words.values()]
    parts = [
        f"  {word.ljust(column)}" + f"\n  {' ' * column}".join(part) for word, part in zip(words, lines, strict=True)
    ]
    return "\n".join(["Words", *parts])
