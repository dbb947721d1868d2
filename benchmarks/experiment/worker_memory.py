"""The number of runs that a comparison does in parallel, limited by the cores and by the memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from baselines.models.devices import choose_device
from baselines.policies.micro_batches import GIB
from baselines.runs.device_memory import default_memory, free_memory
from baselines.runs.dry_run import plan_without_weights
from baselines.runs.run_config import RunConfig
from benchmarks.experiment.grid import Grid

PROCESS_BYTES = GIB // 2
"""Main memory of a worker process before it has a model: Python, torch and transformers."""


def default_workers(grid: Grid) -> int:
    """Return the number of parallel runs: one per core, or what the memory holds. Print a line if that is fewer.

    The number depends on the memory that is free at the moment; the results of a run do not depend on it.
    """
    cores, runs = os.cpu_count() or 1, grid.runs()
    kinds = {(run.task, run.arm): run for run in runs}.values()
    fitting, bytes_each, free = min((_fitting(run) for run in kinds), default=(cores, 0, 0))
    wanted = min(cores, len(runs))
    if fitting >= wanted:
        return wanted
    print(
        f"{fitting} run{'s' * (fitting > 1)} in parallel, fewer than the {cores} cores, because of the memory: a run "
        f"needs up to {bytes_each / GIB:.1f} GiB of {free / GIB:.1f} GiB that are free; --workers sets another number",
        flush=True,
    )
    return fitting


def share_memory(runs: Sequence[RunConfig], workers: int) -> list[RunConfig]:
    """Return the runs, each with its share of the accelerator if several are to use it at the same time.

    A run without ``memory_gib`` would use the memory that the device has for one run. A run on a CPU has no such limit.

    Args:
        runs: The runs.
        workers: Number of runs in parallel.
    """
    if workers == 1:
        return list(runs)
    sizes = {name: default_memory(choose_device(name).device) for name in {run.device for run in runs}}
    return [
        run if run.memory_gib is not None or (size := sizes[run.device]) is None
        else replace(run, memory_gib=size / workers / GIB)
        for run in runs
    ]  # fmt: skip


def _fitting(run: RunConfig) -> tuple[int, int, int]:
    """Return how many such runs fit, at least 1, the bytes of each at its peak, and the free bytes."""
    plan = plan_without_weights(run)
    on_cpu = plan.device.type == "cpu"
    free = free_memory(plan.device)
    if free is None:
        return os.cpu_count() or 1, 0, 0
    needed = plan.peak + PROCESS_BYTES if on_cpu or plan.memory is None else max(plan.peak, plan.memory)
    return max(1, free // needed), needed, free
