"""The runs of a comparison, gathered from its rows: an arm on a task with one learning rate and one training seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.analysis.read_rows import Row

LADDER = ("untrained", "single", "ippo", "mappo", "mappo_chained", "marft_nofactor", "marft", "marft_token", "magrpo")
HEADLINE = ("marft", "ippo")
TRANSFER = " (trained on "  # in the task of a row: "gsm8k (trained on relay)"


@dataclass(eq=False)
class TrainingRun:
    """One run. A row written twice (a resumed run) counts once, the last. rate: None where the rows name none.
    source: the run on its own task, where this one is the same team on another data set."""

    arm: str
    seed: int
    rate: float | None = None
    evals: dict[str, dict[int, Row]] = field(default_factory=dict)  # mode -> update -> row
    trains: dict[int, Row] = field(default_factory=dict)  # update -> row
    repeated: int = 0
    source: TrainingRun | None = None

    def curve(self, mode: str) -> dict[int, float]:
        """Update -> accuracy, in order of updates; an evaluation without a graded item has no accuracy."""
        rows = self.evals.get(mode, {})
        return {update: rows[update]["accuracy"] for update in sorted(rows) if rows[update]["item_score"]}

    def final(self, mode: str) -> Row:
        """The last evaluation with an accuracy."""
        return self.evals[mode][max(self.curve(mode))]

    def last_update(self) -> int:
        return max([*self.trains, *(update for rows in self.evals.values() for update in rows)])

    def finished(self, modes: Sequence[str], target: int) -> bool:
        """Evaluated before training and after its last update, in every mode, with graded items."""
        last = 0 if self.arm == "untrained" else target
        return all({0, last} <= set(self.curve(mode)) for mode in modes)

    def late_reward(self) -> float | None:
        """Mean training reward of the last quarter of updates; each batch is played before it is learned from."""
        rows = (self.source or self).trains
        updates = sorted(rows)
        late = [rows[update].get("reward") for update in updates[len(updates) * 3 // 4 :]]
        found = [reward for reward in late if reward is not None]
        return float(np.mean(found)) if found else None

    def best_by_training(self, mode: str) -> float | None:
        """Accuracy at the evaluation with the highest mean training reward since the one before it; None untrained."""
        curve, rows = self.curve(mode), (self.source or self).trains
        rewards: dict[int, float] = {}
        for before, update in pairwise(curve):
            seen = [
                rows[u]["reward"]
                for u in range(before + 1, update + 1)
                if u in rows and rows[u].get("reward") is not None
            ]
            if seen:
                rewards[update] = float(np.mean(seen))
        return curve[max(rewards, key=lambda update: rewards[update])] if rewards else None

    def label(self) -> dict[str, Any]:
        """What tells it from the others of its task."""
        return {"arm": self.arm, "seed": self.seed} | ({} if self.rate is None else {"rate": self.rate})


def group_runs(rows: Iterable[Row]) -> dict[str, list[TrainingRun]]:
    """The runs of each task, in ladder order of arms, then by rate and seed."""
    cells: dict[tuple[str, str, float | None, int], TrainingRun] = {}
    for row in rows:
        if row["kind"] not in ("eval", "train"):
            continue
        key = (row["task"], row["arm"], row.get("learning_rate"), row["seed"])
        cell = cells.setdefault(key, TrainingRun(row["arm"], row["seed"], row.get("learning_rate")))
        slot = cell.trains if row["kind"] == "train" else cell.evals.setdefault(row["mode"], {})
        cell.repeated += row["update"] in slot
        slot[row["update"]] = row
    for (task, *run), cell in cells.items():
        if TRANSFER in task:
            cell.source = cells.get((task.split(TRANSFER)[1].rstrip(")"), *run))  # type: ignore[arg-type]
    groups: dict[str, list[TrainingRun]] = {}
    for key in sorted(cells, key=lambda key: (ladder_rank(key[1]), key[2] or 0.0, key[3])):
        groups.setdefault(key[0], []).append(cells[key])
    return groups


def ladder_rank(arm: str) -> tuple[int, str]:
    """Sort key: place on the ladder; unknown arms come after it, by name."""
    return (LADDER.index(arm), arm) if arm in LADDER else (len(LADDER), arm)


def pair_order(arms: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs, the higher rung first; marft against ippo before all others."""
    down = list(reversed(arms))
    pairs = [(first, second) for place, first in enumerate(down) for second in down[place + 1 :]]
    return sorted(pairs, key=lambda pair: pair != HEADLINE)


def steps(arms: Sequence[str]) -> list[tuple[str, str]]:
    """Neighbours on the ladder, and the headline."""
    neighbours = [(second, first) for first, second in pairwise(arms)]
    return [pair for pair in pair_order(arms) if pair in neighbours or pair == HEADLINE]


def item_means(row: Mapping[str, Any]) -> dict[int, float]:
    """Item -> mean score; an item sampled K times is one item."""
    scores: dict[int, list[float]] = {}
    for item, score in zip(row["item_index"], row["item_score"], strict=True):
        scores.setdefault(item, []).append(score)
    return {item: sum(values) / len(values) for item, values in sorted(scores.items())}
