"""``compare.py --dry-run``: the plan of a comparison, with tokens, time, memory and disk, before anything is run."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from baselines.models.sources import ModelNotFound
from baselines.policies.micro_batches import GIB
from baselines.runs.dry_run import plan_without_weights
from baselines.runs.evaluation import environment_of, make_environment
from baselines.runs.run import train
from baselines.runs.run_config import RunConfig
from benchmarks.experiment.missing import Missing, without_data

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


def plan_lines(
    runs: Sequence[RunConfig], workers: int, missing: Mapping[tuple[str, str], Missing] | None = None
) -> Iterator[str]:
    """Yield the plan of a comparison as text, while its parts are measured.

    Args:
        runs: The runs that are not finished.
        workers: Number of parallel runs.
        missing: (task, arm) -> what its runs need and this machine does not have. Such runs are not measured.
    """
    kinds: dict[tuple[str, str], list[RunConfig]] = {}
    for run in runs:
        kinds.setdefault((run.task, run.arm), []).append(run)
    total, tokens, disk, measured = 0.0, 0, 0, 0
    remarks: dict[str, list[str]] = {}
    yield f"{'task':<20} {'arm':<16} runs  updates  episodes  s/update  s/evaluation  minutes/run  GiB/run"
    for (task, arm), group in kinds.items():
        parts = (missing or {}).get((task, arm), Missing())
        planned = [without_data(run) for run in group] if parts.data else group
        cost = None if parts.all else measure(group[0])
        tokens += sum(map(most_tokens, planned))
        if cost:
            measured += len(group)
            total += sum(map(cost.seconds, group))
            disk += cost.disk * len(group)
        for sentence in (*parts.all, *_memory_remarks(planned[0])):
            remarks.setdefault(sentence, []).append(f"{task}/{arm}")
        yield _line(group, cost, _peak(planned[0]))
    for sentence, names in remarks.items():
        yield f"{_names(names, kinds)}: {sentence}"
    together = min(workers, len(runs), os.cpu_count() or 1)
    if measured < len(runs):
        yield f"{len(runs)} runs: at most {tokens:,} generated tokens; {len(runs) - measured} of them were not measured"
        return
    yield (
        f"{len(runs)} runs, {together} in parallel: about {total / together / 60:.0f} minutes; at most {tokens:,} "
        f"generated tokens; about {disk / MIB:.0f} MiB on disk"
    )
    yield (
        "Times are those of two updates of each task and arm on this machine, of a few episodes where these take long; "
        "other programs, and parallel runs that share caches, can double them."
    )


def _line(group: Sequence[RunConfig], cost: Cost | None, peak: float | None) -> str:
    """Return the line of a task and arm.

    Args:
        group: Its runs.
        cost: What one of them is estimated to cost; None if it was not measured.
        peak: Memory at its peak, in bytes; None if it is not known.
    """
    first = group[0]
    numbers = [f"{cost.update:.2f}", f"{cost.evaluation:.2f}", f"{cost.seconds(first) / 60:.1f}"] if cost else ["-"] * 3
    update, evaluation, minutes = numbers
    return (
        f"{first.task:<20} {first.arm:<16} {len(group):4}  {first.updates:7}  {first.episodes:8}  {update:>8}  "
        f"{evaluation:>12}  {minutes:>11}  {'-' if peak is None else f'{peak / GIB:.1f}':>7}"
    )


def _peak(run: RunConfig) -> float | None:
    """Return the memory of a run at its peak, in bytes; None if the shape of a model is not known here."""
    try:
        return plan_without_weights(run).peak
    except ModelNotFound:
        return None


def _memory_remarks(run: RunConfig) -> Iterator[str]:
    """Yield a sentence if the memory plan of a run exceeds what it may use. Raise ValueError if it cannot fit."""
    with contextlib.suppress(ModelNotFound):
        plan = plan_without_weights(run)
        plan.check()
        if plan.memory is not None and plan.peak > plan.memory:
            yield (
                f"the memory plan has a peak of {plan.peak / GIB:.1f} GiB, and the run may use "
                f"{plan.memory / GIB:.1f} GiB (docs/memory.md)"
            )


def _names(names: Sequence[str], kinds: Collection[Any]) -> str:
    return "all tasks and arms" if len(names) == len(kinds) else ", ".join(names)
