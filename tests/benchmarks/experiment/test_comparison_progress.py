"""Progress of a comparison: lines in a file or pipe, and a bar over the updates of all runs on a terminal."""

import io
import sys

from benchmarks.experiment.comparison_progress import ComparisonProgress
from benchmarks.experiment.grid import Grid
from benchmarks.experiment.results_folder import ResultsFolder
from benchmarks.experiment.workers import Event

GRID = Grid(arms=("ippo", "marft"), tasks={"relay": {"arguments": {"dataset": "relay"}}}, seeds=1, updates=2)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def events(run):
    train = {"kind": "train", "task": "relay", "reward": 0.5, "wall_s": 12.0}
    yield Event("row", run, {"kind": "eval", "task": "relay", "update": 0, "mode": "greedy", "accuracy": 0.25})
    yield Event("row", run, {"kind": "eval", "task": "one (trained on relay)", "update": 0, "mode": "greedy",
                             "accuracy": 0.5})  # fmt: skip
    yield Event("row", run, train | {"update": 1})
    yield Event("row", run, train | {"update": 2, "wall_s": 0.1, "reward": None})
    yield Event("done", run, {})


def test_elsewhere_it_is_a_line_for_each_evaluation_slow_update_and_end(tmp_path, capsys):
    first, second = GRID.runs()
    progress = ComparisonProgress(GRID.runs(), ResultsFolder(tmp_path))
    for event in events(first):
        progress.report(event)
    progress.report(Event("failed", second, {"error": "model: no such file", "traceback": []}))
    progress.report(Event("failed", second, {"error": "KeyError: 3", "traceback": ["Traceback", "KeyError: 3"]}))
    progress.close()
    output, errors = capsys.readouterr()
    lines = output.splitlines()
    assert lines[:3] == [
        "[0/2] relay ippo seed 0: update 0/2, greedy accuracy 25.0%",
        "[0/2] relay ippo seed 0 on one (trained on relay): update 0/2, greedy accuracy 50.0%",
        "[0/2] relay ippo seed 0: update 1/2 took 12 s, training reward 0.500",
    ]
    assert lines[3].startswith("[1/2] relay ippo seed 0: finished, about ") and len(lines) == 4
    where = f"{tmp_path}/failures/relay-marft-lr0.0001-0.json"
    assert errors == (
        "[2/2] relay marft seed 0: FAILED\nmodel: no such file\n"
        f"[3/2] relay marft seed 0: FAILED; traceback in {where}\nKeyError: 3\n"
    )


def test_on_a_terminal_a_bar_counts_the_updates_of_all_runs(tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    progress = ComparisonProgress(GRID.runs(), ResultsFolder(tmp_path))
    for event in list(events(GRID.runs()[0]))[:4]:
        progress.report(event)
    progress.close()
    assert "2/4 [" in terminal.getvalue() and "relay ippo seed 0: update 2/2, nothing graded" in terminal.getvalue()
