"""Cgroups of programs: their limits, verdicts and removal. Skipped where this process may not create a cgroup."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from marft_envs.sandbox import Asserts, Limits, LocalSandbox, RunStatus, cgroups, fork_server
from marft_envs.sandbox.inside.confinement import MAX_THREADS
from tests.marft_envs.sandbox.quick_run import run_stdin as run_quickly
from tests.marft_envs.sandbox.test_fork_servers import children, is_alive, wait_until
from tests.marft_envs.sandbox.test_host_faults import resident_mib

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is for Linux")

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
MIB = 1 << 20
LIMITS = Limits(cpu_s=10, memory_mib=256, output_mib=1)
TAKE_100_MIB = f"x = bytearray({100 * MIB})\nprint(1)"


def test_the_sandbox_says_what_limits_memory_and_threads(caplog):
    caplog.set_level("INFO", "marft_envs.sandbox")
    try:
        cgroups.create().remove()
        expected = "cgroup"
    except cgroups.CgroupUnavailable:
        expected = "counting"
    box = LocalSandbox()
    assert box.limited_by == expected
    box.close()
    assert f"isolation level {box.level}; memory and threads are limited by {expected}" in caplog.messages
    reasons = [message for message in caplog.messages if "because they have no cgroup: " in message]
    assert bool(reasons) is (expected == "counting")


def run_stdin(sandbox, program, limits=LIMITS):
    return run_quickly(sandbox, program, limits=limits)


def cgroup_of(sandbox, kind="slim"):
    """Return the folder of the cgroup of an idle server."""
    return sandbox._pool._idle[kind][0].cgroup.folder


def kernel_kills(folder):
    """Return how many kills the kernel has counted. It counts the process that has reached the limit twice."""
    return int(dict(line.split() for line in (folder / "memory.events").read_text().splitlines())["oom_kill"])


def existing(parent):
    return {folder.name for folder in parent.glob(f"{cgroups.PREFIX}*")}


def test_the_limits_of_a_cgroup(cgroup_box):
    """memory.max leaves room for 3 output files and 64 MiB of kernel memory; the interpreter takes 5 to 100 MiB."""
    folder = cgroup_of(cgroup_box)
    for memory_mib, output_mib in ((256, 1), (64, 2), (256, 1)):
        run_stdin(cgroup_box, "print(1)", limits=Limits(memory_mib=memory_mib, output_mib=output_mib))
        interpreter = int((folder / "memory.max").read_text()) - (memory_mib + 3 * output_mib + 64) * MIB
        assert 5 * MIB < interpreter < 100 * MIB
    assert (folder / "pids.max").read_text() == "64\n"
    assert (folder / "memory.oom.group").read_text() == "1\n"
    swap = folder / "memory.swap.max"
    assert not swap.exists() or swap.read_text() == "0\n"


def test_a_program_is_alone_in_its_cgroup_and_the_caller_keeps_its_own(cgroup_box, cgroup_parent):
    own = Path("/proc/self/cgroup").read_text()
    folder = cgroup_of(cgroup_box)
    thread = threading.Thread(target=run_stdin, args=(cgroup_box, "import time; time.sleep(0.6)"))
    thread.start()
    inside = wait_until(lambda: (folder / "cgroup.procs").read_text().split())
    assert len(inside) == 1
    name = f"/{folder.relative_to(cgroup_parent)}"
    assert Path(f"/proc/{inside[0]}/cgroup").read_text().rstrip().endswith(name)
    server = Path(f"/proc/{inside[0]}/stat").read_text().rpartition(")")[2].split()[1]
    for other in (server, "self"):
        assert Path(f"/proc/{other}/cgroup").read_text() == own
    thread.join()
    assert (folder / "cgroup.procs").read_text() == ""


def test_the_limits_of_the_callers_cgroup_do_not_change(cgroup_parent):
    own = cgroups.own_folder(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())

    def limits():
        names = [*own.glob("*.max"), *own.glob("*.min"), *own.glob("*.low"), *own.glob("*.high"), *own.glob("*.weight")]
        return {path.name: path.read_text() for path in names}

    before = limits()
    sandbox = LocalSandbox()
    run_stdin(sandbox, TAKE_100_MIB)
    assert limits() == before
    sandbox.close()
    assert limits() == before


def lower_limit(box):
    """Set the cgroup's memory limit to 40 MiB, so that the kernel reaches it before the counting; return its folder."""
    run_stdin(box, "print(1)")  # a server sets the limit again only if a program has another one than that before it
    folder = cgroup_of(box)
    (folder / "memory.max").write_text(f"{40 * MIB}")
    return folder


def test_a_program_that_the_kernel_kills_at_the_limit_has_the_verdict_of_the_counting(cgroup_box):
    """The limit of the cgroup is lowered, so that the kernel reaches it first."""
    folder = lower_limit(cgroup_box)
    kills = [0]
    for _ in range(2):
        run = run_stdin(cgroup_box, TAKE_100_MIB)
        assert (run.status, run.detail) == (RunStatus.MEMORY, "more than 256 MiB")
        assert cgroup_of(cgroup_box) == folder, "the server was killed as well"
        kills.append(kernel_kills(folder))
    assert kills[0] < kills[1] < kills[2]


@pytest.mark.parametrize("kind", ["slim", "tester"])
def test_assertions_that_the_kernel_ends_at_the_limit(cgroup_box, kind):
    """As by counting: a program that takes too much is "memory"; tests that do end with the reason."""
    program = f"def f():\n    x = bytearray({100 * MIB})\n    return 1" if kind == "slim" else "def f(): return 1"
    code = "assert f() == 1" if kind == "slim" else f"x = bytearray({100 * MIB})\nassert f() == 1"
    (run,) = cgroup_box.run(program, [Asserts(code)], LIMITS).runs
    assert run.status is RunStatus.DONE
    folder = cgroup_of(cgroup_box, kind)
    (folder / "memory.max").write_text(f"{40 * MIB}")
    (run,) = cgroup_box.run(program, [Asserts(code)], LIMITS).runs
    expected = {
        "slim": (RunStatus.MEMORY, "more than 256 MiB"),
        "tester": (RunStatus.RUNTIME_ERROR, "the tests ended: memory"),
    }
    assert (run.status, run.detail) == expected[kind]
    assert kernel_kills(folder) > 0


def kill_two_large_programs():
    """Kill a program that takes more than 60 MiB in the cgroup of any server of this process, and then another one."""

    def large_programs():
        folders = [
            server.cgroup.folder for server in list(fork_server._ALL) if server.cgroup and server.cgroup.exists()
        ]
        found = [pid for folder in folders for pid in (folder / "cgroup.procs").read_text().split()]
        return [int(pid) for pid in found if resident_mib(pid) > 60]

    for _ in range(2):
        pid = wait_until(large_programs, timeout_s=60)[0]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: not is_alive(pid))


def test_a_program_that_the_host_kills_is_a_fault_also_after_one_at_the_limit(cgroup_box):
    lower_limit(cgroup_box)
    assert run_stdin(cgroup_box, TAKE_100_MIB).status is RunStatus.MEMORY
    killer = threading.Thread(target=kill_two_large_programs)
    killer.start()
    program = f"import time\nx = bytearray({70 * MIB})\ntime.sleep(2)"
    run = run_stdin(cgroup_box, program, limits=Limits(cpu_s=5, memory_mib=512))
    killer.join()
    assert run.status is RunStatus.FAULT and "killed by another process" in run.detail


THREADS = """
import threading
stop, started = threading.Event(), 1
threading.stack_size(65536)
try:
    while started < 100:
        threading.Thread(target=stop.wait).start()
        started += 1
except RuntimeError as error:
    print(error, started)
stop.set()
"""


def test_the_kernel_limits_threads_also_of_an_ordinary_user(cgroup_box):
    """Without a cgroup an ordinary user's program is killed when the server counts too many."""
    run = run_stdin(cgroup_box, THREADS)
    assert (run.status, run.stdout) == (RunStatus.DONE, f"can't start new thread {MAX_THREADS}\n"), run.detail


OVER = {
    "one": f"x = bytearray({400 * MIB})\nimport time; time.sleep(0.3)",
    "for a moment": f"x = bytearray({400 * MIB})\ndel x\nprint(1)",
    "pieces": "a = []\nwhile len(a) < 10**8: a.append([0] * 8)",
    "threads": "import threading\na = []\ndef f():\n    while len(a) < 10**8: a.append([0] * 8)\n"
    "for _ in range(8): threading.Thread(target=f).start()",
    "address space": "x = bytearray(1 << 40)",
    "caught": "try: x = bytearray(1 << 40)\nexcept MemoryError: print('caught')",
    "within": f"x = bytearray({55 * MIB})\nprint(len(x))",
    "within, with output": f"import sys\nx = bytearray({50 * MIB})\nsys.stdout.write('x' * {MIB - 1})",
    "output": "while True: print('x' * 9999)",
    "output and memory": f"print('x' * {2 * MIB}, flush=True)\nx = bytearray({400 * MIB})",
}
REPORT = """
import json, sys
from marft_envs.sandbox import Limits, LocalSandbox, Stdin
box = LocalSandbox(sys.argv[1])
limits = Limits(cpu_s=20, memory_mib=64, output_mib=1)
rows = {}
for name, program in json.loads(sys.argv[2]).items():
    run = box.run(program, [Stdin("")], limits).runs[0]
    rows[name] = run.status.value, run.detail, run.stdout
print(json.dumps([box.limited_by, rows]))
box.close()
"""


def test_the_verdicts_are_those_of_the_counting(cgroup_box):
    arguments = [sys.executable, "-c", REPORT, cgroup_box.level, json.dumps(OVER)]
    private = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Um", "--map-root-user"]
    hidden = [*private, "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], capture_output=True).returncode:
        pytest.skip("the hierarchy cannot be hidden here")
    found = []
    for words in (arguments, [*hidden, *arguments]):
        done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        found.append(json.loads(done.stdout))
    (by_cgroup, in_a_cgroup), (by_counting, counted) = found
    assert (by_cgroup, by_counting) == ("cgroup", "counting")
    assert in_a_cgroup == counted
    memory = {"one", "for a moment", "pieces", "threads", "address space"}
    assert {name for name, (status, *_) in counted.items() if status == "memory"} == memory


def test_an_idle_cgroup_that_somebody_removes_is_replaced(cgroup_box):
    folder = cgroup_of(cgroup_box)
    folder.rmdir()
    assert run_stdin(cgroup_box, "print(2)").stdout == "2\n"
    assert cgroup_of(cgroup_box) != folder and cgroup_box.limited_by == "cgroup"


def test_closing_removes_the_cgroups_also_of_programs_that_run(cgroup_box, cgroup_parent):
    run_stdin(cgroup_box, "import time; time.sleep(0.1)")
    server = cgroup_box._pool._idle["slim"].pop()
    folder = server.cgroup.folder
    assert folder.exists()
    sleeper = subprocess.Popen(["sleep", "60"])
    (folder / "cgroup.procs").write_text(f"{sleeper.pid}")
    server.close()
    assert not folder.exists()
    assert sleeper.wait(10) == -signal.SIGKILL


TRAINER = """
import sys, time
from marft_envs.sandbox import Limits, LocalSandbox, Stdin
box = LocalSandbox(sys.argv[1])
for n in range(20):
    assert box.run(f"print({n})", [Stdin("")], Limits(cpu_s=5)).runs[0].stdout == f"{n}\\n"
print(box.limited_by, *[server.cgroup.folder.name for server in box._pool._idle["slim"]], flush=True)
if sys.argv[2] == "run":
    box.run("import time; time.sleep(60)", [Stdin("")], Limits(cpu_s=60))
time.sleep(float(sys.argv[2]))
"""


def trainer(level, then):
    words = [sys.executable, "-c", TRAINER, level, then]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)


@pytest.mark.parametrize("then", ["60", "run"])
def test_the_next_start_removes_what_a_killed_trainer_has_left_and_nothing_of_a_living_one(cgroup_parent, then):
    killed, living = trainer("landlock", then), trainer("landlock", then)
    try:
        names = [process.stdout.readline().split()[1] for process in (killed, living)]
        servers = children(killed.pid)
        killed.kill()
        killed.wait()
        wait_until(lambda: not any(Path(f"/proc/{server}").exists() for server in servers))
        assert set(names) <= existing(cgroup_parent)
        cgroups.create().remove()
        assert existing(cgroup_parent) & set(names) == {names[1]}
    finally:
        for process in (killed, living):
            process.kill()
            process.wait()


def test_several_processes_at_once(cgroup_parent):
    before = existing(cgroup_parent)
    processes = [trainer("landlock", "0.2") for _ in range(4)]
    lines = [process.communicate(timeout=300)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert [line[0] for line in lines] == ["cgroup"] * 4
    assert len({name for _, *names in lines for name in names}) >= 4
    assert existing(cgroup_parent) <= before


def test_a_forked_process_leaves_the_cgroups_of_the_original(cgroup_box, cgroup_parent):
    folder = cgroup_of(cgroup_box)
    child = os.fork()
    if child == 0:
        good = run_stdin(cgroup_box, "print(1)").stdout == "1\n" and cgroup_of(cgroup_box) != folder
        cgroup_box.close()
        os._exit(0 if good and folder.exists() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run_stdin(cgroup_box, "print(2)").stdout == "2\n" and cgroup_of(cgroup_box) == folder


CREATE = """
from marft_envs.sandbox import cgroups
try:
    cgroup = cgroups.create()
    print(cgroup.folder)
    cgroup.remove()
except cgroups.CgroupUnavailable as reason:
    print(reason)
"""


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        (cgroups.SUPERVISOR, r"{delegated}/marft-sandbox-[0-9a-f]{{16}}"),
        ("other", "{delegated}/other does not have the controllers memory and pids"),
        ("", "{delegated} contains processes, .* start this process in a cgroup {delegated}/supervisor, .*"),
    ],
)
def test_only_a_process_in_a_supervisor_gets_cgroups_beside_its_own(cgroup_parent, name, answer):
    """A cgroup with processes has no memory limits below it, and its own limits would not hold beside it."""
    delegated = cgroup_parent / f"test-{os.getpid()}"
    own = delegated / name
    own.mkdir(parents=True)
    try:
        words = ["sh", "-c", f'echo $$ > {own}/cgroup.procs && exec "$@"', "sh", sys.executable, "-c", CREATE]
        done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(answer.format(delegated=delegated) + "\n", done.stdout), done.stdout
    finally:
        for folder in dict.fromkeys((own, delegated)):
            folder.rmdir()
