# ruff: noqa: E501, PTH208
"""What the sandbox gives honest programs, how it names ends, and that it survives what happens to its servers."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from marft_envs.sandbox import (
    Asserts,
    Call,
    RunStatus,
    Limits,
    LocalSandbox,
    SandboxUnavailable,
    Stdin,
    UnsafeSandboxWarning,
    self_check,
)  # fmt: skip
from marft_envs.sandbox import pool as pool_module
from marft_envs.sandbox.fork_server import ForkServer, ServerDied

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is for Linux")
QUICK = Limits(cpu_s=0.5, memory_mib=256, output_mib=1)


@pytest.fixture(scope="module", params=["namespace", "landlock"])
def sandbox(request):
    box = LocalSandbox(request.param)
    try:
        assert box.level == request.param
    except SandboxUnavailable as reason:
        if "self-test" in str(reason):  # a hole in the wall, not a host without the means
            raise
        pytest.skip(str(reason))
    yield box
    box.close()


def stdin(sandbox, program, text="", limits=QUICK, **options):
    return sandbox.run(program, [Stdin(text)], limits, **options).runs[0]


HONEST = {
    "input": ("print(int(input()) + 1)", "41\n", "42\n"),
    "read_to_the_end": ("import sys; print(sys.stdin.read().upper(), end='')", "ab\nc", "AB\nC"),
    "buffer": ("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])", "ab", "ba"),
    "descriptor_0": ("import os; print(os.read(0, 9), len(open(0).read()))", "x" * 12, "b'xxxxxxxxx' 3\n"),
    "dev_stdin": ("print(open('/dev/stdin').read())", "ab", "ab\n"),
    "dev_stdout": ("open('/dev/stdout', 'w').write('ab')", "", "ab"),
    "main_guard": ("if __name__ == '__main__': print('main')", "", "main\n"),
    "unicode": ("print(input()[::-1])", "äß\n", "ßä\n"),
    "end_of_input": ("try: input()\nexcept EOFError: print('end')", "", "end\n"),
    "quit": ("print(1)\nquit()", "", "1\n"),
    "exit_code_0": ("import sys\nprint(1)\nsys.exit(0)", "", "1\n"),
    "threads": (
        "import threading\nt = [threading.Thread(target=print, args=(1,)) for _ in range(8)]\n"
        "for x in t: x.start()\nfor x in t: x.join()", "", "1\n" * 8,
    ),
    "big_stack_thread": (
        "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(1 << 26)\n"
        "def f(n): return n and 1 + f(n - 1)\nt = threading.Thread(target=lambda: print(f(50000)))\nt.start()\nt.join()",
        "", "50000\n",
    ),
    "deep_recursion": ("import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return n and 1 + f(n - 1)\nprint(f(90000))", "", "90000\n"),
    "deep_recursion_in_c": (
        "import sys, functools\nsys.setrecursionlimit(10**6)\n@functools.lru_cache(None)\ndef f(n): return n and 1 + f(n - 1)\n"
        "print(f(20000))", "", "20000\n",
    ),
    "raises_its_stack": (
        "import resource\nresource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY,) * 2)\nprint(1)", "", "1\n",
    ),
    "threads_that_the_module_knows": (
        "import threading\nt = threading.Timer(0.01, print, ('late',))\nt.start()\n"
        "print(threading.active_count(), threading.current_thread() is threading.main_thread())", "", "2 True\nlate\n",
    ),
    "streams_know_their_files": (
        "import os, sys\nprint(sys.stdin.fileno(), sys.stdin.isatty(), sys.stdout.seekable(), sys.stdin.seekable())\n"
        "sys.stdin.readline()\nsys.stdin.seek(0)\nprint(sys.stdin.read(), end='')", "a\nb\n", "0 False True True\na\nb\n",
    ),
    "asyncio": ("import asyncio\nasync def f(): await asyncio.sleep(0.01); print(1)\nasyncio.run(f())", "", "1\n"),
    "executor": (
        "from concurrent.futures import ThreadPoolExecutor as P\nprint(list(P(2).map(abs, [-1, 2])))", "", "[1, 2]\n",
    ),
    "numpy": ("import numpy as np; print(np.linalg.det(np.eye(3)))", "", "1.0\n"),
    "modules": (
        "import decimal, fractions, datetime, zoneinfo, hashlib, sqlite3, json, csv, zlib, unittest, typing, ssl\n"
        "print(zoneinfo.ZoneInfo('UTC'), hashlib.md5(b'').hexdigest()[:4])", "", "UTC d41d\n",
    ),
    "atexit": ("import atexit\natexit.register(print, 'bye')\nprint('hi')", "", "hi\nbye\n"),
    "dataclass_and_pickle": (
        "import dataclasses, pickle\n@dataclasses.dataclass\nclass P: x: int\n"
        "print(pickle.loads(pickle.dumps(P(3))))", "", "P(x=3)\n",
    ),
    "prints_much": ("print('x' * 500_000)", "", "x" * 500_000 + "\n"),
    "reads_much": ("print(len(input()))", "x" * 5_000_000, "5000000\n"),
    "no_last_flush": ("import sys; sys.stdout.write('ab')", "", "ab"),
    "ignores_broken_stderr": ("import sys; sys.stderr.close(); print(1)", "", "1\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_honest_programs_run_as_with_python(sandbox, name):
    program, text, output = HONEST[name]
    run = stdin(sandbox, program, text, Limits(cpu_s=5))
    assert (run.status, run.stdout) == (RunStatus.DONE, output), run.detail


ENDS = {
    "while True: pass": RunStatus.TIMEOUT,
    "import time; time.sleep(60)": RunStatus.TIMEOUT,
    "1 / 0": RunStatus.RUNTIME_ERROR,
    "import sys; sys.exit(3)": RunStatus.RUNTIME_ERROR,
    "import sys; sys.exit('no')": RunStatus.RUNTIME_ERROR,
    "print(": RunStatus.RUNTIME_ERROR,
    "print('\0')": RunStatus.RUNTIME_ERROR,
    "print('\ud800')\x00": RunStatus.RUNTIME_ERROR,
    "a = [0] * 10**9": RunStatus.MEMORY,
    "while True: print('x' * 9999)": RunStatus.OUTPUT_LIMIT,
    "import os; os._exit(0)": RunStatus.DONE,
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": RunStatus.RUNTIME_ERROR,
    "raise SystemExit": RunStatus.DONE,
}


@pytest.mark.parametrize("program", ENDS, ids=map(ascii, ENDS))
def test_ends_have_their_names(sandbox, program):
    assert stdin(sandbox, program).status is ENDS[program]


def test_the_detail_is_the_end_of_the_traceback(sandbox):
    assert stdin(sandbox, "int('x')").detail == "ValueError: invalid literal for int() with base 10: 'x'"


def test_a_call_returns_its_value_and_prints_apart(sandbox):
    program = "class Solution:\n    def f(self, x, y):\n        print('debug')\n        return (x + y, {1: [y]})"
    run = sandbox.run(program, [Call("f", '["a", "b"]')], QUICK).runs[0]
    assert run.value == '{"tuple": ["ab", {"dict": [[1, ["b"]]]}]}'
    assert run.stdout == "debug\n"


def test_a_call_of_what_is_not_there_is_a_runtime_error(sandbox):
    run = sandbox.run("x = 1", [Call("f", "[]")], QUICK).runs[0]
    assert (run.status, run.detail) == (RunStatus.RUNTIME_ERROR, "NameError: name 'f' is not defined")


def test_customary_imports_are_there_when_asked_for(sandbox):
    program = (
        "def f(x: List[int]) -> Optional[int]: return Counter(x).most_common(1)[0][0] + gcd(4, 6) + math.floor(inf > 1)"
    )
    call = Call("f", "[[7, 7, 8]]")
    assert sandbox.run(program, [call], QUICK, prelude=True).runs[0].value == "10"
    assert sandbox.run(program, [call], QUICK).runs[0].detail.startswith("NameError: name 'List' is not defined")


def test_every_test_is_in_a_fresh_process(sandbox):
    program = "import builtins\nbuiltins.n = getattr(builtins, 'n', 0) + 1\nprint(builtins.n)"
    assert [run.stdout for run in sandbox.run(program, [Stdin("")] * 3, QUICK).runs] == ["1\n"] * 3


def test_chance_and_sets_are_the_same_in_every_run_and_every_server():
    program = "import random\nprint(random.random(), random.sample(range(99), 5), set('abcdef'))"
    said = set()
    for _ in range(2):
        box = LocalSandbox()
        said |= {stdin(box, program).stdout for _ in range(2)}
        box.close()
    assert len(said) == 1


def test_the_environment_is_empty(sandbox):
    assert stdin(sandbox, "import os; print(dict(os.environ))").stdout == "{}\n"


def test_asserts_run_beside_the_program(sandbox):
    program = "def add(a, b):\n    return a + b\n\ndef sort(x):\n    x.sort()\n"
    good = Asserts("x = [3, 1]\nsort(x)\nassert x == [1, 3]\ndef check(f):\n    assert f(1, 2) == 3", "add")
    bad = Asserts("assert add(1, 2) == 4")
    runs = sandbox.run(program, [good, bad], QUICK).runs
    assert [run.status for run in runs] == [RunStatus.DONE, RunStatus.WRONG]


REMOTE = {
    "objects": ("class P:\n    def __init__(s, x): s.x = x\n    def d(s): return 2 * s.x\ndef g(p): return p[0].x",
                "p = P(3)\np.x = 4\nassert p.d() == 8 and p.x == 4 and g([p]) == 4"),
    "errors": ("def f(x): raise KeyError(x)", "try:\n    f(1)\nexcept KeyError: pass\nelse: assert False"),
    "own_errors": ("class E(Exception): pass\ndef f(): raise E(1)",
                   "try:\n    f()\nexcept RuntimeError as e: assert 'E: 1' in str(e)"),
    "values": ("from collections import *\ndef f(x): return x",
               "import collections\nfor v in (1 << 99, 1.5, float('inf'), (1, [2]), {1: (2,)}, {3, 4}, frozenset('a'), b'x',"
               " 'ä\\ud800', None, True, 2j, range(3), collections.Counter('aab'), collections.deque([1]), int):\n"
               "    assert f(v) == v and type(f(v)) is type(v), v"),
    "keywords": ("def f(a, *, b): return a - b", "assert f(5, b=3) == 2"),
    "constants": ("LIMIT = 7", "assert LIMIT == 7"),
    "generators": ("def f(n):\n    yield from range(n)", "assert list(f(3)) == [0, 1, 2]"),
    "in_place": ("def f(d, s, l):\n    d[1] = 2\n    s.add(3)\n    l[0].append(4)\n    return None",
                 "d, s, l = {}, set(), [[]]\nassert f(d, s, l) is None\nassert (d, s, l) == ({1: 2}, {3}, [[4]])"),
    "in_place_before_an_error": ("def f(l):\n    l.append(1)\n    raise ValueError",
                                 "l = []\ntry:\n    f(l)\nexcept ValueError: pass\nassert l == [1]"),
}  # fmt: skip


@pytest.mark.parametrize("name", REMOTE)
def test_what_crosses_to_the_tester(sandbox, name):
    program, tests = REMOTE[name]
    run = sandbox.run(program, [Asserts(tests)], QUICK).runs[0]
    assert run.status is RunStatus.DONE, run.detail


@pytest.mark.slow  # loads the machine for seconds
def test_cpu_time_decides_and_a_loaded_machine_changes_nothing(sandbox):
    """0.4 s of work under a limit of 0.5 s, beside eight busy processes for each core: the wall limit of 2 s passes."""
    program = "import time\nwhile time.process_time() < 0.4: pass\nprint(1)"
    words = [sys.executable, "-c", "while True: pass"]
    # sessions of their own: Linux shares the cores out by session first
    busy = [subprocess.Popen(words, start_new_session=True) for _ in range(8 * (os.cpu_count() or 1))]
    try:
        runs = [stdin(sandbox, program) for _ in range(2)]
        loop = stdin(sandbox, "while True: pass")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert [run.status for run in runs] == [RunStatus.DONE] * 2
    assert loop.status is RunStatus.TIMEOUT and loop.cpu_s >= 0.5


def test_a_killed_server_is_replaced_and_the_test_run_again():
    sandbox = LocalSandbox()
    sandbox.run("", [Stdin("")])
    victim = sandbox._pool._idle["slim"][0].pid
    killer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
    killer.start()
    run = stdin(sandbox, "import time; time.sleep(0.8); print(1)", limits=Limits(cpu_s=1))
    assert (run.status, run.stdout) == (RunStatus.DONE, "1\n")
    assert sandbox._pool._idle["slim"][0].pid != victim


def test_a_server_that_dies_twice_is_a_fault(monkeypatch):
    def dies(self, limits):
        raise ServerDied("it has ended")

    sandbox = LocalSandbox()
    sandbox.run("", [Stdin("")])
    monkeypatch.setattr(ForkServer, "wait", dies)
    monkeypatch.setattr(pool_module, "check_server", lambda server: None)
    run = stdin(sandbox, "print(1)")
    assert (run.status, run.detail) == (RunStatus.FAULT, "the server died twice: it has ended")


def is_alive(pid):
    """Dead and not yet waited for by process 1 is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_no_child_outlives_a_killed_server():
    server = ForkServer("landlock")
    from marft_envs.sandbox.fork_server import encode_spec
    from marft_envs.sandbox.memory_files import MemoryFiles

    with MemoryFiles() as files:
        spec = {"role": "main", "source": "import time; time.sleep(60)", "prelude": False}
        server.begin(Limits(), [files.sealed(encode_spec(spec)), files.sealed(b""), files.empty(), files.empty()])
        time.sleep(0.3)
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        assert len(children) == 1
        server.close()
        time.sleep(0.3)
        assert not is_alive(children[0])


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_nothing_leaks(count):
    sandbox = LocalSandbox()
    tests = [Stdin("1"), Stdin("2")]
    sandbox.run("print(input())", tests)
    files, started = descriptors(), set(os.listdir("/tmp"))
    server = sandbox._pool._idle["slim"][0].pid
    for n in range(count):
        assert sandbox.run("print(input())", tests[n % 2 :][:1]).runs[0].status is RunStatus.DONE
    assert descriptors() == files
    assert [idle.pid for idle in sandbox._pool._idle["slim"]] == [server]
    assert not {name for name in set(os.listdir("/tmp")) - started if name.startswith("marft-sandbox-")}
    sandbox.close()
    assert not Path(f"/proc/{server}").exists()


@pytest.mark.parametrize("attempt", ["read_file", "tcp", "fork", "signal_another", "write_file"])
def test_the_self_test_names_what_a_program_could_do(attempt, monkeypatch, tmp_path):
    """The probe claims to have succeeded: no server is handed out. (With a hole in the wall it says so itself.)"""
    source = Path(self_check._PROBE).read_text().replace("    could = []\n", f"    could = ['{attempt}']\n")
    probe = tmp_path / "probe.py"
    probe.write_text(source)
    monkeypatch.setattr(self_check, "_PROBE", probe)
    with pytest.raises(SandboxUnavailable, match=f"no program is run here.*locked program could: {attempt}.*sandbox="):
        LocalSandbox().run("print(1)", [Stdin("")])


def test_the_self_test_finds_a_missing_wall():
    """A server without Landlock and seccomp: the probe reads, writes, connects and forks, and says so."""
    server = ForkServer("rlimits")
    try:
        with pytest.raises(SandboxUnavailable) as refusal:
            self_check.check_server(server)
    finally:
        server.close()
    for attempt in (
        "read_file",
        "read_environment",
        "list_folder",
        "write_file",
        "overwrite_file",
        "tcp",
        "udp",
        "fork",
    ):
        assert attempt in str(refusal.value)


def test_no_kernel_support_is_a_clear_refusal(monkeypatch):
    def start(level, kind):
        raise SandboxUnavailable(f"level {level}: the kernel has no Landlock")

    monkeypatch.setattr(pool_module, "_start", start)
    with pytest.raises(SandboxUnavailable, match=r"namespace.*Landlock.*landlock.*5\.13.*allow_unsafe=True"):
        LocalSandbox().run("print(1)", [Stdin("")])


def test_another_system_is_a_clear_refusal(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="needs Linux, this is darwin"):
        LocalSandbox().run("print(1)", [Stdin("")])


def test_the_unsafe_level_must_be_asked_for_and_warns_each_time(caplog):
    with pytest.raises(ValueError, match="allow_unsafe=True"):
        LocalSandbox("rlimits")
    sandbox = LocalSandbox("rlimits", allow_unsafe=True)
    for _ in range(3):
        with pytest.warns(UnsafeSandboxWarning, match="can harm this host"):
            assert sandbox.run("print(1)", [Stdin("")]).isolation == "rlimits"
    assert [record.message[-22:] for record in caplog.records] == ["and can harm this host"] * 3


def test_allow_unsafe_takes_the_strongest_that_holds():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LocalSandbox(allow_unsafe=True).run("print(1)", [Stdin("")]).isolation in ("namespace", "landlock")


def test_a_fork_of_the_trainer_starts_its_own_servers():
    sandbox = LocalSandbox()
    sandbox.run("", [Stdin("")])
    child = os.fork()
    if child == 0:
        good = stdin(sandbox, "print(1)").stdout == "1\n"
        sandbox.close()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert stdin(sandbox, "print(2)").stdout == "2\n"


def test_threads_share_a_sandbox():
    sandbox, outputs = LocalSandbox(), []

    def work(n):
        outputs.extend(stdin(sandbox, f"print({n})").stdout == f"{n}\n" for _ in range(10))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == [True] * 40


@pytest.mark.parametrize(
    "limits",
    [
        {"cpu_s": 0},
        {"cpu_s": float("inf")},
        {"memory_mib": -1},
        {"output_mib": True},
        {"memory_mib": 512.5},
        {"output_mib": 1.0},
    ],
)
def test_limits_are_checked(limits):
    with pytest.raises(ValueError, match=f"{next(iter(limits))}=.*expected a positive number"):
        Limits(**limits)


def test_an_unknown_level_is_named():
    with pytest.raises(ValueError, match="level='docker': expected one of namespace, landlock, rlimits or None"):
        LocalSandbox("docker")


def test_results_travel_to_other_processes():
    result = LocalSandbox().run("print(1)", [Stdin("")])
    assert pickle.loads(pickle.dumps(result)) == result
