"""`python -m baselines.train` as its users run it, and `baselines.train` as a function and as a module."""

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import baselines
from baselines.ppo.learner import Learner
from baselines.ppo.nonfinite import NonFiniteLoss
from baselines.runs.config_files import read_table
from baselines.runs.run_config import RunConfig
from baselines.train import config_of, main, parse

ROOT = Path(__file__).resolve().parents[2]
SMALL = shlex.split("""
    --arm marft --env math_v0 --env-arg dataset=relay --env-arg style=symbols --model tiny --episodes 16 --track none
    --set evaluation_items=8 --set checkpoint_every=1 --set decoding.max_new_tokens=4
    --set learner.normalization=sum --set learner.learning_rate=3e-3
""")


def rows(folder):
    lines = (folder / "rows.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(x).items() if k not in ("wall_s", "seconds", "started")} for x in lines]


def begin(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "baselines.train", *map(str, arguments)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for_update(folder, update):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if (folder / "rows.jsonl").is_file() and f'"update": {update},' in (folder / "rows.jsonl").read_text():
            return
        time.sleep(0.01)
    raise AssertionError(f"update {update} did not come")


def test_whole_stopped_and_resumed(tmp_path, capsys):
    """Ctrl-C in a real process, then --resume without the settings, against a run in this process."""
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    process = begin(*SMALL, "--updates", "12", "--out", stopped)
    wait_for_update(stopped, 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err == f"\nstopped; go on with: python -m baselines.train --resume --out {stopped}\n"
    assert "update 0/12: relay, greedy accuracy" in out and 2 <= rows(stopped)[-1]["update"] < 12

    capsys.readouterr()
    assert main(["--resume", "--out", str(stopped)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"Results: {stopped}/ (rows.jsonl, transcripts/, checkpoints/); see an episode: ")
    assert main([*SMALL, "--updates", "12", "--out", str(whole)]) == 0
    assert rows(stopped) == rows(whole)
    for file in sorted((whole / "checkpoints" / "000012").rglob("adapter_*")):
        assert (stopped / file.relative_to(whole)).read_bytes() == file.read_bytes()


def test_sigterm_is_a_stop_too(tmp_path):
    process = begin(*SMALL, "--updates", "200", "--out", tmp_path)
    wait_for_update(tmp_path, 1)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert err == f"\nstopped; go on with: python -m baselines.train --resume --out {tmp_path}\n"


@pytest.mark.parametrize("module", ["train", "play"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_while_torch_is_imported(module, number):
    """The signal comes when the first of the slow imports is looked for."""
    program = (
        "import importlib.abc, os, runpy, sys\n"
        "class Strike(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'torch': os.kill(os.getpid(), {int(number)})\n"
        "import importlib.util\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, package=None: True if name == 'torch' else real(name, package)\n"
        "sys.meta_path.insert(0, Strike())\n"
        f"runpy.run_module('baselines.{module}', run_name='__main__')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (run.returncode, run.stderr) == (128 + number, f"\n{module}: stopped before it began\n")


@pytest.mark.slow
def test_a_real_process_killed_at_several_moments(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for update in (0, 3, 7, 11):
        process = begin(*SMALL, "--updates", "12", "--out", killed, "--resume")
        wait_for_update(killed, update)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert begin("--resume", "--out", killed).wait() == 0
    assert begin(*SMALL, "--updates", "12", "--out", whole).wait() == 0
    assert rows(killed) == rows(whole)
    for file in sorted((whole / "checkpoints" / "000012").rglob("adapter_*")):
        assert (killed / file.relative_to(whole)).read_bytes() == file.read_bytes()


def test_the_folder_keeps_the_settings(tmp_path, capsys):
    out = tmp_path / "run"
    assert main([*SMALL, "--updates", "0", "--out", str(out), "--cooperation"]) == 0
    table = read_table(out / "config.json")
    assert table["learner"]["normalization"] == "sum" and table["environment_arguments"]["style"] == "symbols"
    head, *others = rows(out)
    assert head["kind"] == "run" and head["config"] == table and head["versions"]["torch"] and head["threads"]
    assert json.loads((out / "config.json").read_text())["config_hash"] == head["config_hash"]
    assert set(others[1]["cooperation"]) == {"reasoner_0"} and "cooperation" not in others[0]
    again = ["--config", str(out / "config.json"), "--out", str(tmp_path / "again"), "--track", "none"]
    assert main(again) == 0 and rows(tmp_path / "again") == rows(out)
    capsys.readouterr()
    assert main(["--resume", "--out", str(out), "--seed", "5"]) == 2
    assert "another configuration: seed was 0, now 5: expected the same" in capsys.readouterr().err


def test_who_plays_can_be_said_on_the_command_line(tmp_path):
    words = "--arm marft --set bases.actor_0=tiny-report --set scripted.reasoner_0=said.txt --set tuning=full"
    config = config_of(parse([*shlex.split(words), "--out", str(tmp_path)]))
    assert (config.bases, config.tuning) == ({"actor_0": "tiny-report"}, "full")
    assert config.scripted == {"reasoner_0": "said.txt"} and config.hash() != RunConfig(arm="marft").hash()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--arm", "marft", "--set", "bases=tiny"], "bases='tiny': expected a table"),
        (["--arm", "marft", "--set", "bases.reasonr_0=tiny"], "(did you mean 'reasoner_0'?)"),
        ([], "no arm (neither --arm nor --config gives it): expected --arm NAME"),
        (["--resume"], "train: nothing to resume in "),
        (["--arm", "marfft"], "(did you mean 'marft'?)"),
        (["--arm", "marft", "--env-arg", "style"], "--env-arg style: expected KEY=VALUE"),
        (["--arm", "marft", "--set", "learner.clipp=1"], "learner has no key 'clipp' (did you mean 'clip'?)"),
        (["--arm", "marft", "--set", "learner.clip=abc"], "LearnerConfig clip='abc': expected a number"),
        (["--arm", "marft", "--set", "updtes=1"], "config has no key 'updtes' (did you mean 'updates'?)"),
        (["--arm", "marft", "--env", "maths_v0"], "maths_v0"),
        (["--arm", "marft", "--env-arg", "dataset=rely"], "rely"),
        (["--arm", "marft", "--model", "tny"], "did you mean 'tiny'?"),
        (["--arm", "marft", "--config", "none.toml"], "config none.toml: no such file"),
        (["--arm", "single", "--env-arg", "dataset=relay"], "arm='single' on relay: each agent holds a part"),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, words, says):
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    written = capsys.readouterr()
    told = written.err
    assert told.startswith("train: ") and says in told and told.count("\n") == 1
    assert written.out == ""  # nothing says that a run has begun


def test_a_tracker_that_is_missing_is_told_before_any_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("baselines.runs.tracking.find_spec", lambda name: None)
    assert main([*SMALL, "--out", str(tmp_path / "run"), "--track", "wandb"]) == 1
    assert "pip install 'marft-envs[wandb]'" in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_what_stops_a_run_is_told_in_a_line(tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"

    def fail(learner, batch):
        raise NonFiniteLoss(3, learner.guard.folder / "nonfinite_batch.pt")

    monkeypatch.setattr(Learner, "update", fail)
    assert main([*SMALL, "--updates", "1", "--out", str(out)]) == 1
    written = capsys.readouterr()
    assert f"1 updates of 16 episodes; folder {out}\n" in written.out
    told = f"train: 3 updates in a row had a loss that is not finite; the last batch is in {out}/nonfinite_batch.pt\n"
    assert written.err == told
    (tmp_path / "file").write_text("")
    assert main([*SMALL, "--out", str(tmp_path / "file" / "run")]) == 1
    assert "Not a directory" in capsys.readouterr().err


def test_train_is_a_function_and_a_module():
    """In a fresh process: the name is the same thing before and after the module is imported, and it can be called."""
    program = (
        "import baselines\n"
        "before = baselines.train\n"
        "from baselines import train\n"
        "import baselines.train\n"
        "from baselines.train import RunConfig, train as function\n"
        "assert before is train is baselines.train and RunConfig is baselines.RunConfig\n"
        "relay = {'dataset': 'relay'}\n"
        "config = RunConfig(arm='marft', environment_arguments=relay, updates=0, evaluation_items=4)\n"
        "print(function(config).counts == baselines.train(config).counts)\n"
    )
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert run.stdout == "True\n", run.stderr


def test_names_of_the_package():
    assert all(getattr(baselines, name) for name in baselines.__all__)
    with pytest.raises(AttributeError, match="no attribute 'trein'"):
        _ = baselines.trein


def test_a_wrong_setting_leaves_no_folder_that_blocks_the_right_one(tmp_path, capsys):
    for wrong in (["--env-arg", "datset=relay"], ["--model", "tinny"]):
        assert main([*SMALL, *wrong, "--out", str(tmp_path / "run")]) == 2
        assert "did you mean" in capsys.readouterr().err or wrong[0] == "--model"
        assert not (tmp_path / "run").exists()
