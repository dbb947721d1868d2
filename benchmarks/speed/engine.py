"""The subject "engine": generation and updates of a team, beside a yardstick and the limit of the machine."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from baselines.errors import RunError
from baselines.models.load import LoadedModel, load_model
from baselines.models.sources import resolve
from baselines.models.wheels import cache_folder
from baselines.policies.micro_batches import MicroBatches
from baselines.policies.policy import SharedBasePolicy
from benchmarks.speed.comparison import (
    ACTIVATED_SIDES,
    BANDWIDTH,
    HEAD,
    PRODUCTS,
    REFERENCE,
    REFERENCE_SIDES,
    UPDATE_SIDES,
    Cell,
    Seconds,
    Side,
    as_json,
    from_json,
    measure,
    memory_line,
    table_lines,
)
from benchmarks.speed.machine_limits import MatrixProducts
from benchmarks.speed.other_software import TeamFiles, llama_cpp_side, trl_side, vllm_side
from benchmarks.speed.reference_style import ReferenceStyle
from benchmarks.speed.results_file import ResultsFile, seconds_left
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
from benchmarks.speed.team_memory import peak_bytes, peak_cell, peaks_of_teams
from benchmarks.speed.workload import (
    Workload,
    activated_workload,
    agents_of,
    make_policy,
    make_workload,
    work_as_json,
)

KINDS = ("generate", "update", "step")


def run(options: argparse.Namespace) -> None:
    """Do what the command line asks for.

    Raises:
        RunError: A side that is no other software failed. All measurements have been printed and written before.
    """
    if options.peak:
        print(json.dumps(peak_bytes(options)))
        return
    loaded = load(options)
    print(f"{loaded.name}: {loaded.placement}; threads on every side: {torch.get_num_threads()}")
    about = {
        "model": loaded.name, "device": str(loaded.device), "dtype": str(loaded.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(), "torch": torch.__version__, "new_tokens": options.new_tokens,
        "repetitions": options.repetitions, "skip": sorted(set(options.skip) - {"memory"}),
        "other software": [name for name in ("llama_cpp", "vllm", "trl") if getattr(options, name)],
    }  # fmt: skip
    del loaded
    results = ResultsFile(options.json, about, resume=options.resume)
    failed = compare(options, results)
    if "memory" not in options.skip:
        compare_memory(options, results)
    if options.json:
        results.write()
        print(f"written to {options.json}")
    if failed:
        raise RunError(f"sides of this project that failed: {', '.join(failed)}; see the table")


def load(options: argparse.Namespace) -> LoadedModel:
    """Return the base model that the command line names."""
    return load_model(options.model, device=options.device, dtype=options.dtype, allow_wheel=options.allow_wheel)


def compare(options: argparse.Namespace, results: ResultsFile) -> list[str]:
    """Measure all cells that the results lack, print the table, and return the names of our sides that failed."""
    print(HEAD)
    cells = [
        Cell(episodes, agents, prompts, options.new_tokens)
        for agents, episodes, prompts in itertools.product(options.agents, options.episodes, options.prompts)
    ]
    failed: dict[str, None] = {}
    start = time.monotonic()
    for agents, of_team in itertools.groupby(cells, key=lambda cell: cell.agents):
        with ExitStack() as stack:
            team: Team | None = None
            for cell in of_team:
                found = results.find(cell)
                if found is not None:
                    for kind in KINDS:
                        print_lines(cell, kind, from_json(found[kind]))
                    continue
                waiting = [cell for cell in cells if results.find(cell) is None]
                report_progress(cell, cells, waiting, results, time.monotonic() - start)
                began = time.monotonic()
                team = team or stack.enter_context(closing(Team.of(options, agents)))
                work = make_workload(cell, team.loaded)
                measured: dict[str, Any] = {}
                for kind, sides in measured_sides(work, team, options):
                    print_lines(cell, kind, sides)
                    measured[kind] = as_json(sides)
                    failed.update(dict.fromkeys(s.name for s in sides if s.failure and not s.rival))
                results.add({**work_as_json(work), **measured, "seconds": time.monotonic() - began})
    return list(failed)


def print_lines(cell: Cell, kind: str, sides: list[Side]) -> None:
    """Print the lines of some sides."""
    for line in table_lines(cell, kind, sides):
        print(line, flush=True)


def report_progress(cell: Cell, cells: list[Cell], waiting: list[Cell], results: ResultsFile, elapsed: float) -> None:
    """Print to stderr which cell begins, and about how long the waiting ones take."""
    left = seconds_left(results.cells, waiting)
    print(
        f"cell {len(cells) - len(waiting) + 1} of {len(cells)}: {cell.episodes} episodes, {cell.agents} agents, "
        f"{cell.prompts} prompts; {elapsed / 60:.1f} min so far"
        + ("" if left is None else f", about {left / 60:.1f} min left"),
        file=sys.stderr, flush=True,
    )  # fmt: skip


@dataclass(frozen=True)
class Team:
    """The models of a team, on which all cells of its size are measured.

    Attributes:
        loaded: The base model.
        policy: The policies on it.
        activated: A base model of its own, and the policies with activated adapters on it; None if not measured.
        reference: The team in the reference style; None if not measured.
        files: Files of the adapters for other software.
        folder: The folder of the model's files.
    """

    loaded: LoadedModel
    policy: SharedBasePolicy
    activated: tuple[LoadedModel, SharedBasePolicy] | None
    reference: ReferenceStyle | None
    files: TeamFiles
    folder: Path

    @classmethod
    def of(cls, options: argparse.Namespace, agents: int) -> Team:
        """Return the team of a number of agents."""
        skip, loaded, names = set(options.skip), load(options), agents_of(agents)
        policy, activated = make_policy(loaded, names), None
        if not skip >= ACTIVATED_SIDES:
            second = load(options)
            activated = second, make_policy(second, names, activated=True)
        reference = None if skip >= REFERENCE_SIDES else ReferenceStyle(load(options), policy)
        folder = resolve(options.model, "auto", cache_folder(None), options.allow_wheel)[1]
        return cls(loaded, policy, activated, reference, TeamFiles(policy, loaded.name), folder)

    def close(self) -> None:
        """Delete the files for other software."""
        self.files.close()


def measured_sides(work: Workload, team: Team, options: argparse.Namespace) -> Iterator[tuple[str, list[Side]]]:
    """Measure the sides of a cell, and yield them by kind of work."""
    for kind, make in zip(KINDS, (generation_sides, update_sides, step_sides), strict=True):
        with ExitStack() as children:
            sides = make(work, team, options, children)
            measure(sides, options.repetitions)
        yield kind, sides


def generation_sides(work: Workload, team: Team, options: argparse.Namespace, children: ExitStack) -> list[Side]:
    """Return the sides that generate, without those to skip, and the limits of the machine.

    Args:
        work: The work.
        team: The team.
        options: The command line.
        children: Closes the child processes.
    """
    side = partial(engine_side, work, team.loaded, team.policy)
    sides = {
        "merged": Side("ours, adapters merged", side(merge=True)),
        "unmerged": Side("ours, adapters not merged", side(merge=False)),
        "together": Side("ours, all agents in one call", side(merge=True, together=True)),
    }
    if team.activated is not None:
        run = engine_side(work, *team.activated, merge=True)
        sides["activated"] = Side("ours, activated LoRA", run)
    if team.reference is not None:
        sides["reference"] = Side(REFERENCE, reference_generation(work, team.reference), rival=True)
        continuous = continuous_batching(work, team.reference)
        sides["continuous"] = Side("transformers, continuous batching", continuous, rival=True)
    others = []
    if options.llama_cpp:
        child = llama_cpp_side(options.llama_cpp, work, team.loaded, team.files)
        others.append(Side("llama.cpp, LoRA", children.enter_context(closing(child)), rival=True))
    if options.vllm:
        child = vllm_side(options.vllm, work, team.loaded, team.files, team.folder)
        others.append(Side("vLLM, LoRA", children.enter_context(closing(child)), rival=True))
    products = MatrixProducts(team.policy)
    limits = [Side(PRODUCTS, partial(products.generation, work.cell))]
    limits.append(Side(BANDWIDTH, partial(products.reading, work.cell)))
    return [*(side for name, side in sides.items() if name not in options.skip), *others, *limits]


def update_sides(work: Workload, team: Team, options: argparse.Namespace, children: ExitStack) -> list[Side]:
    """Return the sides that make an update, without those to skip, and the limit of the machine.

    The arguments are those of ``generation_sides``.
    """
    if set(options.skip) >= UPDATE_SIDES:
        return []
    if work.cell.episodes == 1:
        reason = "a single episode has no other score to be compared with"
        return [Side("all", dict, rival=True, failure=reason)]
    limits = pass_limits(team.policy.device)
    sides = {name: Side(f"ours, {name}", learner_side(work, team.policy, name, limits)) for name in ("ippo", "marft")}
    if team.activated is not None:
        policy = team.activated[1]
        run = learner_side(activated_workload(work, policy), policy, "ippo", limits)
        sides["activated-update"] = Side("ours, ippo, activated LoRA", run)
    if team.reference is not None:
        update = reference_update(work, team.policy, team.reference, limits)
        sides["reference-update"] = Side(REFERENCE, update, rival=True)
    limit = Side(PRODUCTS, partial(MatrixProducts(team.policy).training, training_work(work)))
    return [*(side for name, side in sides.items() if name not in options.skip), limit]


def step_sides(work: Workload, team: Team, options: argparse.Namespace, children: ExitStack) -> list[Side]:
    """Return the sides that generate and make an update, to be compared with TRL; none without ``options.trl``.

    The arguments are those of ``generation_sides``.
    """
    if options.trl is None or work.cell.episodes == 1:
        return []
    policy, limits = team.policy, pass_limits(team.policy.device)

    def both(work: Workload, loaded: LoadedModel, policy: SharedBasePolicy) -> Callable[[], Seconds]:
        return one_after_another(
            engine_side(work, loaded, policy, merge=True), learner_side(work, policy, "ippo", limits)
        )  # fmt: skip

    sides = [Side("ours, merged and ippo", both(work, team.loaded, policy))]
    if team.activated is not None:
        own = activated_workload(work, team.activated[1])
        sides.append(Side("ours, activated LoRA and ippo", both(own, *team.activated)))
    if team.reference is not None:
        theirs = reference_generation(work, team.reference), reference_update(work, policy, team.reference, limits)
        sides.append(Side(REFERENCE, one_after_another(*theirs), rival=True))
    rows = len(next(MicroBatches(limits).split(policy, next(iter(work.batch.turns.values())))).rows)
    trl = trl_side(options.trl, work, team.loaded, team.folder, rows, options.repetitions + 1)
    return [*sides, Side("TRL, GRPO", children.enter_context(closing(trl)), rival=True)]


def compare_memory(options: argparse.Namespace, results: ResultsFile) -> None:
    """Measure the peak memory of teams that the results lack, and print it."""
    cell = peak_cell(options, 1)
    print("\npeak memory above the base model")
    for activated in (False, True):
        if activated and set(options.skip) >= ACTIVATED_SIDES:
            continue
        mode = f"{'activated' if activated else 'ordinary'} LoRA, {cell.episodes} rows, {cell.prompts} prompts"
        if mode not in results.peaks:
            results.peaks[mode] = peaks_of_teams(options, activated=activated)
            results.write()
        print(f"{mode}: {memory_line(results.peaks[mode])}", flush=True)
