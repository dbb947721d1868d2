"""Ctrl-C and SIGTERM: the first raises Interrupted, later ones wait until what is under way is closed."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from baselines.command_line import Interrupted, interruptible, report_interrupt

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_stops_and_later_ones_do_not_cut_off_what_is_being_closed(number, code, capsys):
    before = [signal.getsignal(each) for each in SIGNALS]
    closed = []

    def work():
        try:
            os.kill(os.getpid(), number)
            closed.append("never")
        finally:
            for again in SIGNALS:
                os.kill(os.getpid(), again)
            closed.append("closed")

    with pytest.raises(Interrupted) as stop, interruptible():
        work()
    assert closed == ["closed"] and [signal.getsignal(each) for each in SIGNALS] == before
    assert report_interrupt(stop.value, "go on") == code and capsys.readouterr().err == "\nstopped; go on\n"


def test_outside_the_main_thread_nothing_changes():
    seen = []

    def work():
        with interruptible():
            seen.append([signal.getsignal(each) for each in SIGNALS])

    before = [signal.getsignal(each) for each in SIGNALS]
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize("number", SIGNALS)
def test_before_anything_has_begun_the_process_ends_with_a_line(number):
    program = (
        "import os, sys\n"
        "from baselines.command_line import exit_on_signal\n"
        "exit_on_signal('said')\n"
        f"os.kill(os.getpid(), {int(number)})\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (run.returncode, run.stderr) == (128 + number, "\nsaid\n")
