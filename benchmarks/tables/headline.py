"""The result of a comparison in one sentence for each task, for a reader who has never seen the project."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.analysis.intervals import IDENTICAL, INCONCLUSIVE
from benchmarks.analysis.pairs import Summary
from benchmarks.tables.layout import percent, points
from benchmarks.tables.pair_tables import withdrawn

_DECODING = {"sampled": "with sampled replies", "greedy": "with the most likely replies"}


def headlines(summary: Summary) -> dict[str, str]:
    """Return the result of each task: of its first decoding mode, and of its first pair of arms.

    In a study with a reference, a task also has its difference from this, of the arm that is first in that pair.
    """
    return {
        task: " ".join([_headline(task, figures), *_from_reference(summary["task_differences"], task, figures)])
        for task, figures in summary["tasks"].items()
    }


def _from_reference(differences: Sequence[Summary], task: str, figures: Summary) -> list[str]:
    """Return a sentence on the difference between a task and the reference of the study, if there is one."""
    for block in figures["modes"].values():
        leading = block["pairs"][0]["first"] if block["pairs"] else next(iter(block["arms"]), "")
        for pair in differences:
            if pair["first"] == task and pair["arm"] == leading and "mean" in pair:
                return [f"Compared with {pair['second']}, {leading} has a {_difference(pair)}. {_meaning(pair)}."]
    return []


def _headline(task: str, figures: Summary) -> str:
    finished = {mode: block for mode, block in figures["modes"].items() if block["arms"]}
    if not finished:
        return f"On {task}, no run has finished yet."
    mode, block = next(iter(finished.items()))
    arms = block["arms"]
    pairs = [pair for pair in block["pairs"] if "mean" in pair]
    if not pairs:
        found = ", ".join(_of_arm(arm, each) for arm, each in arms.items())
        return f"On {task}, {found} ({_DECODING[mode]}, {_seeds(len(next(iter(arms.values()))['seeds']))})."
    pair = pairs[0]
    first, second = pair["first"], pair["second"]
    others = [arm for arm in arms if arm not in (first, second)]
    more = f"; {len(others)} more arms are in the tables" if len(others) > 1 else ""
    before, after, other = (percent(arms[arm][when]["mean"])
                            for arm, when in ((first, "before"), (first, "after"), (second, "after")))  # fmt: skip
    return (
        f"On {task}, {first} solves {after} % of new problems and {second} {other} %, after {before} % before training "
        f"({_DECODING[mode]}): {_difference(pair)}, {_seeds(len(pair['seeds']))}. {_meaning(pair)}{more}."
    )


def _of_arm(arm: str, block: Summary) -> str:
    after, before = percent(block["after"]["mean"]), percent(block["before"]["mean"])
    return f"{arm} solves {after} % of new problems" + (f", {before} % before training" if arm != "untrained" else "")


def _difference(pair: Summary) -> str:
    interval = f" [{points(pair['low'])}, {points(pair['high'])}]" if pair["low"] is not None else ""
    return f"difference {points(pair['mean'])} points{interval}"


def _meaning(pair: Summary) -> str:
    """Return what the verdict means."""
    if pair["verdict"] == IDENTICAL:
        return "Both gave the same answers to every problem"
    if pair["low"] is None:
        return "No conclusion: this needs at least three seeds"
    if pair["verdict"] == INCONCLUSIVE or withdrawn(pair):
        return "The difference may be chance (inconclusive)"
    return f"{pair['verdict'].split()[0]} is better; chance is an unlikely explanation"


def _seeds(count: int) -> str:
    return f"{count} seed{'' if count == 1 else 's'}"
