"""``--dry-run`` and ``--only``: what would be run, what it costs, and parts of a comparison."""

import json

import pytest

from benchmarks import compare
from benchmarks.experiment import estimate
from benchmarks.experiment.comparison import chosen_runs
from benchmarks.experiment.estimate import Cost, evaluations, measure, most_tokens
from benchmarks.experiment.grid import load_preset
from tests.benchmarks.small_comparison import SMALL


@pytest.fixture
def preset(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_tokens_and_evaluations_by_hand(preset):
    run = load_preset(str(preset)).runs()[0]
    agents, rounds = 2, 1
    played = run.updates * run.episodes + 2 * evaluations(run) * run.evaluation_items
    assert most_tokens(run) == played * agents * rounds * run.decoding.max_new_tokens
    # before training, then after every evaluate_every updates, and at the end
    assert evaluations(run) == len({0, run.updates, *range(0, run.updates + 1, run.evaluate_every)})


def test_the_time_of_a_run_is_the_sum_of_its_parts(preset):
    run = load_preset(str(preset)).runs()[0]
    cost = Cost(update=2.0, evaluation=5.0, start=1.0, disk=0)
    assert cost.seconds(run) == 1.0 + 2.0 * run.updates + 5.0 * evaluations(run)


def test_a_measurement_is_scaled_to_the_whole_run(preset, monkeypatch):
    """A fake clock: every row takes a second, so that an update takes one and an evaluation two."""
    now = iter(range(1000))
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: float(next(now)))

    def train(config, on_row, folder):
        folder.mkdir()
        (folder / "rows.jsonl").write_bytes(b"x" * 700)
        for kind in ("eval", "eval", "train", "train", "eval", "eval"):
            on_row({"kind": kind})

    monkeypatch.setattr(estimate, "train", train)
    monkeypatch.setattr(estimate, "_QUICK_S", 0.0)
    run = load_preset(str(preset)).runs()[0]
    found = measure(run)
    small = estimate._small(run)
    assert found.update == run.episodes / small.episodes
    assert found.evaluation == 2 * run.evaluation_items / small.evaluation_items
    assert (found.start, found.disk) == (0.0, 700)


def test_a_dry_run_prints_the_plan_and_makes_no_folder(preset, tmp_path, capsys):
    assert compare.main(["--preset", str(preset), "--dry-run", "--out", str(tmp_path / "r")]) == 0
    out = capsys.readouterr().out
    assert not (tmp_path / "r").exists()
    grid = load_preset(str(preset))
    for arm in grid.arms:
        assert f"relay                {arm:<16} {grid.seeds:4}" in out
    assert f"{len(grid.runs())} runs, " in out and "MiB on disk" in out
    assert f"{sum(map(most_tokens, grid.runs())):,} generated tokens" in out


@pytest.mark.slow
def test_parts_of_a_comparison(preset, tmp_path, capsys):
    grid = load_preset(str(preset))
    first, *_ = grid.arms
    assert [(r.arm, r.seed) for r in chosen_runs(grid, [f"relay/{first}/0"])] == [(first, 0)]
    assert chosen_runs(grid, []) == grid.runs()
    folder = tmp_path / "r"
    command = ["--preset", str(preset), "--out", str(folder), "--workers", "1"]
    assert compare.main([*command, "--only", f"relay/{first}/0"]) == 0
    heads = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert {(r["arm"], r["seed"]) for r in heads if r["kind"] == "run"} == {(first, 0)}
    capsys.readouterr()
    assert compare.main([*command, "--resume", "--dry-run"]) == 0
    assert f"{len(grid.runs()) - 1} runs, " in capsys.readouterr().out
