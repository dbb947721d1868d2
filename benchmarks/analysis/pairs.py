"""Comparison of two arms on one task: the paired difference, at equal updates and at equal generated tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.analysis import intervals
from benchmarks.analysis.read_rows import ReportError, Row
from benchmarks.analysis.training_runs import TrainingRun, item_means

BOOTSTRAP_SEED = 20240229  # fixed, so that the same rows give the same intervals
TOKENS = "generated_tokens"

Summary = dict[str, Any]


def interval_figures(found: intervals.Interval) -> Summary:
    """Return an interval as plain values."""
    return {"mean": found.mean, "low": found.low, "high": found.high, "method": found.method}


def mean_interval(values: Sequence[float]) -> Summary:
    """Return the mean over seeds with its t interval, as plain values."""
    return interval_figures(intervals.t_interval(values))


def pair_figures(
    task: str,
    mode: str,
    first: list[TrainingRun],
    second: list[TrainingRun],
    names: tuple[str, str] | None = None,
) -> Summary:
    """Return the paired difference first - second at the end of training, item by item.

    Args:
        task: Name of the task, for an error message.
        mode: Decoding mode.
        first: Finished runs of the first arm.
        second: Finished runs of the second arm. Only seeds that are finished in both arms are compared.
        names: What the figures call the two groups of runs; None: their arms.

    Raises:
        ReportError: Two runs with the same seed share no evaluation item.
    """
    called = dict(zip(("first", "second"), names or (first[0].arm, second[0].arm), strict=True))
    both = _paired(first, second)
    alone = len(first) + len(second) - 2 * len(both)
    base = {**called, "seeds": [one.seed for one, _ in both], "unpaired_seeds": alone}
    if not both:
        return {**base, "verdict": intervals.INCONCLUSIVE, "reason": "no seed is finished in both arms"}
    ends = [(one.final(mode), two.final(mode)) for one, two in both]
    items = [_item_differences(task, mode, one, two) for one, two in ends]
    found = intervals.paired_difference(items, np.random.default_rng(BOOTSTRAP_SEED))
    together = np.concatenate(items)
    left_out = sum(len(set(one["item_index"]) ^ set(two["item_index"])) for one, two in ends)
    identical = not together.any() and not left_out
    missing = intervals.no_interval(found.by_seed)
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
        "verdict": intervals.IDENTICAL if identical else intervals.verdict(found.interval, *called.values()),
        "reason": "" if identical or not missing else f"{missing}: no interval",
    }


def _paired(first: Iterable[TrainingRun], second: Iterable[TrainingRun]) -> list[tuple[TrainingRun, TrainingRun]]:
    """Pair runs of the same seed."""
    by_seed = {run.seed: run for run in second}
    return [(run, by_seed[run.seed]) for run in first if run.seed in by_seed]


def _item_differences(task: str, mode: str, one: Row, two: Row) -> np.ndarray:
    """Return the score differences [I] on the items that were graded in both runs."""
    first, second = item_means(one), item_means(two)
    shared = [item for item in first if item in second]
    if not shared:
        raise ReportError(
            f"task {task}, {mode}, seed {one['seed']}: {one['arm']} and {two['arm']} share no evaluation item, "
            "so they cannot be paired; expected the same item_index in every arm"
        )
    return np.array([first[item] - second[item] for item in shared])


def equal_tokens(mode: str, done: Mapping[str, list[TrainingRun]], pairs: Sequence[tuple[str, str]]) -> Summary | None:
    """Compare the arms at an equal number of generated training tokens.

    The budget is what the run with the fewest tokens generated in all of its training. Accuracies between two
    evaluations are interpolated linearly in tokens.

    Args:
        mode: Decoding mode.
        done: Arm -> finished runs.
        pairs: Pairs of arms to compare.

    Returns:
        "tokens" (the budget), "spread" (largest gap between the runs' tokens, as a share of the largest), and the
        accuracies of "arms" and "pairs" at the budget. None if fewer than two arms learn or a row has no token count.
    """
    learning = {arm: runs for arm, runs in done.items() if all(run.trains for run in runs)}
    spent = {id(run): _tokens(run) for runs in learning.values() for run in runs}
    if len(learning) < 2 or any(tokens is None for tokens in spent.values()):
        return None
    used = [max(tokens.values()) for tokens in spent.values() if tokens]
    budget = min(used)
    level = {run: _accuracy_at(run, mode, spent[id(run)] or {}, budget) for runs in learning.values() for run in runs}
    found = []
    for first, second in pairs:
        both = _paired(learning.get(first, ()), learning.get(second, ()))
        if both:
            interval = intervals.t_interval([level[one] - level[two] for one, two in both])
            same = all(_same_items_solved(mode, one, two) and spent[id(one)] == spent[id(two)] for one, two in both)
            word = intervals.IDENTICAL if same else intervals.verdict(interval, first, second)
            found.append({"first": first, "second": second, **interval_figures(interval), "verdict": word})
    arms = {arm: mean_interval([level[run] for run in runs]) for arm, runs in learning.items()}
    return {"tokens": budget, "spread": (max(used) - budget) / max(1.0, max(used)), "arms": arms, "pairs": found}


def _same_items_solved(mode: str, one: TrainingRun, two: TrainingRun) -> bool:
    """Return whether the scores of all items agree at every evaluation."""
    first, second = ({update: item_means(row) for update, row in run.evals[mode].items()} for run in (one, two))
    return first == second


def _tokens(run: TrainingRun) -> dict[int, float] | None:
    """Return update -> tokens generated in training so far."""
    if not all(isinstance(row.get(TOKENS), int | float) for row in run.trains.values()):
        return None
    return {0: 0.0, **{update: float(run.trains[update][TOKENS]) for update in sorted(run.trains)}}


def _accuracy_at(run: TrainingRun, mode: str, tokens: Mapping[int, float], budget: float) -> float:
    """Interpolate the run's accuracy at ``budget`` generated tokens."""
    curve = {update: accuracy for update, accuracy in run.curve(mode).items() if update in tokens}
    return float(np.interp(budget, [tokens[update] for update in curve], list(curve.values())))


def apply_holm(pairs: Iterable[tuple[str, str, Summary]]) -> None:
    """Add p values after Holm's correction, and the size of the family, to the figures of each pair.

    Args:
        pairs: (setting, mode, figures). The correction is over the settings (tasks, or tasks and learning rates) in
            which a pair of arms is compared, for each mode.
    """
    families: dict[tuple[str, str, str], dict[str, Summary]] = {}
    for setting, mode, pair in pairs:
        families.setdefault((mode, pair["first"], pair["second"]), {})[setting] = pair
    for family in families.values():
        correct_family(family)


def correct_family(family: Mapping[str, Summary]) -> None:
    """Add p values after Holm's correction, and the size of the family, to the figures of one family of pairs.

    Args:
        family: Name of each test -> figures of its pair.
    """
    corrected = intervals.holm({name: _p_in_family(pair) for name, pair in family.items()})
    for name, pair in family.items():
        tested = not math.isnan(pair.get("p", math.nan))
        pair["p_holm"], pair["holm_tasks"] = corrected[name] if tested else math.nan, len(family)


def _p_in_family(pair: Summary) -> float:
    """Return the p value with which a pair counts in Holm's correction; NaN if it does not count.

    Seeds without spread have no p value and count with 1: the number of tests must not depend on the results.
    """
    p: float = pair.get("p", math.nan)
    return 1.0 if math.isnan(p) and len(pair["seeds"]) >= intervals.FEW_SEEDS else p
