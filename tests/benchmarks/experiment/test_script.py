"""The start of a script; its end is ``baselines.command_line``, which has tests of its own."""

import sys

from baselines.command_line import interpreter
from benchmarks.experiment import script


def test_the_command_line_is_quoted_and_words_are_added_once(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks/compare.py", "--preset", "my grid.toml"])
    assert script.command_line("--resume").endswith(" benchmarks/compare.py --preset 'my grid.toml' --resume")
    monkeypatch.setattr(sys, "argv", ["benchmarks/compare.py", "--resume", "--seeds", "2"])
    assert script.command_line("--resume").endswith(" benchmarks/compare.py --seeds 2 --resume")


def test_the_command_line_starts_with_the_interpreter_as_it_was_called(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks/compare.py"])
    assert script.command_line("--resume") == f"{interpreter()} benchmarks/compare.py --resume"


def test_nothing_is_announced_once_torch_is_imported(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", sys)
    script.announce_imports("compare")
    assert capsys.readouterr().err == ""
