"""A command of the user's in place of our own sandbox: real ones, and every way in which a command can fail."""

import json
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
    RunStatus,
    ExternalSandbox,
    Limits,
    LocalSandbox,
    Run,
    SandboxUnavailable,
    Stdin,
    external,
)
from marft_envs.sandbox.protocol import BadMessage, read_reply, read_request, reply_of, request_of

ROOT = Path(__file__).parents[3]
QUICK = Limits(cpu_s=0.5, memory_mib=256, output_mib=1)
RUNNER = [sys.executable, "-m", "marft_envs.sandbox.runner"]
PACKAGES = Path(numpy.__file__).parents[1]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="our own runner is for Linux")


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(PACKAGES)]))


def bubblewrap():
    """Our runner in a container: the interpreter's files and this repository, no network, no host process."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    places = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", sys.base_prefix, sys.prefix, str(PACKAGES), str(ROOT)]
    for place in dict.fromkeys(filter(os.path.exists, places)):
        words += ["--ro-bind", place, place]
    return [*words, *RUNNER, "--level", "landlock"]


COMMANDS = {"landlock": [*RUNNER, "--level", "landlock"], "bubblewrap": bubblewrap()}


@pytest.fixture(scope="module", params=COMMANDS)
def place(request):
    if request.param == "bubblewrap" and (
        not shutil.which("bwrap") or subprocess.run([*bubblewrap()[:-5], "true"], capture_output=True).returncode
    ):
        pytest.skip("no bubblewrap that works here")
    sandbox = ExternalSandbox(COMMANDS[request.param])
    yield sandbox
    sandbox.close()


def test_all_kinds_of_tests_and_ends(place):
    runs = {
        "41": place.run("print(int(input()) + 1)", [Stdin("41")], QUICK),
        "error": place.run("1 / 0", [Stdin("")], QUICK),
        "loop": place.run("while True: pass", [Stdin("")], QUICK),
        "call": place.run("def f(x): return [x, Counter('a')]", [Call("f", '["ä"]')], QUICK, prelude=True),
        "asserts": place.run(
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


def test_large_inputs_and_outputs_cross(place):
    run = place.run("print(len(input()) * 'x')", [Stdin("y" * 900_000)], QUICK).runs[0]
    assert (run.status, len(run.stdout)) == (RunStatus.DONE, 900_001)


def test_the_isolation_stands_in_the_verdict(place):
    verdict = grade("print(42)", [{"input": "", "output": "42"}], sandbox=place)
    assert (verdict.score, verdict.isolation) == (1.0, "external (landlock)")


def test_an_environment_takes_the_words_of_a_command():
    env = marft_envs.code_v0.env(sandbox=COMMANDS["landlock"], team="solo")
    env.reset(seed=1)
    task = env.unwrapped.task
    env.step(task.reference_answer(env.unwrapped.problem))
    assert {verdict.isolation for verdict in env.unwrapped.grade().values()} == {"external (landlock)"}
    again = pickle.loads(pickle.dumps(task))  # for a grader in another process
    assert again.grade(fenced("print(1"), again.problem(0)).isolation == "external (landlock)"


def command(code):
    return [sys.executable, "-c", f"import json, sys, os, time\n{code}"]


ANSWER = """
def answer(request, **more):
    if request["program"].startswith("raise"):
        more = {"status": "runtime_error"}
    elif request["program"].startswith("print(int"):
        more = {"status": "done", "stdout": "42\\n"}
    print(json.dumps({"isolation": "none at all", **more}), flush=True)
"""
BROKEN = {
    "no answer in the end": ("", "the command died twice: it ended without a reply"),
    "last words": ("sys.exit('no such image')", "it ended without a reply: no such image"),
    "no json": ("print('hello', flush=True); sys.stdin.read()", "does not run programs.*the command: Expecting value"),
    "no status": ("print('{}', flush=True); sys.stdin.read()", "the reply's status is None"),
    "no isolation": ('print(\'{"status": "done"}\', flush=True); sys.stdin.read()', "isolation is None"),
    "always right": (
        "for line in sys.stdin: print(json.dumps({'status': 'done', 'stdout': '42\\n', 'isolation': 'x'}), flush=True)",
        "of 'raise SystemExit\\(3\\)' it says done",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_command_that_runs_no_programs_is_refused(name):
    code, message = BROKEN[name]
    with pytest.raises(SandboxUnavailable, match=message):
        ExternalSandbox(command(code)).run("print(1)", [Stdin("")])


def test_a_command_that_is_not_there_is_named():
    with pytest.raises(SandboxUnavailable, match=r"'no-such-runner -i' cannot be started: .*No such file"):
        ExternalSandbox(["no-such-runner", "-i"]).run("print(1)", [Stdin("")])
    for words in ("docker run", [], ["ssh", 3]):
        with pytest.raises(ValueError, match=r"command=.*expected a sequence of words"):
            ExternalSandbox(words)


def test_no_wall_on_the_other_side_is_refused_with_its_reason(tmp_path):
    """Our runner where Landlock is said to be missing."""
    code = (
        "from marft_envs.sandbox import pool, runner, SandboxUnavailable\n"
        "def start(level, kind): raise SandboxUnavailable(f'level {level}: the kernel has no Landlock')\n"
        "pool._start = start\nrunner.main([])"
    )
    with pytest.raises(SandboxUnavailable, match=r"it says fault .*no Landlock"):
        ExternalSandbox(command(code)).run("print(1)", [Stdin("")])


def test_a_command_may_end_after_each_reply():
    once = ExternalSandbox(command(ANSWER + "answer(json.loads(sys.stdin.readline()), status='done', stdout='hi')"))
    assert [once.run("x", [Stdin("")]).runs[0].stdout for _ in range(3)] == ["hi"] * 3
    assert once.run("x", [Stdin("")]).isolation == "external (none at all)"


def test_programs_are_run_beside_more_descriptors_than_select_knows():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2048)), hard))
    null = os.open(os.devnull, os.O_RDONLY)
    taken = [null]
    try:
        while taken[-1] < 1100:
            taken.append(os.dup(null))
        sandbox = ExternalSandbox(command(ANSWER + "for line in sys.stdin: answer(json.loads(line), status='done')"))
        run = sandbox.run("x", [Stdin("")]).runs[0]
        sandbox.close()
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert run.status is RunStatus.DONE, run.detail


def test_the_runner_s_help_is_whole_words():
    help_ = subprocess.run([*RUNNER, "--help"], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert "Our own sandbox as a runner\n" in help_


def test_a_killed_command_is_started_again_and_the_test_run_once_more():
    sandbox = ExternalSandbox(RUNNER)
    sandbox.run("", [Stdin("")])
    victim = sandbox._idle[0]._process.pid
    killer = threading.Timer(0.4, os.kill, (victim, signal.SIGKILL))
    killer.start()
    run = sandbox.run("import time; time.sleep(0.9); print(1)", [Stdin("")], Limits(cpu_s=1)).runs[0]
    assert (run.status, run.stdout) == (RunStatus.DONE, "1\n")
    assert sandbox._idle[0]._process.pid != victim
    sandbox.close()


LOOP = ANSWER + "for line in sys.stdin:\n    request = json.loads(line)\n    program = request['program']\n"
DIES = LOOP + "    program == 'die' and os._exit(9)\n    answer(request)\n"
SLOW = LOOP + "    program == 'x' and time.sleep(60)\n    answer(request)\n"
TALKS = LOOP + "    answer(request, status='done')\n    program == 'x' and print('done', flush=True)\n"
CHATTY = (
    LOOP
    + """
    for _ in range(2000):
        print(80 * "x", file=sys.stderr, flush=True)
    program == "die" and sys.exit("the last words")
    answer(request, status="done")
"""
)
BURST = (
    LOOP
    + """
    if program == "x":
        sys.stderr.write(2_000_000 * "x" + "\\nthe end\\n")
        time.sleep(1)
    answer(request, status="done")
"""
)


def test_what_a_command_says_takes_bounded_room():
    """160 kB for each request, as of a runner that logs, over many of them."""
    sandbox, files = ExternalSandbox(command(CHATTY)), []
    for _ in range(8):
        assert sandbox.run("x", [Stdin("")]).runs[0].status is RunStatus.DONE
        files.append(os.fstat(sandbox._idle[0]._errors.fileno()))
    assert max(file.st_blocks * 512 for file in files) < 1 << 19
    assert "it ended without a reply: the last words" in sandbox.run("die", [Stdin("")]).runs[0].detail
    sandbox.close()


def test_what_a_command_says_while_it_works_takes_bounded_room(monkeypatch):
    """2 MB while one reply is awaited, then silence: cut before the reply is there."""
    monkeypatch.setattr(external, "_LOOK_S", 0.1)
    sandbox = ExternalSandbox(command(BURST))
    assert sandbox.run("x", [Stdin("")]).runs[0].status is RunStatus.DONE
    runner = sandbox._idle[0]
    assert os.fstat(runner._errors.fileno()).st_blocks * 512 <= 1 << 13 and runner._last_words() == ": the end"
    sandbox.close()


def test_a_command_that_dies_twice_is_not_graded():
    verdict = grade("die", [{"input": "", "output": ""}], sandbox=ExternalSandbox(command(DIES)))
    assert not verdict.graded and "the command died twice: it ended without a reply" in verdict.reason


def test_a_command_that_hangs_is_not_graded(monkeypatch):
    for name, value in (("_START_S", 1.0), ("_GRACE_S", 0.5), ("_WALL_LIMITS", 1.0), ("_PATIENCE_S", 0.2)):
        monkeypatch.setattr(external, name, value)
    verdict = grade(
        "x", [{"input": "", "output": ""}], sandbox=ExternalSandbox(command(SLOW)), limits=Limits(cpu_s=0.01)
    )
    assert not verdict.graded and "no reply in time" in verdict.reason


def test_two_lines_for_one_request_are_never_taken_for_the_next_reply():
    sandbox = ExternalSandbox(command(TALKS))
    runs = [sandbox.run("x", [Stdin("")]).runs[0] for _ in range(4)]
    for run in runs:  # when the second line comes is up to the machine: it ends as a fault or is never read
        assert run.status is RunStatus.FAULT or (run.status is RunStatus.DONE and run.detail == "")


def test_threads_and_forks_share_it():
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


TESTS = [Stdin("ä\ud800"), Call("f", "[1]"), Asserts("assert f(1)", "f", ("sum",))]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: type(test).__name__)
def test_a_message_survives_its_way(test):
    request = json.loads(json.dumps(request_of("x = 1", test, QUICK, True)))
    assert read_request(request) == ("x = 1", test, QUICK, True)
    run = Run(RunStatus.WRONG, "out", "1", "why", 0.25, 0.5)
    assert read_reply(json.loads(json.dumps(reply_of(run, "vm")))) == (run, "vm")


NO_REQUESTS = [
    {"protocol": 2},
    {"test": {"kind": "x"}},
    {"test": {"kind": "stdin"}},
    {"limits": {}},
    {"limits": {"cpu_s": -1, "memory_mib": 1, "output_mib": 1}},
]


@pytest.mark.parametrize("change", NO_REQUESTS)
def test_what_is_no_request_is_said(change):
    with pytest.raises(BadMessage, match="protocol"):
        read_request({**request_of("", Stdin(""), QUICK, False), **change})


@pytest.mark.parametrize(("change", "message"), [({"stdout": 3}, "stdout is a int"), ({"cpu_s": "1"}, "cpu_s is '1'"),
                                                 ({"cpu_s": float("nan")}, "cpu_s is nan"), ({"status": "ok"}, "'ok'"),
                                                 ({"isolation": ""}, "isolation is ''")])  # fmt: skip
def test_what_is_no_reply_is_said(change, message):
    with pytest.raises(BadMessage, match=message):
        read_reply({**reply_of(Run(RunStatus.DONE), "vm"), **change})


def test_the_refusal_of_our_own_sandbox_names_this_way(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match=r"this is darwin.*marft_envs\.sandbox\.runner.*docs/grading\.md"):
        LocalSandbox().run("print(1)", [Stdin("")])
