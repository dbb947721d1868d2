# ruff: noqa: PTH208
"""Fork servers: they are replaced when they die, they leak nothing, and threads and forked processes can use them."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from marft_envs.sandbox import Limits, LocalSandbox, RunStatus, Stdin, server_pool
from marft_envs.sandbox.fork_server import ForkServer, ServerDied, encode_spec
from marft_envs.sandbox.memory_files import MemoryFiles
from tests.marft_envs.sandbox.quick_run import run_stdin

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is for Linux")


def wait_until(condition, timeout_s=20.0):
    """Return the first true value of the condition."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, "the condition is still false"
        time.sleep(0.01)
    return value


def children(pid):
    """Return the children of a process; none if it has ended."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(pid):
    """Return whether the process runs; one that process 1 has not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow  # loads the machine for seconds
def test_cpu_time_decides_also_on_a_loaded_machine(sandbox):
    """0.4 s of work under a limit of 0.5 s, beside eight busy processes per core, takes longer than the wall limit."""
    program = "import time\nwhile time.process_time() < 0.4: pass\nprint(1)"
    words = [sys.executable, "-c", "while True: pass"]
    # Linux divides the cores between sessions first, so each process gets a session of its own.
    busy = [subprocess.Popen(words, start_new_session=True) for _ in range(8 * (os.cpu_count() or 1))]
    try:
        runs = [run_stdin(sandbox, program) for _ in range(2)]
        loop = run_stdin(sandbox, "while True: pass")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert [run.status for run in runs] == [RunStatus.DONE] * 2
    assert loop.status is RunStatus.TIMEOUT and loop.cpu_s >= 0.5


def test_a_killed_server_is_replaced_and_the_run_is_repeated():
    sandbox = LocalSandbox("landlock")
    sandbox.run("", [Stdin("")])
    victim = sandbox._pool._idle["slim"][0].pid

    def kill_during_the_run():
        wait_until(lambda: children(victim))
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill_during_the_run)
    killer.start()
    run = run_stdin(sandbox, "import time; time.sleep(0.5); print(1)", limits=Limits(cpu_s=1))
    killer.join()
    assert (run.status, run.stdout) == (RunStatus.DONE, "1\n")
    assert sandbox._pool._idle["slim"][0].pid != victim
    sandbox.close()


def test_a_server_that_dies_twice_is_a_fault(monkeypatch):
    def die(self, limits):
        raise ServerDied("it has ended")

    sandbox = LocalSandbox()
    sandbox.run("", [Stdin("")])
    monkeypatch.setattr(ForkServer, "wait", die)
    monkeypatch.setattr(server_pool, "check_server", lambda server: None)
    run = run_stdin(sandbox, "print(1)")
    assert (run.status, run.detail) == (RunStatus.FAULT, "the server died twice: it has ended")


def test_a_child_dies_with_its_server():
    server = ForkServer("landlock")
    with MemoryFiles() as files:
        spec = {"role": "main", "source": "import time; time.sleep(60)", "prelude": False}
        server.begin(Limits(), [files.sealed(encode_spec(spec)), files.sealed(b""), files.empty(), files.empty()])
        [child] = wait_until(lambda: children(server.pid))
        # The parent-death signal is set before the seccomp filter is applied.
        wait_until(lambda: "Seccomp:\t2" in Path(f"/proc/{child}/status").read_text())
        server.close()
        wait_until(lambda: not is_alive(child))


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_descriptor_file_or_process_leaks(count, tmp_path, monkeypatch):
    # Other test processes have sandboxes in the shared folder, so this one gets a folder of its own.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sandbox = LocalSandbox()
    tests = [Stdin("1"), Stdin("2")]
    sandbox.run("print(input())", tests)
    files = descriptors()
    server = sandbox._pool._idle["slim"][0].pid
    for n in range(count):
        assert sandbox.run("print(input())", tests[n % 2 :][:1]).runs[0].status is RunStatus.DONE
    assert descriptors() == files
    assert [idle.pid for idle in sandbox._pool._idle["slim"]] == [server]
    assert os.listdir(tmp_path) == []
    sandbox.close()
    assert not Path(f"/proc/{server}").exists()


def test_a_forked_process_starts_its_own_servers():
    sandbox = LocalSandbox()
    sandbox.run("", [Stdin("")])
    child = os.fork()
    if child == 0:
        good = run_stdin(sandbox, "print(1)").stdout == "1\n"
        sandbox.close()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run_stdin(sandbox, "print(2)").stdout == "2\n"
    sandbox.close()


def test_threads_share_a_sandbox():
    sandbox, outputs = LocalSandbox(), []

    def work(n):
        outputs.extend(run_stdin(sandbox, f"print({n})").stdout == f"{n}\n" for _ in range(10))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sandbox.close()
    assert outputs == [True] * 30
