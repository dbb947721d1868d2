"""Training runs of a comparison, grouped from its rows.

A run is one arm on one task with one learning rate and one seed.
"""

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
    """Rows of one run. If a row occurs twice, because the run was resumed, the last one counts.

    Attributes:
        arm: Name of the arm.
        seed: Training seed.
        rate: Learning rate; None if the rows name none.
        evals: Mode -> update -> eval row.
        trains: Update -> train row.
        repeated: Number of rows that occurred more than once.
        source: For an evaluation on a transfer data set: the run on the task that the team was trained on.
    """

    arm: str
    seed: int
    rate: float | None = None
    evals: dict[str, dict[int, Row]] = field(default_factory=dict)
    trains: dict[int, Row] = field(default_factory=dict)
    repeated: int = 0
    source: TrainingRun | None = None

    def curve(self, mode: str) -> dict[int, float]:
        """Return update -> accuracy, ordered by update. Evaluations without a graded item are left out."""
        rows = self.evals.get(mode, {})
        return {update: rows[update]["accuracy"] for update in sorted(rows) if rows[update]["item_score"]}

    def final(self, mode: str) -> Row:
        """Return the last evaluation that has an accuracy."""
        return self.evals[mode][max(self.curve(mode))]

    def last_update(self) -> int:
        """Return the number of the last update in the rows."""
        return max([*self.trains, *(update for rows in self.evals.values() for update in rows)])

    def finished(self, modes: Sequence[str], target: int) -> bool:
        """Return whether every mode was evaluated, with graded items, at update 0 and at the last update.

        Args:
            modes: Decoding modes.
            target: Number of the last update; an untrained team needs update 0 only.
        """
        last = 0 if self.arm == "untrained" else target
        return all({0, last} <= set(self.curve(mode)) for mode in modes)

    def late_reward(self) -> float | None:
        """Return the mean training reward over the last quarter of updates; None if nothing was graded.

        A batch is sampled before the team learns from it, so its reward estimates the score on new problems.
        """
        rows = (self.source or self).trains
        updates = sorted(rows)
        late = [rows[update].get("reward") for update in updates[len(updates) * 3 // 4 :]]
        found = [reward for reward in late if reward is not None]
        return float(np.mean(found)) if found else None

    def best_by_training(self, mode: str) -> float | None:
        """Return the accuracy at the evaluation that training reward selects; None without training.

        The selected evaluation has the highest mean training reward over the updates since the evaluation before it.
        """
        curve, rows = self.curve(mode), (self.source or self).trains
        rewards: dict[int, float] = {}
        for before, update in pairwise(curve):
            since = [
                rows[u]["reward"]
                for u in range(before + 1, update + 1)
                if u in rows and rows[u].get("reward") is not None
            ]
            if since:
                rewards[update] = float(np.mean(since))
        return curve[max(rewards, key=lambda update: rewards[update])] if rewards else None

    def label(self) -> dict[str, Any]:
        """Return the arm, the seed and, if there is one, the learning rate."""
        return {"arm": self.arm, "seed": self.seed} | ({} if self.rate is None else {"rate": self.rate})


def group_runs(rows: Iterable[Row]) -> dict[str, list[TrainingRun]]:
    """Return the runs of each task, ordered by arm (in ladder order), learning rate and seed."""
    runs: dict[tuple[str, str, float | None, int], TrainingRun] = {}
    for row in rows:
        if row["kind"] not in ("eval", "train"):
            continue
        key = (row["task"], row["arm"], row.get("learning_rate"), row["seed"])
        run = runs.setdefault(key, TrainingRun(row["arm"], row["seed"], row.get("learning_rate")))
        by_update = run.trains if row["kind"] == "train" else run.evals.setdefault(row["mode"], {})
        run.repeated += row["update"] in by_update
        by_update[row["update"]] = row
    for (task, *label), run in runs.items():
        if TRANSFER in task:
            run.source = runs.get((task.split(TRANSFER)[1].rstrip(")"), *label))  # type: ignore[arg-type]
    groups: dict[str, list[TrainingRun]] = {}
    for key in sorted(runs, key=lambda key: (ladder_rank(key[1]), key[2] or 0.0, key[3])):
        groups.setdefault(key[0], []).append(runs[key])
    return groups


def ladder_rank(arm: str) -> tuple[int, str]:
    """Return a sort key: the position on the ladder. Unknown arms come last, by name."""
    return (LADDER.index(arm), arm) if arm in LADDER else (len(LADDER), arm)


def pair_order(arms: Sequence[str]) -> list[tuple[str, str]]:
    """Return all pairs of arms, each with the higher rung first; marft - ippo precedes all others."""
    down = list(reversed(arms))
    pairs = [(first, second) for i, first in enumerate(down) for second in down[i + 1 :]]
    return sorted(pairs, key=lambda pair: pair != HEADLINE)


def steps(arms: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of neighbours on the ladder, and marft - ippo."""
    neighbours = [(second, first) for first, second in pairwise(arms)]
    return [pair for pair in pair_order(arms) if pair in neighbours or pair == HEADLINE]


def item_means(row: Mapping[str, Any]) -> dict[int, float]:
    """Return item -> mean score. Several samples of an item count as one item."""
    scores: dict[int, list[float]] = {}
    for item, score in zip(row["item_index"], row["item_score"], strict=True):
        scores.setdefault(item, []).append(score)
    return {item: sum(values) / len(values) for item, values in sorted(scores.items())}
