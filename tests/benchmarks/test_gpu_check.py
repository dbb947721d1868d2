"""gpu_check.py without a GPU: its exit code and message, wrong options, and the report of a result."""

import pytest
import torch

from baselines.engine.torch_engine import Decoding
from baselines.errors import RunError
from baselines.runs.run import Run
from baselines.runs.run_config import RunConfig
from benchmarks import gpu_check
from benchmarks.gpu_check import Result, compare, copy_adapters, main, train


def test_without_a_gpu_it_says_so_and_exits_with_2(monkeypatch, capsys):
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert printed.err.startswith("NOT CHECKED: device cpu") and "--device cpu" in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--updates", "0"], "--updates 0: expected at least 1"), (["--models", "gpt2"], "invalid choice: 'gpt2'")],
)
def test_wrong_options_are_named(arguments, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err


def test_a_device_that_is_not_there_is_one_line(capsys):
    assert main(["--device", "tpu"]) == 2
    assert capsys.readouterr().err == "gpu_check: device='tpu': expected auto, cpu, cuda, cuda:N or mps\n"


def test_faults_decide_the_exit_code_and_are_printed(monkeypatch, capsys, tmp_path):
    good = Result("duo", "tiny", "device cpu", 1234.5, 2.25, 512.0, {"before": {"equal_replies": 1.0}})
    bad = Result("duo", "tiny", "device cpu", faults=["after training: far off"])
    arguments = ["--device", "cpu", "--models", "tiny", "--json", str(tmp_path / "results.json")]
    for result, code in ((good, 0), (bad, 1)):
        monkeypatch.setattr(gpu_check, "check", lambda *_, found=result: found)
        assert main(arguments) == code
    assert "far off" in (tmp_path / "results.json").read_text()
    printed = capsys.readouterr().out
    assert "1,234 generated tokens/s, 2.2 s per update, peak memory 512 MiB" in printed
    assert "before training: equal_replies 1" in printed and "FAULT after training: far off" in printed


def test_two_runs_agree_before_the_training_and_after_the_adapters_were_copied():
    arguments = {"dataset": "relay", "team": "duo"}
    config = RunConfig(
        arm="marft",
        environment_arguments=arguments,
        episodes=4,
        evaluation_items=3,
        decoding=Decoding(max_new_tokens=8),
        settings={"learning_rate": 0.05},
    )
    trained, other = Run(config), Run(config)
    result = Result("duo", "tiny", "device cpu")
    compare(other, trained, result, "before")
    train(trained, 1, result)
    assert result.faults == [] and result.tokens_per_s > 0 and result.seconds_per_update > 0
    assert result.peak_memory_mib > 100
    compare(other, trained, result, "without the copy")
    assert any("without the copy training" in fault for fault in result.faults)
    result.faults.clear()
    copy_adapters(trained, other)
    compare(other, trained, result, "after")
    assert result.faults == []
    assert result.comparisons["after"] == {"equal_replies": 1.0, "largest": 0.0, "mean": 0.0}


def test_exhausted_memory_is_one_line(monkeypatch, capsys):
    def check(*_):
        raise RunError("out of memory with a single turn")

    monkeypatch.setattr(gpu_check, "check", check)
    assert main(["--device", "cpu", "--models", "tiny"]) == 1
    assert capsys.readouterr().err == "gpu_check: out of memory with a single turn\n"
