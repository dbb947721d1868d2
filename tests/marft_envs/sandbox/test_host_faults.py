"""Faults of the host: killed processes, no free descriptor, no folder for temporary files, interrupts, forks."""

import contextlib
import itertools
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from marft_envs.coding.grader import check_tests
from marft_envs.sandbox import Asserts, Limits, LocalSandbox, RunStatus, SandboxUnavailable, Stdin, fork_server
from tests.marft_envs.sandbox.quick_run import run_stdin
from tests.marft_envs.sandbox.test_fork_servers import children, is_alive, wait_until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is for Linux")

ROOT = Path(__file__).parents[3]
SLOW_RUN = "import time; time.sleep(0.5); print(1)"


@pytest.fixture
def landlock():
    box = LocalSandbox("landlock")
    yield box
    box.close()


@pytest.fixture
def temporary_folder(tmp_path, monkeypatch):
    """A folder for temporary files that only this test uses."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def idle(sandbox):
    return sandbox._pool._idle["slim"]


def kill_large_runs(times):
    """Kill the next runs of this process's servers that take 60 MiB, once each. Return the thread that does it."""

    def large_runs():
        # Other children of this process, such as workers of the grader of mathematics, have large children, too.
        servers = [server.pid for server in list(fork_server._ALL)]
        return [run for server in servers for run in children(server) if resident_mib(run) > 60]

    def work():
        for _ in range(times):
            pid = wait_until(large_runs)[0]
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: not is_alive(pid))

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def resident_mib(pid):
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) >> 8
    except (OSError, IndexError):
        return 0


@pytest.mark.parametrize(("times", "status"), [(1, RunStatus.DONE), (2, RunStatus.FAULT)])
def test_a_killed_program_is_repeated_once(landlock, times, status):
    run_stdin(landlock, "print(1)")
    killer = kill_large_runs(times)
    run = run_stdin(landlock, "import time\nx = bytearray(70 << 20)\ntime.sleep(2)\nprint(1)", limits=Limits(cpu_s=2))
    killer.join()
    assert run.status is status, run.detail
    assert status is RunStatus.DONE or "killed by another process" in run.detail


@pytest.mark.parametrize(("times", "status"), [(1, RunStatus.DONE), (2, RunStatus.FAULT)])
def test_a_killed_tester_is_repeated_once(landlock, times, status):
    """The first time the tester is killed a right program must not be wrong."""
    run_stdin(landlock, "print(1)")
    killer = kill_large_runs(times)
    test = Asserts("import time\nx = bytearray(70 << 20)\ntime.sleep(2)\nassert f(1) == 1")
    run = landlock.run("def f(x): return x", [test], Limits(cpu_s=2)).runs[0]
    killer.join()
    assert run.status is status, run.detail


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_idle_servers_that_end_are_replaced(landlock, number):
    """Two dead servers must not make a run that is lost twice."""
    threads = [threading.Thread(target=run_stdin, args=(landlock, SLOW_RUN)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    dead = [server.pid for server in idle(landlock)]
    assert len(dead) >= 2
    for pid in dead:
        os.kill(pid, number)
    run = run_stdin(landlock, "print(1)")
    assert (run.status, run.stdout) == (RunStatus.DONE, "1\n")


def test_a_ctrl_c_in_the_terminal_does_not_reach_the_servers(landlock):
    run_stdin(landlock, "print(1)")
    assert os.getpgid(idle(landlock)[0].pid) != os.getpgid(0)


def test_more_than_1023_open_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1400:
        pytest.skip(f"at most {hard} descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1400, hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    box = LocalSandbox()
    try:
        run = box.run("def f(x): return x", [Asserts("assert f(1) == 1")]).runs[0]
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        box.close()
    assert run.status is RunStatus.DONE, run.detail


@contextlib.contextmanager
def free_descriptors(count):
    """Let this process open ``count`` further descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208
    held = [os.open(os.devnull, os.O_RDONLY)]
    while held[-1] < highest:
        held.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(highest, held[-1]) + 1 + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)


def test_without_free_descriptors_the_sandbox_is_unavailable_and_leaves_nothing(temporary_folder):
    """With every number of free descriptors from none to enough: no other exception, no folder, no weaker level."""
    seen = []
    for count in range(24):
        box = LocalSandbox(allow_unsafe=True)
        with free_descriptors(count):
            try:
                seen.append(run_stdin(box, "print(1)").status)
            except SandboxUnavailable as refusal:
                assert "Too many open files" in str(refusal)
                seen.append(None)
        assert list(temporary_folder.iterdir()) == []
        assert box.level in ("namespace", "landlock")
        assert run_stdin(box, "print(1)").status is RunStatus.DONE
        box.close()
    assert seen[0] is None and seen[-1] is RunStatus.DONE


def test_without_free_descriptors_a_run_is_a_fault():
    box = LocalSandbox()
    run_stdin(box, "")
    with free_descriptors(1):
        run = run_stdin(box, "print(1)")
    assert run.status is RunStatus.FAULT and "Too many open files" in run.detail
    assert run_stdin(box, "print(1)").status is RunStatus.DONE
    box.close()


def test_without_a_folder_for_temporary_files_the_sandbox_is_unavailable(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/proc/no-such-folder")
    with pytest.raises(SandboxUnavailable, match="no-such-folder"):
        LocalSandbox().run("print(1)", [Stdin("")])


TRAINER = """
import os, sys, threading, time
from marft_envs.sandbox import Asserts, Limits, LocalSandbox, Stdin
box = LocalSandbox(sys.argv[1])
box.run("def f(x): return x", [Asserts("assert f(1) == 1")])
for _ in range(3):
    threading.Thread(target=box.run, args=("import time; time.sleep(60)", [Stdin("")], Limits(cpu_s=60))).start()
time.sleep(1)
if os.fork() == 0:
    print("forked", os.getpid(), flush=True)
    time.sleep(60)
time.sleep(60)
"""


def descendants(pid):
    """Return the processes below this one, also those that its other threads have started."""
    lists = [task.read_text().split() for task in Path(f"/proc/{pid}/task").glob("*/children")]
    return [found for child in itertools.chain(*lists) for found in (int(child), *descendants(child))]


@pytest.mark.parametrize("level", ["namespace", "landlock"])
def test_nothing_outlives_a_killed_trainer_though_a_fork_of_it_lives(level):
    process = subprocess.Popen(
        [sys.executable, "-c", TRAINER, level], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    fork = int(process.stdout.readline().split()[1])
    started = set(descendants(process.pid)) - {fork}
    assert len(started) >= 6
    process.kill()
    process.wait()
    try:
        wait_until(lambda: not any(map(is_alive, started)), timeout_s=5)
        assert is_alive(fork)
    finally:
        os.kill(fork, signal.SIGKILL)


def test_an_interrupted_start_leaves_no_folder_and_no_process(temporary_folder):
    """SIGINT at many moments of the first run, at which the servers start and are tested."""
    script = (  # a shell starts jobs in the background with SIGINT ignored
        "import signal, sys, tempfile\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "tempfile.tempdir = sys.argv[1]\nfrom marft_envs.sandbox import LocalSandbox, Stdin\n"
        "print(1, flush=True)\nLocalSandbox().run('print(1)', [Stdin('')])\nprint(2, flush=True)\n"
        "import time\ntime.sleep(60)"
    )
    for delay_s in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4):
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(temporary_folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        process.stdout.readline()
        time.sleep(delay_s)
        started = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        wait_until(lambda started=started: not any(map(is_alive, started)))
        assert list(temporary_folder.iterdir()) == []


def test_a_fork_while_a_thread_compiles_tests_does_not_hang():
    code = "x = [" + "1, " * 200_000 + "]"
    stop = threading.Event()

    def compile_tests():
        n = 0
        while not stop.is_set():
            n += 1
            check_tests.check_tests([{"test_code": f"{code}\ny = {n}"}], "assert")

    thread = threading.Thread(target=compile_tests)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                check_tests.check_tests([{"test_code": f"z = {os.getpid()}"}], "assert")
                os._exit(0)
            wait_until(lambda child=child: os.waitpid(child, os.WNOHANG)[0])
    finally:
        stop.set()
        thread.join()


def test_one_program_with_many_threads_does_not_break_its_neighbours(sandbox):
    """RLIMIT_NPROC counts all threads of a user, so each server of root has a user of its own."""
    greedy = (
        "import threading, time\nthreading.stack_size(65536)\n"
        "for _ in range(60): threading.Thread(target=time.sleep, args=(1.5,)).start()\nprint('ok')"
    )
    modest = (
        "import threading, time\ntime.sleep(0.7)\nfor _ in range(3):\n"
        "    ts = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(16)]\n"
        "    [t.start() for t in ts]\n    [t.join() for t in ts]\nprint('ok')"
    )
    outputs = []

    def work(program):
        outputs.append(sandbox.run(program, [Stdin("")], Limits(cpu_s=5)).runs[0])

    threads = [threading.Thread(target=work, args=(program,)) for program in (greedy, greedy, modest, modest)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(run.stdout, run.detail) for run in outputs] == [("ok\n", "")] * 4


def test_the_name_of_the_host_is_hidden():
    box = LocalSandbox("namespace")
    assert run_stdin(box, "import os; print(os.uname().nodename)").stdout == "sandbox\n"
    box.close()
