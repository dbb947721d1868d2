"""ExternalSandbox with real commands, and with commands that fail in every way."""

import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy
import pytest

import marft_envs
from marft_envs.coding import grade
from marft_envs.coding.grader.program_extraction import fenced
from marft_envs.sandbox import (
    Asserts,
    Call,
    ExternalSandbox,
    Limits,
    RunStatus,
    SandboxUnavailable,
    Stdin,
    external,
)
from tests.marft_envs.sandbox.external_commands import ANSWER, LOOP, RUNNER, command
from tests.marft_envs.sandbox.quick_run import QUICK

ROOT = Path(__file__).parents[3]
PACKAGES = Path(numpy.__file__).parents[1]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="our own runner is for Linux")


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(PACKAGES)]))


def bubblewrap():
    """Return our runner in a container: the interpreter's files and this repository, no network, no host process."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    folders = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", sys.base_prefix, sys.prefix, str(PACKAGES), str(ROOT)]
    for folder in dict.fromkeys(filter(os.path.exists, folders)):
        words += ["--ro-bind", folder, folder]
    return [*words, *RUNNER, "--level", "landlock"]


COMMANDS = {"landlock": [*RUNNER, "--level", "landlock"], "bubblewrap": bubblewrap()}


@pytest.fixture(scope="module", params=COMMANDS)
def runner(request):
    if request.param == "bubblewrap" and (
        not shutil.which("bwrap") or subprocess.run([*bubblewrap()[:-5], "true"], capture_output=True).returncode
    ):
        pytest.skip("no bubblewrap that works here")
    sandbox = ExternalSandbox(COMMANDS[request.param])
    yield sandbox
    sandbox.close()


def test_all_kinds_of_tests_and_statuses(runner):
    runs = {
        "41": runner.run("print(int(input()) + 1)", [Stdin("41")], QUICK),
        "error": runner.run("1 / 0", [Stdin("")], QUICK),
        "loop": runner.run("while True: pass", [Stdin("")], QUICK),
        "call": runner.run("def f(x): return [x, Counter('a')]", [Call("f", '["ä"]')], QUICK, prelude=True),
        "asserts": runner.run(
            "def f(x): return 2 * x", [Asserts("assert f(2) == 5"), Asserts("assert f(2) == 4")], QUICK
        ),
    }
    assert {name: [run.status.value for run in result.runs] for name, result in runs.items()} == {
        "41": ["done"], "error": ["runtime_error"], "loop": ["timeout"], "call": ["done"], "asserts": ["wrong", "done"],
    }  # fmt: skip
    assert runs["41"].runs[0].stdout == "42\n"
    assert runs["call"].runs[0].value == '["\\u00e4", {"Counter": [["a", 1]]}]'
    assert runs["loop"].runs[0].cpu_s >= 0.5
    assert {result.isolation for result in runs.values()} == {"external (landlock)"}


def test_large_inputs_and_outputs_are_transferred(runner):
    run = runner.run("print(len(input()) * 'x')", [Stdin("y" * 900_000)], QUICK).runs[0]
    assert (run.status, len(run.stdout)) == (RunStatus.DONE, 900_001)


def test_the_verdict_names_the_isolation(runner):
    verdict = grade("print(42)", [{"input": "", "output": "42"}], sandbox=runner)
    assert (verdict.score, verdict.isolation) == (1.0, "external (landlock)")


def test_an_environment_accepts_the_words_of_a_command():
    env = marft_envs.code_v0.env(sandbox=COMMANDS["landlock"], team="solo")
    env.reset(seed=1)
    task = env.unwrapped.task
    env.step(task.reference_answer(env.unwrapped.problem))
    assert {verdict.isolation for verdict in env.unwrapped.grade().values()} == {"external (landlock)"}
    again = pickle.loads(pickle.dumps(task))  # as for a grader in another process
    assert again.grade(fenced("print(1"), again.problem(0)).isolation == "external (landlock)"


BROKEN = {
    "no answer in the end": ("", "the command died twice: it ended without a reply"),
    "last words": ("sys.exit('no such image')", "it ended without a reply: no such image"),
    "no json": ("print('hello', flush=True); sys.stdin.read()", "does not run programs.*the command: Expecting value"),
    "no status": ("print('{}', flush=True); sys.stdin.read()", "the reply's status is None"),
    "no isolation": ('print(\'{"status": "done"}\', flush=True); sys.stdin.read()', "isolation is None"),
    "always right": (
        "for line in sys.stdin: print(json.dumps({'status': 'done', 'stdout': '42\\n', 'isolation': 'x'}), flush=True)",
        "for 'raise SystemExit\\(3\\)' it reported done",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_command_that_does_not_run_programs_is_refused(name):
    code, message = BROKEN[name]
    with pytest.raises(SandboxUnavailable, match=message):
        ExternalSandbox(command(code)).run("print(1)", [Stdin("")])


def test_a_command_that_does_not_exist_is_named():
    with pytest.raises(SandboxUnavailable, match=r"'no-such-runner -i' cannot be started: .*No such file"):
        ExternalSandbox(["no-such-runner", "-i"]).run("print(1)", [Stdin("")])
    for words in ("docker run", [], ["ssh", 3]):
        with pytest.raises(ValueError, match=r"command=.*expected a sequence of words"):
            ExternalSandbox(words)


def test_missing_isolation_on_the_other_side_is_refused_with_its_reason():
    """Our runner on a host that reports no Landlock."""
    code = (
        "from marft_envs.sandbox import SandboxUnavailable, runner, server_pool\n"
        "def start(level, kind): raise SandboxUnavailable(f'level {level}: the kernel has no Landlock')\n"
        "server_pool._start = start\nrunner.main([])"
    )
    with pytest.raises(SandboxUnavailable, match=r"it reported fault .*no Landlock"):
        ExternalSandbox(command(code)).run("print(1)", [Stdin("")])


def test_a_command_may_exit_after_each_reply():
    once = ExternalSandbox(command(ANSWER + "answer(json.loads(sys.stdin.readline()), status='done', stdout='hi')"))
    assert [once.run("x", [Stdin("")]).runs[0].stdout for _ in range(3)] == ["hi"] * 3
    assert once.run("x", [Stdin("")]).isolation == "external (none at all)"


def test_descriptors_above_the_maximum_of_select_are_supported():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2048)), hard))
    null = os.open(os.devnull, os.O_RDONLY)
    taken = [null]
    try:
        while taken[-1] < 1100:
            taken.append(os.dup(null))
        sandbox = ExternalSandbox(command(LOOP + "    answer(request, status='done')"))
        run = sandbox.run("x", [Stdin("")]).runs[0]
        sandbox.close()
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert run.status is RunStatus.DONE, run.detail


def test_the_help_of_the_runner_is_complete():
    help_ = subprocess.run([*RUNNER, "--help"], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert "Run programs in the local sandbox, as requested on standard input\n" in help_
    assert "isolation level (default: the strongest one available)" in help_


def test_a_killed_command_is_restarted_and_the_run_is_repeated(tmp_path):
    """The command kills itself during its first run of the program "x"."""
    killed = str(tmp_path / "killed")
    code = LOOP + (
        f"    if program == 'x' and not os.path.exists({killed!r}):\n"
        f"        open({killed!r}, 'w').close()\n"
        "        os.kill(os.getpid(), 9)\n"
        "    answer(request, status='done', stdout='1')"
    )
    sandbox = ExternalSandbox(command(code))
    sandbox.run("y", [Stdin("")])
    victim = sandbox._idle[0]._process
    run = sandbox.run("x", [Stdin("")]).runs[0]
    assert (run.status, run.stdout) == (RunStatus.DONE, "1")
    assert victim.returncode == -signal.SIGKILL and sandbox._idle[0]._process is not victim
    sandbox.close()


DIES = LOOP + "    program == 'die' and os._exit(9)\n    answer(request)\n"
SLOW = LOOP + "    program == 'x' and time.sleep(60)\n    answer(request, status='done')\n"
TALKS = LOOP + "    answer(request, status='done')\n    program == 'x' and print('done', flush=True)\n"


def test_a_command_that_dies_twice_is_not_graded():
    verdict = grade("die", [{"input": "", "output": ""}], sandbox=ExternalSandbox(command(DIES)))
    assert not verdict.graded and "the command died twice: it ended without a reply" in verdict.reason


def test_a_command_that_hangs_is_not_graded(monkeypatch):
    sandbox = ExternalSandbox(command(SLOW))
    assert sandbox.run("y", [Stdin("")]).runs[0].status is RunStatus.DONE  # passes the trial with the usual times
    for name, value in (("_START_S", 0.2), ("_GRACE_S", 0.2), ("WALL_LIMITS", 0.1), ("_PATIENCE_S", 0.2)):
        monkeypatch.setattr(external, name, value)
    verdict = grade("x", [{"input": "", "output": ""}], sandbox=sandbox, limits=Limits(cpu_s=0.01))
    assert not verdict.graded and "no reply in time" in verdict.reason


def test_a_second_line_is_never_read_as_the_next_reply():
    sandbox = ExternalSandbox(command(TALKS))
    runs = [sandbox.run("x", [Stdin("")]).runs[0] for _ in range(4)]
    for run in runs:  # depending on when the second line arrives, the run is a fault or the line is never read
        assert run.status is RunStatus.FAULT or (run.status is RunStatus.DONE and run.detail == "")


def test_threads_and_forked_processes_share_a_sandbox():
    sandbox, outputs = ExternalSandbox(COMMANDS["landlock"]), []

    def work(n):
        outputs.extend(sandbox.run(f"print({n})", [Stdin("")], QUICK).runs[0].stdout == f"{n}\n" for _ in range(3))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == [True] * 6
    child = os.fork()
    if child == 0:
        good = sandbox.run("print(1)", [Stdin("")]).runs[0].stdout == "1\n"
        sandbox.close()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sandbox.run("print(2)", [Stdin("")]).runs[0].stdout == "2\n"
    processes = [runner._process for runner in sandbox._idle]
    sandbox.close()
    assert processes and all(process.returncode is not None for process in processes)
