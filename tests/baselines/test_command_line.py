"""Exit codes and signals: errors are one line, the first signal stops a program, later ones do not disturb its end."""

import errno
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import fields
from pathlib import Path

import pytest

from baselines import command_line, evaluate, play, train
from baselines.command_line import MODEL_OPTIONS, Interrupted, interpreter, interruptible, report_interrupt, run_command
from baselines.models.devices import DTYPES
from baselines.models.load import ModelCorrupt, ModelNotFound
from baselines.models.quantization import QUANTIZATIONS
from baselines.ppo.nonfinite import NonFiniteLoss
from baselines.runs import evaluate_command
from baselines.runs.checkpoint import CheckpointError
from baselines.runs.run_config import RunConfig
from baselines.runs.tracking import TrackerError
from benchmarks import compare
from benchmarks.experiment import comparison

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM)
RUN_WITHOUT_PACKAGES = """
import os, runpy, sys
root, *words = sys.argv[1:]
if words[0] == "-m":
    sys.path.insert(0, root)
    sys.argv = words[1:]
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)
else:
    sys.argv = [os.path.join(root, words[0]), *words[1:]]
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ValueError("clip=-1"), 2, "clip=-1"),
        (TypeError("policy=3"), 2, "policy=3"),
        (ModelNotFound("model='tny'"), 2, "model='tny'"),
        (ModelCorrupt("model file x"), 2, "model file x"),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "x.toml"),
            2,
            "x.toml: No such file or directory",
        ),
        (CheckpointError("no checkpoint"), 1, "no checkpoint"),
        (TrackerError("no tracker"), 1, "no tracker"),
        (NonFiniteLoss(3, None), 1, str(NonFiniteLoss(3, None))),
        (OSError(errno.EACCES, "Permission denied", "/out"), 1, "/out: Permission denied"),
        (OSError(errno.ENOSPC, "No space", "/out"), 1, "/out: No space; make room, then resume with: this"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, Exception) else "",
)
def test_an_error_is_one_line_and_an_exit_code(error, code, line, capsys):
    def work():
        raise error

    assert run_command("program", work, advice="resume with: this") == code
    assert capsys.readouterr().err == f"program: {line}\n"


def test_the_exit_code_of_the_work_and_further_usage_errors():
    assert run_command("program", lambda: None) == 0 and run_command("program", lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        run_command("program", lambda: 1 / 0)
    assert run_command("program", lambda: 1 / 0, usage_errors=(ZeroDivisionError,)) == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_stops_and_later_ones_are_ignored_while_files_are_closed(number, code, capsys):
    before = [signal.getsignal(each) for each in SIGNALS]
    closed = []

    def work():
        try:
            os.kill(os.getpid(), number)
            closed.append("never")
        finally:
            for again in SIGNALS:
                os.kill(os.getpid(), again)
            closed.append("closed")

    with pytest.raises(Interrupted) as stop, interruptible():
        work()
    assert closed == ["closed"] and [signal.getsignal(each) for each in SIGNALS] == before
    assert report_interrupt(stop.value, "resume") == code and capsys.readouterr().err == "\nstopped; resume\n"
    assert run_command("program", work) == code and capsys.readouterr().err == "\nstopped\n"


def test_outside_the_main_thread_the_handlers_stay():
    seen = []

    def work():
        with interruptible():
            seen.append([signal.getsignal(each) for each in SIGNALS])

    before = [signal.getsignal(each) for each in SIGNALS]
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_the_interpreter_is_named_as_the_shell_finds_it(tmp_path, monkeypatch):
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(python.parent)
    assert interpreter() == str(python)  # not "python", which the shell looks for in PATH only
    monkeypatch.chdir(tmp_path)
    assert interpreter() == ".venv/bin/python"
    monkeypatch.setenv("PATH", str(python.parent))
    assert interpreter() == "python"


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["-m", "baselines.train", "--out", "run"], "train"),
        (["-m", "baselines.play", "run"], "train"),
        (["benchmarks/compare.py"], "bench"),
        (["-m", "baselines.evaluate", "run"], "train"),
    ],
    ids=["train", "play", "compare", "evaluate"],
)
def test_a_missing_package_is_one_line(words, extra, tmp_path):
    """The Python of the system, without the environment: no package can be imported."""
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", RUN_WITHOUT_PACKAGES, str(ROOT), *words],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    name = Path(words[0]).stem if words[0] != "-m" else words[1].removeprefix("baselines.")
    assert run.returncode == 2 and run.stderr.count("\n") == 1, run.stderr
    assert run.stderr.startswith(f"{name}: numpy, gymnasium, pettingzoo, tqdm, torch, transformers, peft")
    assert f"pip install '.[{extra}]'" in run.stderr and sys.executable in run.stderr


def test_the_public_names_say_which_packages_are_missing(monkeypatch):
    import baselines

    monkeypatch.setattr(command_line, "find_spec", lambda name: None if name == "torch" else True)
    with pytest.raises(
        ImportError, match=r"^torch not installed for .*: run pip install '\.\[train\]' in the repository"
    ):
        _ = baselines.RunConfig


@pytest.mark.parametrize("number", SIGNALS)
def test_exit_on_signal_ends_the_process_with_its_line(number):
    program = (
        "import os, sys\n"
        "from baselines.command_line import exit_on_signal\n"
        "exit_on_signal('the line')\n"
        f"os.kill(os.getpid(), {int(number)})\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (run.returncode, run.stderr) == (128 + number, "\nthe line\n")


def test_every_program_has_the_same_model_options_and_passes_them_on():
    words = ["--device", "cpu", "--dtype", "bfloat16", "--quantization", "4bit", "--allow-wheel"]
    expected = {"device": "cpu", "dtype": "bfloat16", "quantization": "4bit", "allow_wheel": True}
    configs = (
        train.config_of(train.parse(["--arm", "marft", "--env-arg", "dataset=relay", "--dry-run", *words])),
        evaluate_command.config_of_model(evaluate.parse(["--model", "tiny", *words]), "relay"),
        comparison.grid_of(compare.parse(words)).runs()[0],
    )
    for config in configs:
        assert {name: getattr(config, name) for name in expected} == expected
    options = vars(play.parse(["runs/relay", *words]))
    assert {name: options[name] for name in expected} == expected
    assert set(MODEL_OPTIONS) <= {field.name for field in fields(RunConfig)}


def test_the_help_of_the_types_lists_them_all():
    assert set(re.findall(r"\w+", MODEL_OPTIONS["dtype"])) >= {"auto", *DTYPES}
    assert set(re.findall(r"\w+", MODEL_OPTIONS["quantization"])) >= set(QUANTIZATIONS)
