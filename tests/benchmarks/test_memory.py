"""The command that compares calculated and measured memory."""

import json

import pytest

from benchmarks import memory


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--json"], "--json measures one pass: expected --pass"),
        (["--json", "--pass", "8+2x1", "--pass", "8+2x2"], "--json measures one pass: expected --pass"),
        (["--device", "mps"], "--device mps: expected cpu, cuda or cuda:N"),
        (["--pass", "8x2"], "'8x2': expected PROMPT+REPLYxTURNS"),
        (["--pass", "4+2x1a"], "'4+2x1a': expected a prompt of more than 4 tokens"),
    ],
)
def test_a_wrong_option_is_one_line(words, expected, capsys):
    with pytest.raises(SystemExit) as stop:
        memory.main(words)
    assert stop.value.code == 2 and expected in capsys.readouterr().err


def test_the_model_is_loaded_to_the_device_so_that_auto_takes_its_dtype(monkeypatch):
    asked = []

    def load(name, **options):
        asked.append(options)
        raise RuntimeError("seen")

    monkeypatch.setattr(memory, "load_model", load)
    with pytest.raises(RuntimeError, match="seen"):
        memory.measure(memory.parse(["--device", "cuda:1"]), memory.parse_pass("8+2x1"))
    assert asked[0]["device"] == "cuda:1" and asked[0]["dtype"] == "auto"


@pytest.mark.skipif(not memory.Path("/proc/self/clear_refs").exists(), reason="VmHWM is Linux's")
@pytest.mark.parametrize("size", ["60+20x4", "60+20x4a", "60+20x4ac"])
def test_a_pass_is_measured_on_a_cpu(size, capsys):
    assert memory.main(["--json", "--pass", size]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["calculated_saved"] == pytest.approx(found["measured_saved"], rel=0.2)


def test_an_activated_adapter_reads_the_header_of_the_reply_only():
    assert memory.parse_pass("60+20x4ac") == memory.Pass(60, 20, 4, activated=True, checkpointing=True)
    assert memory.parse_pass("60+20x4a").base == 56 and memory.parse_pass("60+20x4c").base == 0
