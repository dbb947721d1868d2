"""The command ``python -m baselines.train``, and ``baselines.train`` as a function and as a module."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import baselines
from baselines.command_line import interpreter
from baselines.ppo.learner import Learner
from baselines.ppo.nonfinite import NonFiniteLoss
from baselines.runs.config_files import read_settings
from baselines.runs.progress import RunProgress
from baselines.runs.run_config import RunConfig
from baselines.train import config_of, main, parse

ROOT = Path(__file__).resolve().parents[2]
SMALL = shlex.split("""
    --arm marft --env math_v0 --env-arg dataset=relay --env-arg style=symbols --model tiny --episodes 8 --track none
    --set evaluation_items=4 --set checkpoint_every=1 --set decoding.max_new_tokens=3
    --set learner.normalization=sum --set learner.learning_rate=3e-3
""")


def rows(folder):
    """The rows without clock times."""
    lines = (folder / "rows.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(x).items() if k not in ("wall_s", "seconds", "started")} for x in lines]


def assert_same_run(one, other):
    assert rows(one) == rows(other)
    for file in sorted((other / "checkpoints" / "000012").rglob("adapter_*")):
        assert (one / file.relative_to(other)).read_bytes() == file.read_bytes()


def start(*arguments):
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
    raise AssertionError(f"update {update} did not finish")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an uninterrupted run of 12 updates."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert main([*SMALL, "--updates", "12", "--out", str(folder)]) == 0
    return folder


def test_a_process_stopped_by_ctrl_c_resumes_without_its_settings(whole, tmp_path, capsys):
    process = start(*SMALL, "--updates", "12", "--out", tmp_path)
    wait_for_update(tmp_path, 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    placement, stopped = err.split("\n", 1)
    assert placement.startswith("tiny: device ") and "dtype float32" in placement
    resume = f"resume with: {interpreter()} -m baselines.train --resume --out {tmp_path}"
    lost = re.sub(r"updates? \d+( to \d+)? (is|are) in no checkpoint and will be trained again; ", "", stopped)
    assert lost == f"\nstopped; {resume}\n"
    assert "update 0/12: relay, greedy accuracy" in out and 2 <= rows(tmp_path)[-1]["update"] < 12

    capsys.readouterr()
    assert main(["--resume", "--out", str(tmp_path)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"Results: {tmp_path}/ (rows.jsonl, transcripts/, checkpoints/); show an episode with: ")
    assert_same_run(tmp_path, whole)


def test_sigterm_stops_a_run_like_ctrl_c_and_both_name_the_update_that_is_not_saved(tmp_path, capsys, monkeypatch):
    def stop(progress, row):
        if row["update"] == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(RunProgress, "row", stop)
    assert main([*SMALL, "--updates", "200", "--out", str(tmp_path)]) == 143
    assert capsys.readouterr().err.endswith(
        "\nstopped; update 1 is in no checkpoint and will be trained again; "
        f"resume with: {interpreter()} -m baselines.train --resume --out {tmp_path}\n"
    )
    assert rows(tmp_path)[-1]["update"] == 1


@pytest.mark.parametrize("module", ["train", "play"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_import_of_torch_ends_the_process(module, number):
    program = (
        "import importlib.abc, os, runpy, sys\n"
        "class Strike(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'torch': os.kill(os.getpid(), {int(number)})\n"
        "import importlib.util\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, package=None: True if name == 'torch' else real(name, package)\n"
        "sys.meta_path.insert(0, Strike())\n"
        f"sys.argv = ['', *{['--out', 'run'] if module == 'train' else ['run']}]\n"
        f"runpy.run_module('baselines.{module}', run_name='__main__')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    what = {"train": "the run", "play": "the episode"}[module]
    assert (run.returncode, run.stderr) == (128 + number, f"\n{module}: stopped before {what} began\n")


@pytest.mark.parametrize("module", ["train", "play", "evaluate", "export"])
def test_help_does_not_import_torch_or_marft_envs(module):
    program = (
        "import runpy, sys\n"
        "sys.argv = ['', '--help']\n"
        "try:\n"
        f"    runpy.run_module('baselines.{module}', run_name='__main__')\n"
        "except SystemExit as end:\n"
        "    print(end.code, [name for name in ('torch', 'marft_envs') if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert f"python -m baselines.{module}" in run.stdout and run.stdout.endswith("\n0 []\n"), run.stderr


@pytest.mark.slow
def test_a_process_killed_at_several_moments_resumes(whole, tmp_path):
    for update in (0, 3, 7, 11):
        process = start(*SMALL, "--updates", "12", "--out", tmp_path, "--resume")
        wait_for_update(tmp_path, update)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert start("--resume", "--out", tmp_path).wait() == 0
    assert_same_run(tmp_path, whole)


def test_the_folder_records_the_settings(tmp_path, capsys):
    out = tmp_path / "run"
    assert main([*SMALL, "--updates", "0", "--out", str(out), "--cooperation"]) == 0
    settings = read_settings(out / "config.json")
    assert settings["learner"]["normalization"] == "sum" and settings["environment_arguments"]["style"] == "symbols"
    head, *others = rows(out)
    assert head["kind"] == "run" and head["config"] == settings and head["versions"]["torch"] and head["threads"]
    assert json.loads((out / "config.json").read_text())["config_hash"] == head["config_hash"]
    assert set(others[1]["cooperation"]) == {"reasoner_0"} and "cooperation" not in others[0]
    again = ["--config", str(out / "config.json"), "--out", str(tmp_path / "again"), "--track", "none"]
    assert main(again) == 0 and rows(tmp_path / "again") == rows(out)
    capsys.readouterr()
    assert main(["--resume", "--out", str(out), "--seed", "5"]) == 2
    assert "another configuration: seed was 0, now 5: expected the same" in capsys.readouterr().err


def test_bases_and_scripts_of_agents_can_be_set_with_flags(tmp_path):
    words = "--arm marft --set bases.actor_0=tiny-report --set scripted.reasoner_0=said.txt --set tuning=full"
    config = config_of(parse([*shlex.split(words), "--out", str(tmp_path)]))
    assert (config.bases, config.tuning) == ({"actor_0": "tiny-report"}, "full")
    assert config.scripted == {"reasoner_0": "said.txt"} and config.hash() != RunConfig(arm="marft").hash()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arm", "marft", "--set", "bases=tiny"], "bases='tiny': expected a mapping"),
        (["--arm", "marft", "--set", "bases.reasonr_0=tiny"], "(did you mean 'reasoner_0'?)"),
        ([], "no arm in --arm or --config: expected --arm NAME"),
        (["--resume"], "train: nothing to resume in "),
        (["--arm", "marfft"], "(did you mean 'marft'?)"),
        (["--arm", "marft", "--env-arg", "style"], "--env-arg style: expected KEY=VALUE"),
        (["--arm", "marft", "--set", "learner.clipp=1"], "learner has no key 'clipp' (did you mean 'clip'?)"),
        (["--arm", "marft", "--set", "learner.clip=abc"], "LearnerConfig clip='abc': expected a number"),
        (["--arm", "marft", "--set", "updtes=1"], "config has no key 'updtes' (did you mean 'updates'?)"),
        (["--arm", "marft", "--env", "maths_v0"], "maths_v0"),
        (["--arm", "marft", "--env-arg", "split=test"], "argument split='test': expected no split"),
        (
            ["--arm", "marft", "--env", "tests.baselines.task_without_split:counting_v0"],
            "need an environment with the argument split ('train' and 'test'); "
            "tests.baselines.task_without_split:counting_v0 has none",
        ),
        (["--arm", "marft", "--env-arg", "dataset=rely"], "rely"),
        (["--arm", "marft", "--env-arg", "datset=relay"], "did you mean 'dataset'?"),
        (["--arm", "marft", "--model", "tny"], "did you mean 'tiny'?"),
        (["--arm", "marft", "--config", "none.toml"], "config none.toml: no such file"),
        (["--arm", "single", "--env-arg", "dataset=relay"], "arm='single' on relay: each agent has a private part"),
    ],
)
def test_a_wrong_setting_is_one_line_and_leaves_no_folder(tmp_path, clean_registry, capsys, words, message):
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    written = capsys.readouterr()
    assert written.err.startswith("train: ") and message in written.err and written.err.count("\n") == 1
    assert written.out == "" and not (tmp_path / "run").exists()


def test_a_missing_tracker_is_reported_before_any_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("baselines.runs.tracking.find_spec", lambda name: None)
    assert main([*SMALL, "--out", str(tmp_path / "run"), "--track", "wandb"]) == 1
    assert "pip install '.[wandb]'" in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_a_failed_run_is_one_line_and_exit_code_1(tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"

    def fail(learner, batch):
        raise NonFiniteLoss(3, out / "nonfinite_batch.pt")

    monkeypatch.setattr(Learner, "update", fail)
    assert main([*SMALL, "--updates", "1", "--out", str(out)]) == 1
    written = capsys.readouterr()
    assert f"1 updates of 8 episodes; folder {out}\n" in written.out
    assert written.err == f"train: {NonFiniteLoss(3, out / 'nonfinite_batch.pt')}\n"
    (tmp_path / "file").write_text("")
    assert main([*SMALL, "--out", str(tmp_path / "file" / "run")]) == 1
    assert "Not a directory" in capsys.readouterr().err


def test_train_is_a_function_and_a_module():
    """In a fresh process: the name is the same object before and after the module is imported."""
    program = (
        "import baselines\n"
        "before = baselines.train\n"
        "from baselines import train\n"
        "import baselines.train\n"
        "from baselines.train import main\n"
        "print(before is train is baselines.train, callable(train))\n"
    )
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert run.stdout == "True True\n", run.stderr
    relay = {"dataset": "relay"}
    config = RunConfig(arm="marft", environment_arguments=relay, updates=0, evaluation_items=4)
    assert baselines.train.RunConfig is baselines.RunConfig is RunConfig
    assert baselines.train(config).counts == baselines.train.train(config).counts


def test_names_of_the_package():
    assert all(getattr(baselines, name) for name in baselines.__all__)
    with pytest.raises(AttributeError, match="no attribute 'trein'"):
        _ = baselines.trein
    with pytest.raises(AttributeError, match=r"module 'baselines\.train' has no attribute 'trian'"):
        _ = baselines.train.trian
