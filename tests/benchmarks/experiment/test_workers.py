"""The processes of a comparison: one that fails or dies costs its own run and no other."""

import multiprocessing
import os
import signal
import time
from dataclasses import replace
from multiprocessing.connection import Connection

import pytest

from benchmarks.experiment import results_folder, workers
from benchmarks.experiment.grid import Grid


@pytest.fixture
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
def folder(tmp_path, small):
    found = results_folder.Results(tmp_path / "results")
    found.open(small, resume=False)
    return found


def test_a_run_that_fails_is_told_in_a_line_and_the_others_are_kept(small, folder):
    good, bad = small.runs()
    bad = replace(bad, model="no/such-model")
    events = list(workers.execute([bad, good], folder, workers=1))
    assert [e.kind for e in events if e.kind != "row"] == ["failed", "done"]
    error = next(e for e in events if e.kind == "failed").row["error"]
    assert "no/such-model" in error and "Traceback" not in error
    assert folder.finished(good) and not folder.finished(bad)


def test_a_worker_that_is_killed_costs_its_run_and_no_other(small, folder):
    first, second = small.runs()
    events = workers.execute([first, second], folder, workers=1)
    assert next(events).row["kind"] == "eval"
    for process in multiprocessing.active_children():
        os.kill(process.pid, signal.SIGKILL)
    told = [event for event in events if event.kind != "row"]
    assert [(e.kind, e.run.arm) for e in told] == [("failed", "ippo"), ("done", "marft")]
    assert "its process was killed by signal 9" in told[0].row["error"]
    again = [e.kind for e in workers.execute([first], folder, workers=1)]
    assert again[-1] == "done" and folder.finished(first)


def test_closing_it_ends_every_worker(small, folder):
    events = workers.execute(small.runs(), folder, workers=2)
    next(events)
    assert len(multiprocessing.active_children()) == 2
    events.close()
    assert multiprocessing.active_children() == []


def test_a_worker_has_ended_before_its_pipe_is_closed(small, folder, monkeypatch):
    """It would otherwise write a row into a pipe that nobody reads, and leave a traceback on the terminal. SIGTERM ends
    it, though it inherits that SIGTERM is ignored."""
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


def floods(connection):
    """A worker that writes more than its pipe takes."""
    while True:
        connection.send("row" * 10_000)


def deaf(connection):
    """A worker that nothing but SIGKILL ends."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection.send("row")
    time.sleep(600)


@pytest.mark.parametrize(("work", "number"), [(floods, signal.SIGTERM), (deaf, signal.SIGKILL)])
def test_a_worker_ends_whatever_it_does(work, number, monkeypatch, capfd):
    monkeypatch.setattr(workers, "_work", work)
    monkeypatch.setattr(workers, "_LAST_WORDS_S", 10.0 if work is floods else 0.2)
    worker = workers.Worker()
    assert worker.connection.poll(60)
    time.sleep(0.2)  # the pipe is full
    worker.end()
    assert worker.process.exitcode == -number and worker.connection.closed
    assert capfd.readouterr().err == ""
