"""Standard error of an external command: read by a thread, in bounded memory, without losing the last line."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from marft_envs.sandbox import ExternalSandbox, RunStatus, SandboxUnavailable, Stdin, external
from tests.marft_envs.sandbox.external_commands import ANSWER, LOOP, command

BURST_AT_THE_END = (
    LOOP
    + """
    if program == "die":
        sys.stderr.write(2_000_000 * "x" + "\\nthe last words\\n")
        os._exit(9)
    answer(request, status="done")
"""
)
FLOOD_BEFORE_THE_REPLY = (
    LOOP
    + """
    if program == "x":
        sys.stderr.write(20_000_000 * "x" + "\\nthe end\\n")
    answer(request, status="done")
"""
)
FLOOD_AFTER_THE_REPLY = (
    LOOP
    + """
    answer(request, status="done")
    if program == "x":
        sys.stderr.write(20_000_000 * "x" + "\\nthe end\\n")
        answer(request, status="done")
"""
)


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "sandbox-stderr"]


def descriptors():
    return os.listdir("/dev/fd")  # noqa: PTH208 - the names, without a look at each


@pytest.fixture(autouse=True)
def _no_leaks():
    """After the sandbox is closed, no thread and no descriptor remains."""
    before = len(descriptors())
    yield
    assert threads() == []
    assert len(descriptors()) == before


def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def reader_of(code, *arguments):
    """Return a process whose standard error is read, and its reader."""
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, bufsize=0)
    return process, external._StderrReader(process.stderr)


def wait_for_tail(reader, end):
    deadline = time.monotonic() + 30
    while not reader.tail().endswith(end):
        assert time.monotonic() < deadline, reader.tail()
        time.sleep(0.01)


def test_the_last_stderr_line_of_a_dying_command_are_reported():
    sandbox = ExternalSandbox(command(BURST_AT_THE_END))
    assert "it ended without a reply: the last words" in sandbox.run("die", [Stdin("")]).runs[0].detail
    sandbox.close()


def test_a_command_never_waits_for_its_standard_error_while_a_reply_is_awaited():
    """20 MB, of which a pipe that nobody reads would hold 64 KiB, are written before the reply."""
    sandbox = ExternalSandbox(command(FLOOD_BEFORE_THE_REPLY))
    assert sandbox.run("x", [Stdin("")]).runs[0].status is RunStatus.DONE
    assert sandbox._idle[0]._last_stderr_line() == ": the end"
    sandbox.close()


def test_a_command_never_waits_for_its_standard_error_between_two_requests():
    sandbox = ExternalSandbox(command(FLOOD_AFTER_THE_REPLY))
    assert sandbox.run("x", [Stdin("")]).runs[0].status is RunStatus.DONE
    wait_for_tail(sandbox._idle[0]._stderr, b"the end\n")
    sandbox.close()


def test_a_flood_takes_bounded_memory():
    """The reader keeps a fixed number of bytes, and reads at most one full pipe at a time."""
    process, reader = reader_of("import os\nwhile True: os.write(2, 1000 * b'x')")
    wait_for_tail(reader, external._STDERR_BYTES * b"x")
    for _ in range(50):
        time.sleep(0.001)
        assert reader.tail() == external._STDERR_BYTES * b"x"
    process.kill()
    process.wait()
    reader.close()


def test_the_tail_includes_everything_that_was_written_before():
    """The thread may not have read it yet: 200 writes, each followed by a look at the tail."""
    read_end, write_end = os.pipe()
    reader = external._StderrReader(os.fdopen(read_end, "rb", buffering=0))
    for n in range(200):
        os.write(write_end, f"line {n}\n".encode())
        assert reader.tail().endswith(f"line {n}\n".encode())
    os.close(write_end)
    assert reader.tail().endswith(b"line 199\n")
    reader.close()


def test_the_thread_ends_with_the_command():
    process, reader = reader_of("import sys; sys.exit('the end')")
    process.wait()
    reader._thread.join(30)
    assert not reader._thread.is_alive() and reader.tail() == b"the end\n"
    reader.close()


def test_the_thread_ends_although_another_process_holds_the_standard_error_open():
    code = "import subprocess, sys\nprint(subprocess.Popen(['sleep', '60']).pid, file=sys.stderr)"
    process, reader = reader_of(code)
    process.wait()
    wait_for_tail(reader, b"\n")
    assert reader._thread.is_alive()
    reader.close()
    assert not reader._thread.is_alive()
    os.kill(int(reader._tail), signal.SIGKILL)


def test_a_forked_process_closes_its_copies_and_the_original_still_reads():
    sandbox = ExternalSandbox(command(BURST_AT_THE_END))
    sandbox.run("x", [Stdin("")])
    runner = sandbox._idle[0]
    reader = runner._stderr
    files = [runner._in, runner._out, reader._pipe, reader._stop_reader, reader._stop_writer]
    numbers = [file.fileno() for file in files]
    child = os.fork()
    if child == 0:
        os._exit(sum(is_open(number) for number in numbers))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert "the last words" in sandbox.run("die", [Stdin("")]).runs[0].detail
    sandbox.close()


def test_a_failure_to_start_the_thread_leaves_no_process(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *words, **options: started.append(popen(*words, **options)) or started[-1]
    )
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(
        SandboxUnavailable, match="standard error of the command cannot be read: can't start new thread"
    ):
        ExternalSandbox(command(ANSWER)).run("x", [Stdin("")])
    assert [process.poll() for process in started] == [-signal.SIGKILL]
