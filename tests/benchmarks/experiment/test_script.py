"""How the scripts of benchmarks end, in the main thread and outside of it."""

import errno
import os
import signal
import threading

import pytest

from baselines.runs.checkpoint import CheckpointError
from benchmarks.experiment import script


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_one_line_and_the_code_of_a_stop(number, capsys):
    assert script.run("compare", lambda: os.kill(os.getpid(), number) or 0, "go on") == 128 + number
    assert capsys.readouterr().err == "\nstopped; go on\n"


def test_outside_the_main_thread_it_works_as_well():
    codes = []
    thread = threading.Thread(target=lambda: codes.append(script.run("compare", lambda: 0)))
    thread.start()
    thread.join()
    assert codes == [0]


@pytest.mark.parametrize(
    ("fault", "code", "told"),
    [
        (ValueError("items=0: expected at least 1"), 2, "compare: items=0: expected at least 1\n"),
        (PermissionError(13, "Permission denied", "rows.jsonl"), 1, "compare: rows.jsonl: Permission denied\n"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 1, "compare: Disk quota exceeded; make room\n"),
        (CheckpointError("rows.jsonl: No space left"), 1, "compare: rows.jsonl: No space left\n"),
    ],
)
def test_what_ends_it_is_one_line(fault, code, told, capsys):
    def work():
        raise fault

    assert script.run("compare", work) == code and capsys.readouterr().err == told
