"""The default number of parallel runs, and the share of an accelerator's memory that each of several runs gets."""

import os

import torch

from baselines.models.devices import DeviceChoice
from baselines.policies.micro_batches import GIB
from benchmarks.experiment import comparison, worker_memory
from benchmarks.experiment.grid import Grid
from benchmarks.experiment.results_folder import ResultsFolder

TASKS = {"relay": {"arguments": {"dataset": "relay", "style": "symbols"}}}


def workers_of(monkeypatch, free_gib, cores=8, **fields):
    monkeypatch.setattr(worker_memory, "free_memory", lambda device: int(free_gib * GIB))
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    return worker_memory.default_workers(Grid(arms=("ippo", "marft"), tasks=TASKS, seeds=4, **fields))


def test_every_core_works_if_the_memory_suffices(monkeypatch, capsys):
    assert workers_of(monkeypatch, 64) == 8
    assert capsys.readouterr().out == ""


def test_fewer_runs_are_parallel_if_the_memory_is_small_and_a_line_says_so(monkeypatch, capsys):
    assert workers_of(monkeypatch, 36, model="1.5B", dtype="bfloat16") == 2
    expected = "2 runs in parallel, fewer than the 8 cores, because of the memory: a run needs up to"
    assert expected in capsys.readouterr().out
    assert workers_of(monkeypatch, 1, model="1.5B") == 1


def test_no_more_workers_than_runs(monkeypatch, capsys):
    assert workers_of(monkeypatch, 200, cores=64) == 8
    assert capsys.readouterr().out == ""


def test_parallel_runs_share_an_accelerator(monkeypatch):
    monkeypatch.setattr(worker_memory, "choose_device", lambda name: DeviceChoice(torch.device("cuda:0"), ""))
    monkeypatch.setattr(worker_memory, "default_memory", lambda device: 72 * GIB)
    runs = Grid(arms=("ippo",), tasks=TASKS, seeds=4, device="cuda").runs()
    shared = worker_memory.share_memory(runs, 3)
    assert [run.memory_gib for run in shared] == [24.0] * 4
    assert [run.hash() for run in shared] == [run.hash() for run in runs]  # so that a comparison can be resumed
    assert worker_memory.share_memory(runs, 1) == runs
    own = Grid(arms=("ippo",), tasks=TASKS, seeds=4, device="cuda", memory_gib=30.0).runs()
    assert worker_memory.share_memory(own, 3) == own


def test_runs_on_a_cpu_have_no_share():
    runs = Grid(arms=("ippo",), tasks=TASKS, seeds=2).runs()
    assert worker_memory.share_memory(runs, 2) == runs


def test_a_comparison_gives_its_workers_their_shares(monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(worker_memory, "default_memory", lambda device: 72 * GIB)

    def execute(todo, results, workers):
        given.extend(todo)
        yield from ()

    monkeypatch.setattr(comparison, "execute", execute)
    grid = Grid(arms=("ippo",), tasks=TASKS, seeds=2)
    results = ResultsFolder(tmp_path / "results")
    results.open(grid, resume=False, data={})
    comparison.run_grid(grid, results, 8)
    assert [run.memory_gib for run in given] == [36.0, 36.0]
