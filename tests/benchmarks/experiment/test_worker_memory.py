"""The default number of parallel runs."""

import os

from baselines.policies.micro_batches import GIB
from benchmarks.experiment import worker_memory
from benchmarks.experiment.grid import Grid

TASKS = {"relay": {"arguments": {"dataset": "relay", "style": "symbols"}}}


def workers_of(monkeypatch, free_gib, cores=8, **fields):
    monkeypatch.setattr(worker_memory, "free_memory", lambda device: int(free_gib * GIB))
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    return worker_memory.default_workers(Grid(arms=("ippo", "marft"), tasks=TASKS, seeds=4, **fields))


def test_every_core_works_if_the_memory_suffices(monkeypatch, capsys):
    assert workers_of(monkeypatch, 64) == 8
    assert capsys.readouterr().out == ""


def test_fewer_runs_are_parallel_if_the_memory_is_small_and_a_line_says_so(monkeypatch, capsys):
    assert workers_of(monkeypatch, 60, model="1.5B", dtype="bfloat16") == 2
    expected = "2 runs in parallel, fewer than the 8 cores, because of the memory: a run needs up to"
    assert expected in capsys.readouterr().out
    assert workers_of(monkeypatch, 1, model="1.5B") == 1


def test_no_more_workers_than_runs(monkeypatch, capsys):
    assert workers_of(monkeypatch, 200, cores=64) == 8
    assert capsys.readouterr().out == ""
