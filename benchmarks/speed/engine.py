"""The subject "engine": generation and updates of a team, beside a yardstick and the limit of the machine."""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from baselines.models.load import LoadedModel, load_model
from baselines.models.sources import resolve
from baselines.models.wheels import cache_folder
from baselines.policies.micro_batches import MicroBatches
from baselines.policies.policy import SharedBasePolicy
from benchmarks.speed.comparison import (
    BANDWIDTH,
    HEAD,
    PRODUCTS,
    REFERENCE,
    REFERENCE_SIDES,
    UPDATE_SIDES,
    Cell,
    Side,
    as_json,
    measure,
    memory_line,
    table_lines,
)
from benchmarks.speed.machine_limits import MatrixProducts
from benchmarks.speed.peak_memory import peak, start_peak
from benchmarks.speed.reference_style import ReferenceStyle
from benchmarks.speed.sides import (
    continuous_batching,
    engine_side,
    learner_side,
    one_after_another,
    pass_limits,
    reference_generation,
    reference_update,
    training_work,
)
from benchmarks.speed.trl_side import TrlStep
from benchmarks.speed.workload import Workload, agents_of, make_policy, make_workload, work_as_json

PEAK_TEAMS = (1, 8)
"""Numbers of agents whose peak memory is compared."""
_PROGRAM = Path(__file__).resolve().parents[1] / "throughput.py"


def run(options: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    if options.peak:
        print(json.dumps(peak_bytes(options)))
        return
    loaded = load(options)
    print(f"{loaded.name}: {loaded.placement}; threads on every side: {torch.get_num_threads()}")
    about = {
        "model": loaded.name, "device": str(loaded.device), "dtype": str(loaded.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(), "torch": torch.__version__, "new_tokens": options.new_tokens,
        "repetitions": options.repetitions,
    }  # fmt: skip
    del loaded
    cells = list(compare(options))
    peaks = {} if "memory" in options.skip else peaks_of_teams(options)
    if peaks:
        print(f"\n{peak_cell(options, 1).episodes} rows of an agent at a time; {memory_line(peaks)}")
    if options.json:
        found = {**about, "cells": cells, "peak_bytes": peaks}
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"written to {options.json}")


def load(options: argparse.Namespace) -> LoadedModel:
    """Return the base model that the command line names."""
    return load_model(options.model, device=options.device, dtype=options.dtype, allow_wheel=options.allow_wheel)


def compare(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure all cells, print their lines of the table, and yield the measurements of each."""
    print(HEAD)
    for agents in options.agents:
        loaded = load(options)
        policy = make_policy(loaded, agents_of(agents))
        reference = None if set(options.skip) >= REFERENCE_SIDES else ReferenceStyle(load(options), policy)
        for episodes, prompts in itertools.product(options.episodes, options.prompts):
            work = make_workload(Cell(episodes, agents, prompts, options.new_tokens), loaded)
            measured = {}
            with step_sides(work, loaded, policy, reference, options) as steps:
                for kind, sides in (
                    ("generate", generation_sides(work, loaded, policy, reference, options.skip)),
                    ("update", update_sides(work, policy, reference, options.skip)),
                    ("step", steps),
                ):
                    measure(sides, options.repetitions)
                    for line in table_lines(work.cell, kind, sides):
                        print(line, flush=True)
                    measured[kind] = as_json(sides)
            yield {**work_as_json(work), **measured}


def generation_sides(
    work: Workload, loaded: LoadedModel, policy: SharedBasePolicy, reference: ReferenceStyle | None, skip: Sequence[str]
) -> list[Side]:
    """Return the sides that generate, without those to skip, and the limits of the machine."""
    products = MatrixProducts(policy)
    sides = {
        "merged": Side("ours, adapters merged", engine_side(work, loaded, policy, merge=True)),
        "unmerged": Side("ours, adapters not merged", engine_side(work, loaded, policy, merge=False)),
    }
    if reference is not None:
        sides["reference"] = Side(REFERENCE, reference_generation(work, reference), rival=True)
        sides["continuous"] = Side(
            "transformers, continuous batching", continuous_batching(work, reference), rival=True
        )  # fmt: skip
    limits = [Side(PRODUCTS, partial(products.generation, work.cell))]
    limits.append(Side(BANDWIDTH, partial(products.reading, work.cell)))
    return [*(side for name, side in sides.items() if name not in skip), *limits]


def update_sides(
    work: Workload, policy: SharedBasePolicy, reference: ReferenceStyle | None, skip: Sequence[str]
) -> list[Side]:
    """Return the sides that make an update, without those to skip, and the limit of the machine."""
    if set(skip) >= UPDATE_SIDES:
        return []
    if work.cell.episodes == 1:
        return [Side("all", dict, failure="a single episode has no other score to be compared with")]
    limits = pass_limits(policy.device)
    sides = {name: Side(f"ours, {name}", learner_side(work, policy, name, limits)) for name in ("ippo", "marft")}
    if reference is not None:
        update = reference_update(work, policy, reference, limits)
        sides["reference-update"] = Side(REFERENCE, update, rival=True)
    limit = Side(PRODUCTS, partial(MatrixProducts(policy).training, training_work(work)))
    return [*(side for name, side in sides.items() if name not in skip), limit]


@contextmanager
def step_sides(
    work: Workload,
    loaded: LoadedModel,
    policy: SharedBasePolicy,
    reference: ReferenceStyle | None,
    options: argparse.Namespace,
) -> Iterator[list[Side]]:
    """Yield the sides that generate and make an update, to be compared with TRL; none without ``options.trl``."""
    if options.trl is None or work.cell.episodes == 1:
        yield []
        return
    limits = pass_limits(policy.device)
    ours = one_after_another(
        engine_side(work, loaded, policy, merge=True), learner_side(work, policy, "ippo", limits)
    )  # fmt: skip
    sides = [Side("ours, merged and ippo", ours)]
    if reference is not None:
        both = reference_generation(work, reference), reference_update(work, policy, reference, limits)
        sides.append(Side(REFERENCE, one_after_another(*both), rival=True))
    folder = resolve(options.model, "auto", cache_folder(None), options.allow_wheel)[1]
    rows = len(next(MicroBatches(limits).split(policy, next(iter(work.batch.turns.values())))).rows)
    with closing(TrlStep(options.trl, work, loaded, folder, rows, options.repetitions + 1)) as trl:
        yield [*sides, Side("TRL, GRPO", trl, rival=True)]


# --- memory -----------------------------------------------------------------------------------------------------------


def peak_cell(options: argparse.Namespace, agents: int) -> Cell:
    """Return the largest cell of the command line with another number of agents; an update needs two episodes."""
    return Cell(max(2, *options.episodes), agents, options.prompts[-1], options.new_tokens)


def peak_bytes(options: argparse.Namespace) -> int:
    """Return the largest memory above the base model during a rollout and an update of a team.

    A process should measure one team only, because the allocator keeps the memory of earlier work.

    Args:
        options: The command line; ``options.peak`` is the number of agents.
    """
    loaded = load(options)
    before = start_peak(loaded.device)
    policy = make_policy(loaded, agents_of(options.peak))
    work = make_workload(peak_cell(options, options.peak), loaded)
    engine_side(work, loaded, policy, merge=True)()
    learner_side(work, policy, "ippo", pass_limits(policy.device))()
    return peak(loaded.device) - before


def peaks_of_teams(options: argparse.Namespace) -> dict[int, int | str]:
    """Return the peak memory of each team of PEAK_TEAMS, measured in a process of its own, or why there is none."""
    command = [sys.executable, str(_PROGRAM), "engine", "--model", options.model, "--device", options.device]
    command += ["--dtype", options.dtype, *["--allow-wheel"] * options.allow_wheel]
    command += ["--episodes", str(max(options.episodes)), "--prompts", options.prompts[-1]]
    command += ["--new-tokens", str(options.new_tokens)]
    peaks: dict[int, int | str] = {}
    for agents in PEAK_TEAMS:
        done = subprocess.run([*command, "--peak", str(agents)], capture_output=True, text=True)
        lines = (done.stderr if done.returncode else done.stdout).strip().splitlines() or ["no message"]
        peaks[agents] = f"not measured: {lines[-1]}" if done.returncode else int(lines[-1])
    return peaks
