"""The benchmark of turns runs, tells its goals, and keeps what it measured. Times are not tested."""

import json
import statistics

import pytest

from benchmarks import throughput


def test_it_measures_every_subject_and_keeps_the_repetitions(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(throughput, "EPISODES", 2)
    monkeypatch.setattr(throughput, "BATCHES", (1, 256))
    assert throughput.main(["--repetitions", "2", "--json", str(tmp_path / "kept.json")]) == 0
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert all(len(s["micros"]) == 2 and min(s["micros"]) > 0 for s in kept["subjects"].values())
    printed = capsys.readouterr().out
    assert all(goal["name"] in printed for goal in kept["goals"])
    goals = {goal["name"]: goal for goal in kept["goals"]}
    raw, stock = kept["subjects"]["raw"]["micros"], kept["subjects"]["stock"]["micros"]
    assert goals["raw / stock"]["value"] == min(raw) / min(stock)
    assert goals["raw / stock"]["paired"] == statistics.median(r / s for r, s in zip(raw, stock, strict=True))
    assert goals["raw / stock"]["met"] is (goals["raw / stock"]["value"] <= 0.142)
    assert goals["batch runner adds a turn, N = 256"]["bound"] == 10


def test_the_turns_it_times_are_played(monkeypatch):
    monkeypatch.setattr(throughput, "EPISODES", 3)
    played = []
    make = throughput.FlexMG.step
    monkeypatch.setattr(throughput.FlexMG, "step", lambda self, action: (played.append(action), make(self, action)))
    for subject, texts in (
        (throughput.turns_of("", lambda: throughput.stock(throughput.TEAMS["duo"]()), "x"), ["x"] * 6),
        (throughput.turns_of("", lambda: throughput.raw(throughput.connected(4, "full")), "x"), ["x"] * 12),
        (throughput.by_hand(5, 2), [throughput.SHORT] * 20),
        (throughput.by_runner(5, 2), [throughput.SHORT] * 20),
    ):
        played.clear()
        subject.run()
        assert played == texts
        assert subject.turns == len(texts)


def test_wrong_options_are_named(tmp_path, capsys):
    for arguments, words in (
        (["--repetitions", "0"], "--repetitions=0: expected at least 1"),
        (["--json", str(tmp_path / "no" / "file.json")], "expected a file in an existing folder"),
    ):
        with pytest.raises(SystemExit) as stop:
            throughput.main(arguments)
        assert stop.value.code == 2
        assert words in capsys.readouterr().err
