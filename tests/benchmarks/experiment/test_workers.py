"""Worker processes of a comparison: a run that fails, or whose process dies, affects no other run."""

import multiprocessing
import os
import signal
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from types import SimpleNamespace

import pytest

from benchmarks.experiment import workers
from benchmarks.experiment.grid import Grid
from benchmarks.experiment.results_folder import ResultsFolder
from tests.benchmarks.experiment import light_workers

NO_FOLDERS = SimpleNamespace(run_folder=lambda run: "")


@pytest.fixture(scope="module")
def small():
    return Grid(
        arms=("ippo", "marft"),
        tasks={"relay": {"arguments": {"dataset": "relay", "style": "symbols"}, "decoding": {"max_new_tokens": 6}}},
        seeds=1,
        updates=1,
        episodes=8,
        evaluation_items=8,
    )


@pytest.fixture
def light(monkeypatch):
    monkeypatch.setattr(workers, "_work", light_workers.follow_the_name)


def test_a_run_that_fails_is_reported_in_one_line_and_the_next_one_is_done(small, tmp_path):
    """The body of a worker, called in this process: no model of that name, then a run that can be trained."""
    folder = ResultsFolder(tmp_path / "results")
    folder.open(small, resume=False)
    good, other = small.runs()
    bad = replace(other, model="no/such-model")
    ours, theirs = multiprocessing.Pipe()
    for run in (bad, good):
        ours.send((run, str(folder.run_folder(run))))
    before = signal.getsignal(signal.SIGTERM)
    receive = theirs.recv

    class TwoRuns:
        """The worker's end of the pipe, which is closed after two runs."""

        left = 2
        send = theirs.send

        def recv(self):
            self.left -= 1
            if self.left < 0:
                raise EOFError
            return receive()

    try:
        workers._work(TwoRuns())
    finally:
        signal.signal(signal.SIGTERM, before)
    events = []
    while ours.poll():
        events.append(ours.recv())
    kinds = [kind for kind, _ in events]
    assert kinds[0] == "failed" and kinds[-1] == "done" and set(kinds[1:-1]) == {"row"}
    assert "no/such-model" in events[0][1]["error"] and "Traceback" not in events[0][1]["error"]
    assert events[0][1]["traceback"][0] == "Traceback (most recent call last):"
    assert not any(key.startswith("item_") for _, row in events for key in row)
    assert folder.finished(good) and not folder.finished(bad)


def test_runs_are_done_one_after_the_other_by_one_worker(light):
    events = [(event.kind, event.run) for event in workers.execute(["failed", "done"], NO_FOLDERS, workers=1)]
    assert events == [("row", "failed"), ("failed", "failed"), ("row", "done"), ("done", "done")]


def test_a_killed_worker_costs_its_run_and_no_other(light):
    events = workers.execute(["hang", "done"], NO_FOLDERS, workers=1)
    assert next(events).kind == "row"
    for process in multiprocessing.active_children():
        os.kill(process.pid, signal.SIGKILL)
    ends = [event for event in events if event.kind != "row"]
    assert [(event.kind, event.run) for event in ends] == [("failed", "hang"), ("done", "done")]
    assert "its process was killed by signal 9" in ends[0].row["error"] and ends[0].row["traceback"] == []


def test_closing_the_events_ends_every_worker(light):
    events = workers.execute(["hang", "hang"], NO_FOLDERS, workers=2)
    next(events)
    assert len(multiprocessing.active_children()) == 2
    events.close()
    assert multiprocessing.active_children() == []


def test_a_real_worker_ends_on_sigterm_before_its_pipe_is_closed(small, tmp_path, monkeypatch):
    """It inherits that SIGTERM is ignored. If the pipe were closed first, it would print a traceback."""
    folder = ResultsFolder(tmp_path / "results")
    folder.open(small, resume=False)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        events = workers.execute(small.runs(), folder, workers=1)
        next(events)
        (process,) = multiprocessing.active_children()
        alive, close = [], Connection.close

        def closed(connection):
            alive.append(process.is_alive())
            close(connection)

        monkeypatch.setattr(Connection, "close", closed)
        events.close()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert alive == [False] and process.exitcode == -signal.SIGTERM


@pytest.mark.parametrize(
    ("name", "number"), [("flood", signal.SIGTERM), ("ignore_sigterm", signal.SIGKILL)], ids=["flood", "ignore_sigterm"]
)
def test_a_worker_ends_whatever_it_does(name, number, monkeypatch, capfd):
    monkeypatch.setattr(workers, "_work", getattr(light_workers, name))
    monkeypatch.setattr(workers, "_STOP_S", 10.0 if name == "flood" else 0.2)
    worker = workers.Worker()
    assert worker.connection.poll(60)
    time.sleep(0.2)  # until the pipe is full
    worker.stop()
    assert worker.process.exitcode == -number and worker.connection.closed
    assert capfd.readouterr().err == ""
