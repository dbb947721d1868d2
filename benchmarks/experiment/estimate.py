"""``compare.py --dry-run``: the plan of a comparison, with tokens, time, memory and disk, before anything is run."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from baselines.policies.micro_batches import GIB
from baselines.runs.dry_run import plan_without_weights
from baselines.runs.evaluation import environment_of, make_environment
from baselines.runs.run import train
from baselines.runs.run_config import RunConfig

_EPISODES = (4, 8, 16, 32)
_FEW_ITEMS, _MANY_ITEMS = 8, 128
_QUICK_S = 10.0
MIB = 2**20


@dataclass(frozen=True)
class Cost:
    """What a run is estimated to cost.

    Attributes:
        update: Seconds of one update, rollout included.
        evaluation: Seconds of one evaluation, greedy and sampled.
        start: Seconds until the first row: the model is loaded.
        disk: Bytes of its folder.
    """

    update: float
    evaluation: float
    start: float
    disk: int

    def seconds(self, run: RunConfig) -> float:
        """Return the seconds of a run."""
        return self.start + run.updates * self.update + evaluations(run) * self.evaluation


def evaluations(run: RunConfig) -> int:
    """Return the number of evaluations of a run: before training, at its end, and between."""
    return 1 + -(-run.updates // run.evaluate_every)


def most_tokens(run: RunConfig) -> int:
    """Return the largest number of tokens that a run can generate: every reply has the length limit."""
    setting = environment_of(run)
    game = make_environment(run.environment, "train", setting.environment_arguments).unwrapped
    per_episode = len(game.possible_agents) * game.rounds * setting.max_new_tokens
    played = run.updates * run.episodes + 2 * evaluations(run) * run.evaluation_items
    return played * per_episode


def measure(run: RunConfig) -> Cost:
    """Measure two updates and an evaluation of a run on one thread, in a temporary folder.

    A batch of few episodes is measured first. If an update of it takes under ten seconds, the full batch is measured.
    Otherwise its time is scaled to the episodes, which overestimates, because larger batches are more efficient.

    Args:
        run: The run.
    """
    torch.set_num_threads(1)  # as in a worker process
    cost = _measured(_small(run), run)
    if cost.update * _small(run).episodes / run.episodes < _QUICK_S:
        full = replace(_short(run), evaluation_items=min(_MANY_ITEMS, run.evaluation_items))
        cost = _measured(full, run)
    return cost


def _short(run: RunConfig) -> RunConfig:
    """Return the run with two updates and evaluations before and after them."""
    return replace(run, updates=2, evaluate_every=2, transfer={}, transcripts=0)


def _small(run: RunConfig) -> RunConfig:
    """Return the short run with few episodes; their number must suit the arm's groups."""
    items = min(_FEW_ITEMS, run.evaluation_items)
    for episodes in (*(count for count in _EPISODES if count < run.episodes), run.episodes):
        with contextlib.suppress(ValueError):
            return replace(_short(run), episodes=episodes, evaluation_items=items)
    raise AssertionError("the run's own number of episodes is valid")


def _measured(short: RunConfig, run: RunConfig) -> Cost:
    """Do a short run, and scale what it cost to the episodes and evaluation items of the whole run."""
    times: list[tuple[str, float]] = [("start", time.perf_counter())]

    def note(row: dict[str, Any]) -> None:
        times.append((row["kind"], time.perf_counter()))

    with tempfile.TemporaryDirectory() as folder:
        train(short, note, folder=Path(folder) / "run")
        disk = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    spans = [(kind, end - start) for (_, start), (kind, end) in pairwise(times)]
    first = next(i for i, (kind, _) in enumerate(spans) if kind == "train")
    before, updates, after = spans[:first], spans[first : first + 2], spans[first + 2 :]
    evaluation = sum(seconds for _, seconds in after)
    return Cost(
        update=updates[-1][1] * run.episodes / short.episodes,
        evaluation=evaluation * run.evaluation_items / short.evaluation_items,
        start=max(0.0, sum(seconds for _, seconds in before) - evaluation),
        disk=disk,
    )


def plan_lines(runs: Sequence[RunConfig], workers: int) -> Iterator[str]:
    """Yield the plan of a comparison as text, while its parts are measured.

    Args:
        runs: The runs that are not finished.
        workers: Number of parallel runs.
    """
    kinds: dict[tuple[str, str], list[RunConfig]] = {}
    for run in runs:
        kinds.setdefault((run.task, run.arm), []).append(run)
    total, tokens, disk = 0.0, 0, 0
    yield f"{'task':<20} {'arm':<16} runs  updates  episodes  s/update  s/evaluation  minutes/run  GiB/run"
    for (task, arm), group in kinds.items():
        cost, plan = measure(group[0]), plan_without_weights(group[0])
        seconds = [cost.seconds(run) for run in group]
        total += sum(seconds)
        tokens += sum(map(most_tokens, group))
        disk += cost.disk * len(group)
        first = group[0]
        yield (
            f"{task:<20} {arm:<16} {len(group):4}  {first.updates:7}  {first.episodes:8}  {cost.update:8.2f}  "
            f"{cost.evaluation:12.2f}  {seconds[0] / 60:11.1f}  {plan.peak / GIB:7.1f}"
        )
    together = min(workers, len(runs), os.cpu_count() or 1)
    yield (
        f"{len(runs)} runs, {together} in parallel: about {total / together / 60:.0f} minutes; at most {tokens:,} "
        f"generated tokens; about {disk / MIB:.0f} MiB on disk"
    )
    yield (
        "Times are those of two updates of each task and arm on this machine, of a few episodes where these take long; "
        "other programs, and parallel runs that share caches, can double them."
    )
