"""compare.py as its users run it: a small real comparison end to end, stopped and resumed, and every wrong option."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import compare, grid
from benchmarks.grid import GridError, load_preset

ROOT = Path(__file__).resolve().parents[2]
SMALL = """
arms = ["ippo", "marft"]
seeds = 1
updates = 2
episodes = 16
evaluate_every = 1
evaluation_items = 16
[tasks.relay.arguments]
dataset = "relay"
style = "symbols"
[settings]
normalization = "sum"
learning_rate = 1e-3
[decoding]
max_new_tokens = 6
"""


@pytest.fixture
def preset(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def run(*arguments, **keywords):
    command = [sys.executable, "benchmarks/compare.py", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, **keywords)


def test_a_whole_comparison_then_its_folder_again(tmp_path, preset):
    out = tmp_path / "results"
    first = run("--preset", preset, "--out", out)
    assert first.returncode == 0, first.stderr
    assert "marft - ippo" in first.stdout and "inconclusive" in first.stdout
    assert first.stdout.rstrip().endswith(f"Results: {out}/ (rows.jsonl, summary.json, report.md, curve_*.png)")
    assert {p.name for p in out.iterdir()} >= {"rows.jsonl", "summary.json", "report.md", "curve_relay.png"}
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert rows[0]["kind"] == "run" and rows[0]["versions"]["torch"]
    evals = [r for r in rows if r["kind"] == "eval"]
    assert {(r["arm"], r["update"], r["mode"]) for r in evals} == {
        (a, u, m) for a in ("ippo", "marft") for u in (0, 1, 2) for m in ("greedy", "sampled")
    }
    start = {r["arm"]: r["item_score"] for r in evals if r["update"] == 0 and r["mode"] == "sampled"}
    assert start["ippo"] == start["marft"]  # same team, same problems, same uniforms
    trains = [r for r in rows if r["kind"] == "train"]
    assert trains[-1]["episodes"] == 32 and trains[-1]["trained_tokens"] > 0

    again = run("--preset", preset, "--out", out)
    assert again.returncode == 2
    assert again.stderr == f"compare: results folder {out} exists: expected --resume, or another folder with --out\n"
    resumed = run("--preset", preset, "--out", out, "--resume")
    assert resumed.returncode == 0 and "all 2 runs are finished already" in resumed.stdout
    other = run("--preset", preset, "--out", out, "--resume", "--updates", "3")
    assert other.returncode == 2 and "holds another configuration" in other.stderr


def test_ctrl_c_leaves_a_folder_that_resume_finishes(tmp_path, preset):
    out = tmp_path / "results"
    command = [sys.executable, "benchmarks/compare.py", "--preset", str(preset), "--out", str(out), "--workers", "1"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "relay ippo seed 0: finished" in line:
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; go on with" in errors and "--resume" in errors and "Traceback" not in errors
    kept = (out / "cells" / "relay-ippo-0.jsonl").read_bytes()
    done = run("--preset", preset, "--out", out, "--resume")
    assert done.returncode == 0, done.stderr
    assert "1 runs, 1 side by side" in done.stdout
    assert (out / "cells" / "relay-ippo-0.jsonl").read_bytes() == kept
    assert not list((out / "cells").glob("*.part"))


def test_a_failing_run_is_told_and_the_others_are_kept(tmp_path, preset, monkeypatch):
    results = grid.Results(tmp_path / "results")
    small = load_preset(str(preset))
    results.open(small, resume=False)
    good, bad = small.runs()
    object.__setattr__(bad, "model", str(tmp_path / "no-such-model"))
    events = list(grid.execute([bad, good], results, workers=1))
    assert [e.kind for e in events if e.kind != "row"] == ["failed", "done"]
    assert "ModelNotFound" in next(e for e in events if e.kind == "failed").row["error"]
    assert results.cell(good).is_file() and not results.cell(bad).is_file()


def test_workers_that_die_end_the_comparison_with_a_word(tmp_path, preset):
    results = grid.Results(tmp_path / "results")
    small = load_preset(str(preset))
    results.open(small, resume=False)
    events = grid.execute(small.runs(), results, workers=1)
    next(events)
    for process in __import__("multiprocessing").active_children():
        os.kill(process.pid, signal.SIGKILL)
    started = time.monotonic()
    with pytest.raises(GridError, match="all workers died with 2 runs left"):
        list(events)
    assert time.monotonic() - started < 30


def test_a_killed_parent_leaves_no_workers_behind(tmp_path, preset):
    out = tmp_path / "results"
    command = [sys.executable, "benchmarks/compare.py", "--preset", str(preset), "--out", str(out), "--workers", "1"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "update 0/2" in line:
            break
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert workers
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while any(_runs(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_runs(pid) for pid in workers)


def _runs(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "slow"], "preset 'slow': expected one of quick, report, smollm, or the path of a .toml file"),
        (["--arms", "ippo", "marfft"], "arm='marfft': expected one of ippo, mappo"),
        (["--model", "smolm2"], "model: got 'smolm2', expected tiny, tiny-report, smollm2-135m"),
        (["--seeds", "0"], "seeds=0"),
        (["--updates", "-1"], "updates=-1: expected at least 0"),
        (["--workers", "0"], "--workers 0: expected at least 1"),
        (["--dataset", "gsm9k"], "dataset='gsm9k': expected one of"),
        (["--dataset", "gsm8k", "--path", "no/such/folder"], "no/such/folder"),
    ],
)
def test_wrong_options_are_one_line(arguments, message, tmp_path, capsys):
    assert compare.main([*arguments, "--out", str(tmp_path / "r")]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("compare: ") and message in errors
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arms = [", "Invalid value|Unclosed|Expected"),
        ('arms = ["ippo"]', "expected arms, tasks"),
        (SMALL + "\n[setings]\nclip = 1\n", r"unknown keys \['setings'\]"),
        (SMALL.replace("learning_rate", "leaning_rate"), "no field 'leaning_rate'"),
        (SMALL.replace('"relay"', '"relai"'), "dataset='relai'"),
        (SMALL.replace("max_new_tokens", "max_tokens"), "max_tokens"),
    ],
)
def test_wrong_presets_are_named(text, message, tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    assert compare.main(["--preset", str(path), "--out", str(tmp_path / "r")]) == 2
    errors = capsys.readouterr().err
    assert __import__("re").search(message, errors), errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("name", sorted(p.stem for p in grid.PRESETS.glob("*.toml")))
def test_every_preset_is_valid_and_says_what_it_needs(name):
    assert load_preset(name).runs()
    header = (grid.PRESETS / f"{name}.toml").read_text().split("arms")[0]
    assert "Hardware:" in header and f"python benchmarks/compare.py --preset {name}" in header


def test_both_arms_meet_the_same_problems_in_the_same_order(preset):
    from baselines.train import Run

    one, two = (Run(config) for config in load_preset(str(preset)).runs())
    assert [one.problems(u).tolist() for u in (1, 2)] == [two.problems(u).tolist() for u in (1, 2)]
    assert one.problems(1).tolist() != one.problems(2).tolist()
