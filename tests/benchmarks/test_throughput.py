"""throughput.py measures every subject and writes its goals. Times are not tested."""

import json
import statistics

import pytest

from benchmarks import throughput
from benchmarks.speed import rounds, turns


def test_every_subject_is_measured_and_every_repetition_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(turns, "EPISODES", 2)
    monkeypatch.setattr(turns, "BATCHES", (1, 256))
    assert throughput.main(["--repetitions", "2", "--json", str(tmp_path / "written.json")]) == 0
    written = json.loads((tmp_path / "written.json").read_text())
    assert all(len(s["micros"]) == 2 and min(s["micros"]) > 0 for s in written["subjects"].values())
    printed = capsys.readouterr().out
    assert all(goal["name"] in printed for goal in written["goals"])
    goals = {goal["name"]: goal for goal in written["goals"]}
    raw, stock = written["subjects"]["raw"]["micros"], written["subjects"]["stock"]["micros"]
    assert goals["raw / stock"]["value"] == min(raw) / min(stock)
    assert goals["raw / stock"]["paired"] == statistics.median(r / s for r, s in zip(raw, stock, strict=True))
    assert goals["raw / stock"]["met"] is (goals["raw / stock"]["value"] <= 0.142)
    assert goals["batch runner adds per turn, N = 256"]["bound"] == 10


def test_the_timed_turns_are_played(monkeypatch):
    monkeypatch.setattr(turns, "EPISODES", 3)
    played = []
    make = turns.FlexMG.step
    monkeypatch.setattr(turns.FlexMG, "step", lambda self, action: (played.append(action), make(self, action)))
    for subject, actions in (
        (turns.turns_of("", lambda: turns.stock(turns.TEAMS["duo"]()), "x"), ["x"] * 6),
        (turns.turns_of("", lambda: turns.raw(turns.connected(4, "full")), "x"), ["x"] * 12),
        (turns.by_hand(5, 2), [turns.SHORT] * 20),
        (turns.by_runner(5, 2), [turns.SHORT] * 20),
    ):
        played.clear()
        subject.run()
        assert played == actions
        assert subject.turns == len(actions)


def test_wrong_options_are_named(tmp_path, capsys):
    for arguments, words in (
        (["--repetitions", "0"], "--repetitions=0: expected at least 1"),
        (["rounds", "--rounds", "0"], "--rounds=0: expected at least 1"),
        (["--json", str(tmp_path / "no" / "file.json")], "expected a file in an existing folder"),
    ):
        with pytest.raises(SystemExit) as stop:
            throughput.main(arguments)
        assert stop.value.code == 2
        assert words in capsys.readouterr().err


def test_rollouts_of_several_rounds_are_measured(tmp_path, capsys):
    file = tmp_path / "rounds.json"
    words = ["--model", "tiny", "--episodes", "2", "--new-tokens", "2", "--repetitions", "2"]
    assert throughput.main(["rounds", *words, "--json", str(file)]) == 0
    written, printed = json.loads(file.read_text()), capsys.readouterr().out
    for way in rounds.WAYS:
        for kind in ("ordinary", "activated"):
            assert len(written[f"{kind}, {way}"]) == 2 and f"{kind}, {way}" in printed
