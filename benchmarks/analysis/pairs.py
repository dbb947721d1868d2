"""Two arms on one task: the paired difference over seeds and items, at equal updates and at equal tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.analysis import intervals
from benchmarks.analysis.read_rows import ReportError, Row
from benchmarks.analysis.training_runs import TrainingRun, item_means

BOOTSTRAP_SEED = 20240229  # pinned: the same rows give the same intervals
TOKENS = "generated_tokens"

Summary = dict[str, Any]


def interval_figures(found: intervals.Interval) -> Summary:
    """As JSON."""
    return {"mean": found.mean, "low": found.low, "high": found.high, "method": found.method}


def mean_interval(values: Sequence[float]) -> Summary:
    """t interval over seeds."""
    return interval_figures(intervals.t_interval(values))


def pair_figures(task: str, mode: str, first: list[TrainingRun], second: list[TrainingRun]) -> Summary:
    """Paired difference first - second at the end of training, over seeds finished in both, item by item."""
    names = {"first": first[0].arm, "second": second[0].arm}
    both = _paired(first, second)
    alone = len(first) + len(second) - 2 * len(both)
    base = {**names, "seeds": [one.seed for one, _ in both], "unpaired_seeds": alone}
    if not both:
        return {**base, "verdict": intervals.INCONCLUSIVE, "reason": "no seed is finished in both arms"}
    ends = [(one.final(mode), two.final(mode)) for one, two in both]
    items = [_item_differences(task, mode, one, two) for one, two in ends]
    found = intervals.paired_difference(items, np.random.default_rng(BOOTSTRAP_SEED))
    together = np.concatenate(items)
    left_out = sum(len(set(one["item_index"]) ^ set(two["item_index"])) for one, two in ends)
    identical = not together.any() and not left_out
    return {
        **base,
        **interval_figures(found.interval),
        "by_seed": list(found.by_seed),
        "p": found.p_value,
        "minimum_detectable": found.minimum_detectable,
        "probability_of_improvement": intervals.probability_of_improvement(
            [one["accuracy"] for one, _ in ends], [two["accuracy"] for _, two in ends]
        ),
        "items": int(together.size),
        "items_left_out": left_out,
        "first_better": int((together > 0).sum()),
        "second_better": int((together < 0).sum()),
        "verdict": intervals.IDENTICAL if identical else intervals.verdict(found.interval, *names.values()),
        "reason": "one seed: no interval" if len(both) == 1 and not identical else "",
    }


def _paired(first: Iterable[TrainingRun], second: Iterable[TrainingRun]) -> list[tuple[TrainingRun, TrainingRun]]:
    theirs = {cell.seed: cell for cell in second}
    return [(cell, theirs[cell.seed]) for cell in first if cell.seed in theirs]


def _item_differences(task: str, mode: str, one: Row, two: Row) -> np.ndarray:
    """[I] score differences on the items that both runs were graded on."""
    first, second = item_means(one), item_means(two)
    shared = [item for item in first if item in second]
    if not shared:
        raise ReportError(
            f"task {task}, {mode}, seed {one['seed']}: {one['arm']} and {two['arm']} share no evaluation item, "
            "so they cannot be paired; expected the same item_index in every arm"
        )
    return np.array([first[item] - second[item] for item in shared])


def equal_tokens(mode: str, done: Mapping[str, list[TrainingRun]], pairs: Sequence[tuple[str, str]]) -> Summary | None:
    """Every arm where it had generated as many tokens in training as the most frugal run in all of its training.

    Accuracy between two evaluations is interpolated in tokens. spread: by how much the runs differ, as a share. None
    where the rows hold no tokens or one arm learns.
    """
    learning = {arm: group for arm, group in done.items() if all(cell.trains for cell in group)}
    spent = {id(cell): _tokens(cell) for group in learning.values() for cell in group}
    if len(learning) < 2 or any(tokens is None for tokens in spent.values()):
        return None
    used = [max(tokens.values()) for tokens in spent.values() if tokens]
    budget = min(used)
    level = {cell: _at(cell, mode, spent[id(cell)] or {}, budget) for group in learning.values() for cell in group}
    found = []
    for first, second in pairs:
        both = _paired(learning.get(first, ()), learning.get(second, ()))
        if both:
            interval = intervals.t_interval([level[one] - level[two] for one, two in both])
            same = all(_same_course(mode, one, two) and spent[id(one)] == spent[id(two)] for one, two in both)
            word = intervals.IDENTICAL if same else intervals.verdict(interval, first, second)
            found.append({"first": first, "second": second, **interval_figures(interval), "verdict": word})
    arms = {arm: mean_interval([level[cell] for cell in group]) for arm, group in learning.items()}
    return {"tokens": budget, "spread": (max(used) - budget) / max(1.0, max(used)), "arms": arms, "pairs": found}


def _same_course(mode: str, one: TrainingRun, two: TrainingRun) -> bool:
    """Whether the same items were solved at every evaluation."""
    first, second = ({update: item_means(row) for update, row in cell.evals[mode].items()} for cell in (one, two))
    return first == second


def _tokens(cell: TrainingRun) -> dict[int, float] | None:
    """Update -> tokens generated in training so far."""
    if not all(isinstance(row.get(TOKENS), int | float) for row in cell.trains.values()):
        return None
    return {0: 0.0, **{update: float(cell.trains[update][TOKENS]) for update in sorted(cell.trains)}}


def _at(cell: TrainingRun, mode: str, tokens: Mapping[int, float], budget: float) -> float:
    curve = {update: accuracy for update, accuracy in cell.curve(mode).items() if update in tokens}
    return float(np.interp(budget, [tokens[update] for update in curve], list(curve.values())))


def correct(pairs: Iterable[tuple[str, str, Summary]]) -> None:
    """Write each pair's p value after Holm over the places (tasks, or tasks and rates) it was compared in.

    pairs: (place, mode, figures)."""
    families: dict[tuple[str, str, str], dict[str, Summary]] = {}
    for place, mode, pair in pairs:
        families.setdefault((mode, pair["first"], pair["second"]), {})[place] = pair
    for family in families.values():
        corrected = intervals.holm({place: pair.get("p", math.nan) for place, pair in family.items()})
        for place, pair in family.items():
            pair["p_holm"], pair["holm_tasks"] = corrected[place], len(family)
