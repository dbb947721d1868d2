"""Bodies of worker processes for tests. They import nothing slow, so that a process starts in a fraction of a second.

A real worker imports torch for several seconds. Runs are strings here: "done", "failed" or "hang" says what happens.
"""

import signal
import time


def follow_the_name(connection):
    """Send a row for each run, then what the run's name says."""
    while True:
        try:
            name, _ = connection.recv()
        except EOFError:
            return
        connection.send(("row", {"kind": "eval"}))
        if name == "hang":
            time.sleep(600)
        connection.send((name, {"error": "model: no such file", "traceback": []} if name == "failed" else {}))


def send_a_row_and_hang(connection):
    """Send a row for the first run, whatever it is (unpickling a RunConfig would import torch), and hang."""
    connection.recv_bytes()
    connection.send(("row", {"kind": "eval", "accuracy": None}))
    time.sleep(600)


def flood(connection):
    """Write more than the pipe holds."""
    while True:
        connection.send("row" * 10_000)


def ignore_sigterm(connection):
    """Hang, and end on SIGKILL only."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection.send("row")
    time.sleep(600)
