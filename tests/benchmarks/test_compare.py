"""compare.py as its users run it: a small real comparison end to end, stopped and resumed, and every wrong option."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import compare
from benchmarks.experiment import grid
from benchmarks.experiment.grid import load_preset

BEGUN = "compare: loading torch and transformers ...\n"
ROOT = Path(__file__).resolve().parents[2]
SMALL = """
arms = ["ippo", "marft"]
seeds = 1
updates = 4
episodes = 16
evaluate_every = 2
checkpoint_every = 2
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


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    path = tmp_path_factory.mktemp("preset") / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory, preset):
    """A comparison that nothing interrupted: its folder, and what it printed."""
    out = tmp_path_factory.mktemp("whole") / "results"
    return out, run("--preset", preset, "--out", out)


def run(*arguments):
    command = [sys.executable, "benchmarks/compare.py", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


def start(*arguments):
    command = [sys.executable, "-u", "benchmarks/compare.py", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def rows_of(folder):
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def without_times(folder):
    """Every row but for what a clock says; the comparison's head without its sessions."""
    timed = ("wall_s", "seconds", "started", "sessions")
    return [{key: value for key, value in row.items() if key not in timed} for row in rows_of(folder)]


def test_a_whole_comparison(whole):
    out, done = whole
    assert done.returncode == 0, done.stderr
    assert done.stderr == BEGUN and "loading" not in done.stdout
    assert "marft - ippo" in done.stdout and "inconclusive" in done.stdout
    assert done.stdout.rstrip().endswith(f"Results: {out}/ (rows.jsonl, summary.json, report.md, curve_*.png)")
    assert {p.name for p in out.iterdir()} >= {"rows.jsonl", "summary.json", "report.md", "curve_relay.png"}
    rows = rows_of(out)
    assert rows[0]["kind"] == "run" and rows[0]["sessions"][0]["versions"]["torch"]
    assert [(r["arm"], r["learning_rate"]) for r in rows if r["kind"] == "cell"] == [("ippo", 1e-3), ("marft", 1e-3)]
    assert "relay: model tiny-relay-duo-v1 v1 (sha256 " in done.stdout and "answers nothing scores 0.0 %" in " ".join(
        done.stdout.split()
    )
    evals = [r for r in rows if r["kind"] == "eval"]
    assert {(r["arm"], r["update"], r["mode"]) for r in evals} == {
        (a, u, m) for a in ("ippo", "marft") for u in (0, 2, 4) for m in ("greedy", "sampled")
    }
    start = {r["arm"]: r["item_score"] for r in evals if r["update"] == 0 and r["mode"] == "sampled"}
    assert start["ippo"] == start["marft"]  # same team, same problems, same uniforms
    trains = [r for r in rows if r["kind"] == "train"]
    assert trains[-1]["episodes"] == 64 and trains[-1]["trained_tokens"] > 0 and trains[-1]["learning_rate"] == 1e-3


def test_a_folder_that_holds_a_comparison(whole, preset, capsys):
    out, _ = whole
    again = ["--preset", str(preset), "--out", str(out)]
    assert compare.main(again) == 2
    expected = f"compare: results folder {out} exists: expected --resume, or another folder with --out\n"
    assert capsys.readouterr().err == expected
    assert compare.main([*again, "--resume"]) == 0
    assert "all 2 runs are finished already" in capsys.readouterr().out
    assert compare.main([*again, "--resume", "--updates", "5"]) == 2
    assert capsys.readouterr().err == (
        f"compare: results folder {out} holds another comparison; tasks.relay.updates was 4, now 5: "
        "expected the same options, or another folder with --out\n"
    )


def test_problems_that_changed_under_their_path_are_not_gone_on_with(tmp_path, capsys):
    problems = tmp_path / "own.jsonl"
    lines = [{"q": f"{i} + {i} = ?", "a": str(2 * i)} for i in range(16)]
    problems.write_text("".join(json.dumps(line) + "\n" for line in lines))
    preset = tmp_path / "own.toml"
    preset.write_text(SMALL + f'\n[transfer.own]\ndataset = "custom"\npath = "{problems}"\n'
                      'columns = {prompt = "q", answer = "a"}\n')  # fmt: skip
    command = ["--preset", str(preset), "--out", str(tmp_path / "r"), "--arms", "untrained", "--updates", "0"]
    assert compare.main([*command, "--workers", "1"]) == 0
    problems.write_text(problems.read_text().replace('"a": "', '"a": "1'))
    capsys.readouterr()
    assert compare.main([*command, "--resume"]) == 2
    errors = capsys.readouterr().err
    assert 'was begun on other problems; task relay: transfer.own.sha256 was "' in errors and errors.count("\n") == 1


def test_killed_in_mid_run_it_goes_on_inside_the_run_to_the_same_rows(tmp_path, preset, whole):
    out = tmp_path / "killed"
    process = start("--preset", preset, "--out", out, "--workers", "1")
    for line in process.stdout:
        if "relay ippo seed 0: update 2/4, sampled" in line:
            break
    checkpoints = out / "cells" / "relay-ippo-lr0.001-0" / "checkpoints"
    while not (checkpoints / "000002").exists():
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=60)
    assert not (checkpoints / "000004").exists() and not (out / "rows.jsonl").exists()
    resumed = run("--preset", preset, "--out", out, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "2 runs (1 of them go on inside)" in resumed.stdout
    assert "ippo seed 0: update 2/4" not in resumed.stdout and "ippo seed 0: update 4/4" in resumed.stdout
    assert without_times(out) == without_times(whole[0])
    assert [p.name for p in checkpoints.iterdir()] == ["000004"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_it_says_how_to_go_on_and_keeps_the_rows(tmp_path, preset, number, code):
    out = tmp_path / "results"
    process = start("--preset", preset, "--out", out, "--workers", "1")
    for line in process.stdout:
        if "relay ippo seed 0: update 0/4, sampled" in line:
            break
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    command = f"benchmarks/compare.py --preset {preset} --out {out} --workers 1 --resume"
    assert errors.startswith(f"{BEGUN}\nstopped; go on with: python") and errors.endswith(f"{command}\n")
    assert {row["kind"] for row in rows_of(out)} >= {"run", "cell", "eval"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_while_it_is_still_being_imported_it_is_one_line(tmp_path, preset, number):
    process = start("--preset", preset, "--out", tmp_path / "results")
    maps = Path(f"/proc/{process.pid}/maps")
    while "libtorch" not in maps.read_text():  # torch is being imported, and after it a good deal more
        time.sleep(0.005)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number and output == ""
    assert errors.startswith(f"{BEGUN}\nstopped; go on with: ") and errors.count("\n") == 3
    assert not (tmp_path / "results").exists()


def test_it_says_that_it_has_begun_before_torch_is_imported():
    program = (
        "import importlib.abc, importlib.util, os, runpy, sys\n"
        "class Strike(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'torch': os.write(2, b'torch'); os._exit(0)\n"
        "importlib.util.find_spec = lambda name, package=None: True\n"  # baselines asks whether torch is there
        "sys.meta_path.insert(0, Strike())\n"
        "runpy.run_path('benchmarks/compare.py', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("", f"{BEGUN}torch")


@pytest.mark.slow
def test_a_killed_parent_leaves_no_workers_behind(tmp_path, preset):
    process = start("--preset", preset, "--out", tmp_path / "results", "--workers", "1")
    for line in process.stdout:
        if "update 0/4" in line:
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
        (["--preset", "quik"], ", or the path of a .toml file (did you mean 'quick'?)"),
        (["--arms", "ippo", "marfft"], "arm='marfft': expected one of ippo, mappo"),
        (["--learning-rates", "1e-3", "-1"], "learning_rates=[0.001, -1.0]: expected a list of different positive"),
        (["--model", "smolm2"], "model='smolm2': expected tiny, tiny-report, smollm2-135m"),
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
        ('arms = ["ippo"]', "expected arms and tasks"),
        (SMALL + "\n[setings]\nclip = 1\n", r"no key 'setings' \(did you mean 'settings'\?\)"),
        (SMALL.replace("[tasks.relay.arguments]", "[tasks.relay.argments]"), r"tasks.relay has no key 'argments'"),
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


def test_a_transfer_data_set_is_played_by_each_task_s_own_team():
    built = compare.grid_of(compare.parse(["--preset", "quick", "--dataset", "one_step"]))
    compare.check_tasks(built)
    teams = {run.task: run.transfer["one_step"]["team"] for run in built.runs()}
    assert teams == {"relay": "duo", "report_8": "panel_8"}
    built = compare.grid_of(compare.parse(["--preset", "rounds", "--dataset", "one_step", "--path", "x"]))
    own = {"dataset": "one_step", "team": "panel_4", "rounds": 3, "memory": "none", "path": "x"}
    assert built.runs()[0].transfer == {"one_step": own}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            '[transfer.hard]\ndataset = "one_step"\nteam = "panel_2"',
            "transfer data set 'hard' has the agents agent_0, ",
        ),
        ('[bases]\nactor_1 = "tiny"', "bases: agent='actor_1': expected one of reasoner_0, actor_0"),
        ('[scripted]\nactor_1 = "a.txt"', "scripted: agent='actor_1': expected one of"),
        ('[scripted]\nactor_0 = "no/such.txt"', "no/such.txt"),
        ('[sharing]\nactor_1 = "one"', "sharing: agent='actor_1': expected one of"),
        ('[sharing]\nactor_0 = "a"\nreasoner_0 = "a"\n[bases]\nactor_0 = "tiny-report"', "expected one base"),
    ],
)
def test_what_does_not_fit_the_agents_is_said_before_any_work(more, message, tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(f"{SMALL}\n{more}\n")
    assert compare.main(["--preset", str(path), "--out", str(tmp_path / "r")]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("compare: task relay, arm ippo: ") and message in errors and errors.count("\n") == 1
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("frozen", [["actor_1"], ["actor_0"]])
def test_frozen_agents_fit_too(frozen):
    sharing = {"actor_0": "one", "reasoner_0": "one"}
    tasks = {"relay": {"arguments": {"dataset": "relay"}, "sharing": sharing, "frozen": frozen}}
    with pytest.raises(grid.GridError, match="task relay, arm marft: frozen"):
        compare.check_tasks(grid.Grid(arms=("marft",), tasks=tasks))


@pytest.mark.parametrize("name", sorted(p.stem for p in grid.PRESETS.glob("*.toml")))
def test_every_preset_is_valid_and_says_what_it_needs(name):
    compare.check_tasks(load_preset(name))
    header = (grid.PRESETS / f"{name}.toml").read_text().split("\narms")[0]
    for words in ("Hardware:", "Time:", f"python benchmarks/compare.py --preset {name}"):
        assert words in header and all(line.startswith("#") for line in header.splitlines())


def test_both_arms_meet_the_same_problems_in_the_same_order(preset):
    from baselines.runs.run import Run

    one, two = (Run(config) for config in load_preset(str(preset)).runs())
    assert [one.problems(u).tolist() for u in (1, 2)] == [two.problems(u).tolist() for u in (1, 2)]
    assert one.problems(1).tolist() != one.problems(2).tolist()
