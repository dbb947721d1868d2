"""The symbolic worker: comparisons, limits, confinement, faults, threads, forks, and the end of its processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from marft_envs.mathematics import fault_counts, grade, grade_many
from marft_envs.mathematics.grader import reply_grader
from marft_envs.mathematics.grader.expression_parser import parse
from marft_envs.mathematics.grader.sample_points import sign_points
from marft_envs.mathematics.grader.symbolic import WorkerFault, WorkerPool, worker_pool
from marft_envs.mathematics.grader.tree_cost import digits_needed
from marft_envs.mathematics.grader.tree_value import symbols
from marft_envs.sandbox.inside import landlock
from marft_envs.verdict import Outcome

pytest.importorskip("math_verify", reason="needs math-verify: pip install '.[math]'")

TRIG = (r"\boxed{\sec^2(y)}", r"\tan^2(y)+1")  # only the worker can decide that these are equal
SLOW = r"\int_{0}^{1} \sin(\cos(\tan(x^{x}))) dx"


@pytest.fixture
def pool(monkeypatch):
    with WorkerPool(workers=2, limit_s=1.0) as own:
        monkeypatch.setattr(reply_grader, "shared_pool", lambda: own)
        yield own


def compare_trees(pool, answer, gold):
    """Compare two strings by the worker's comparison of trees, at the points of an expression without a domain."""
    trees = parse(answer), parse(gold)
    names = frozenset().union(*map(symbols, trees))
    points = list(sign_points(names, seed=0)) if names else [{}]
    return pool.compare_trees(*trees, points, digits_needed(*trees))


def children(pid):
    """Return the ids of all living descendants of a process."""
    descendants = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            descendants += [int(child), *children(int(child))]
    return descendants


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_trees_and_latex(pool):
    trees = [
        (r"\sin(2x)", r"2\sin x\cos x", True),
        (r"\sin(2x)", r"2\sin x", False),
        (r"e^{i\pi}", "-1", True),
        (r"\arctan(1)", r"\frac{\pi}{4}", True),
        (r"\tan\frac{\pi}{8}", r"\sqrt{2}-1", True),
        (r"\sin(10^{-35})", "10^{-35}", False),  # the first difference is in digit 71 after the first digit
    ]
    for answer, gold, same in trees:
        comparison = compare_trees(pool, answer, gold)
        assert (comparison.result, comparison.status) == (same, "ok"), (answer, gold)
    latex = [
        (r"\sum_{k=1}^{10} k", "55", True),
        (r"\int_0^1 x^2 dx", r"\frac{1}{3}", True),
        (r"\int_0^1 x^2 dx", r"\frac{1}{4}", False),
        ("2^{-99}", "2^{-98}", False),  # math-verify alone rounds both to 0
        (r"x^2 < 4", "(-2, 2)", True),
    ]
    for answer, gold, same in latex:
        assert pool.compare_latex(answer, gold).result is same, (answer, gold)


def test_an_answer_that_takes_too_long_is_wrong_and_the_worker_survives(pool):
    pool.warm_up()
    started = time.monotonic()
    verdict = grade(rf"\boxed{{{SLOW}}}", "42")
    assert verdict.outcome is Outcome.WRONG and "more time" in verdict.reason
    assert 0.9 < time.monotonic() - started < 1.9
    before = list(pool._all)
    assert grade(*TRIG).outcome is Outcome.CORRECT
    assert pool._all == before  # only its child was replaced


def test_a_gold_that_takes_too_long_is_a_fault(pool):
    before = fault_counts()
    verdict = grade(r"\boxed{\int_0^1 x dx}", SLOW)
    reason = "the gold answer needs more time than the symbolic worker has"
    if verdict.outcome is Outcome.NOT_GRADED:
        assert verdict.reason == reason
        assert fault_counts()[reason] == before.get(reason, 0) + 1
    else:  # the gold was parsed in time, and the comparison exceeded the limit
        assert "more time" in verdict.reason


def test_the_phase_decides_between_a_fault_and_a_wrong_answer(pool, monkeypatch):
    monkeypatch.setattr(pool, "compare", lambda *_: worker_pool.Comparison(None, "timeout", "gold", 1.0, "rlimits"))
    verdict = grade(*TRIG)
    assert verdict.outcome is Outcome.NOT_GRADED and "the gold answer needs more time" in verdict.reason
    monkeypatch.setattr(pool, "compare", lambda *_: worker_pool.Comparison(None, "memory", "answer", 1.0, "rlimits"))
    assert grade(*TRIG).outcome is Outcome.WRONG


def worker_script(tmp_path, body, confined=True):
    """Return the path of a worker whose child_process.py is ``body``, with or without the sandbox's confinement."""
    folder = tmp_path / "mathematics" / "grader" / "symbolic"
    folder.mkdir(parents=True)
    source = Path(worker_pool.__file__).parent
    (folder / "worker.py").write_text((source / "worker.py").read_text())
    (folder.parent / "tree_value.py").write_text("")
    if confined:
        (tmp_path / "sandbox").symlink_to(source.parents[2] / "sandbox")
    (folder / "child_process.py").write_text(body)
    return folder / "worker.py"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("def run(request, gold_done):\n    gold_done()\n    return bytearray(2**31) is None", "memory"),
        ("def run(request, gold_done):\n    gold_done()\n    while True: pass", "timeout"),
        ("def run(request, gold_done):\n    gold_done()\n    return 1 == 2", "ok"),
        ("import time\ndef run(request, gold_done):\n    gold_done()\n    time.sleep(60)", "starved"),
    ],
)
def test_limits(tmp_path, monkeypatch, body, status):
    monkeypatch.setattr(worker_pool, "_SCRIPT", worker_script(tmp_path, body))
    with WorkerPool(workers=1, limit_s=0.5) as own:
        answer = own.compare_latex("1", "2")
        assert answer.phase == "answer"
        assert answer.status == status or (status, answer.status) == (
            "timeout",
            "starved",
        )  # busy machine
        assert answer.seconds < 3


ATTEMPTS = """
import os, signal, socket
def attempt(what):
    try:
        what()
    except (OSError, ValueError):
        return False
    return True
def write():
    with open("FILE", "wb") as file:
        file.write(b"x")
        file.flush()
def many():
    files = [open("/dev/null") for _ in range(100)]
def connect():
    socket.create_connection(("127.0.0.1", PORT), 1)
def read():
    open("/etc/hostname").close()
def fork():
    if os.fork() == 0:
        os._exit(0)
def disturb():
    os.kill(os.getppid(), 0)
def run(request, gold_done):
    import colorsys, sympy.stats  # modules that no package has imported yet
    tried = {what.__name__: attempt(what) for what in (write, many, connect, read, fork, disturb, os.getcwd)}
    return {**tried, "environment": sorted(set(os.environ) - {"LC_CTYPE"})}
"""


@pytest.mark.parametrize("confined", [True, False])
def test_the_child_is_confined(tmp_path, monkeypatch, confined):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        body = ATTEMPTS.replace("PORT", str(server.getsockname()[1])).replace("FILE", str(tmp_path / "written"))
        body = f"import sympy\n{body}"
        monkeypatch.setattr(worker_pool, "_SCRIPT", worker_script(tmp_path, body, confined))
        with WorkerPool(workers=1, limit_s=20.0) as own:
            answer = own.compare_latex("1", "2")
    assert answer.result["write"] is False and answer.result["many"] is False and answer.result["getcwd"] is False
    assert answer.result["environment"] == ["OMP_NUM_THREADS"]
    if confined and landlock.abi() > 0:
        assert answer.isolation == "landlock"
        assert {name for name, could in answer.result.items() if could is True} == set()
    else:
        assert answer.isolation.startswith("rlimits")
        assert answer.result["connect"] is ("no network" not in answer.isolation)
        assert answer.result["read"] is True


def test_a_timeout_on_a_busy_machine_is_a_fault(tmp_path, monkeypatch, pool):
    body = "import time\ndef run(request, gold_done):\n    gold_done()\n    time.sleep(60)"
    monkeypatch.setattr(worker_pool, "_SCRIPT", worker_script(tmp_path, body))
    verdict = grade(*TRIG)
    assert verdict.outcome is Outcome.NOT_GRADED and "too busy" in verdict.reason
    assert fault_counts()[verdict.reason] >= 1


def test_a_comparison_whose_child_dies_twice_is_a_fault(tmp_path, monkeypatch, pool):
    body = "import os\ndef run(request, gold_done):\n    os._exit(3)"
    monkeypatch.setattr(worker_pool, "_SCRIPT", worker_script(tmp_path, body))
    verdict = grade(*TRIG)
    assert verdict.outcome is Outcome.NOT_GRADED and "died twice" in verdict.reason
    assert fault_counts()[verdict.reason] >= 1


@pytest.mark.parametrize("end", ["SIGSEGV", "SIGABRT", "SIGFPE"])
def test_an_answer_that_crashes_the_worker_is_wrong_and_a_gold_that_does_is_a_fault(end, tmp_path, monkeypatch, pool):
    """A kill from outside is neither, see above."""
    crash = f"import os, signal\ndef run(request, gold_done):\n    {{}}\n    os.kill(os.getpid(), signal.{end})"
    monkeypatch.setattr(worker_pool, "_SCRIPT", worker_script(tmp_path / "answer", crash.format("gold_done()")))
    verdict = grade(*TRIG)
    assert verdict.outcome is Outcome.WRONG and verdict.reason == "the answer crashes the symbolic worker"
    assert fault_counts()[verdict.reason] >= 1
    pool.close()
    monkeypatch.setattr(worker_pool, "_SCRIPT", worker_script(tmp_path / "gold", crash.format("pass")))
    with WorkerPool(1) as other:
        monkeypatch.setattr(reply_grader, "shared_pool", lambda: other)
        verdict = grade(*TRIG)
    assert verdict.outcome is Outcome.NOT_GRADED and verdict.reason == "the gold answer crashes the symbolic worker"


def test_an_answer_on_which_sympy_raises_is_wrong(pool):
    verdict = grade(r"\boxed{ix}", r"\lim_{x\to 0} \frac{\sin x}{x}")  # TypeError: 8 should be of symbol type
    assert verdict.outcome is Outcome.WRONG and "nothing could decide" in verdict.reason


def test_a_killed_worker_is_a_fault_and_is_replaced(pool):
    assert grade(*TRIG).outcome is Outcome.CORRECT
    os.killpg(pool._all[0].process.pid, signal.SIGKILL)
    verdict = grade(*TRIG)
    assert verdict.outcome is Outcome.NOT_GRADED and "worker" in verdict.reason
    assert grade(*TRIG).outcome is Outcome.CORRECT


def test_missing_math_verify_is_a_fault_only_if_it_is_needed(tmp_path, monkeypatch, pool):
    monkeypatch.setattr(worker_pool, "_SCRIPT", worker_script(tmp_path, "import no_such_module_of_ours"))
    assert grade(r"\boxed{\frac{\sqrt{2}}{2}}", r"\frac{1}{\sqrt{2}}").outcome is Outcome.CORRECT
    verdict = grade(*TRIG)
    assert verdict.outcome is Outcome.NOT_GRADED
    assert verdict.reason == "symbolic comparison needs no_such_module_of_ours: pip install '.[math]' in the repository"


def test_threads_and_batches_share_the_workers(pool):
    with ThreadPoolExecutor(8) as threads:
        verdicts = list(threads.map(lambda _: grade(*TRIG), range(24)))
    assert {verdict.outcome for verdict in verdicts} == {Outcome.CORRECT}
    assert len(pool._all) <= 2
    batch = [(r"\boxed{4}", "4"), TRIG, ("nothing", "4"), (r"\boxed{\tan^2(y)}", TRIG[1]), (r"\boxed{5}", "4")] * 5
    outcomes = [verdict.outcome for verdict in grade_many(batch)]
    expected = [Outcome.CORRECT, Outcome.CORRECT, Outcome.NO_ANSWER, Outcome.WRONG, Outcome.WRONG]
    assert outcomes == expected * 5


def test_signal_handlers_are_unchanged_and_any_thread_can_start_a_worker():
    before = [signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGCHLD, signal.SIGINT, signal.SIGTERM)]
    with WorkerPool(workers=1) as own:
        results = []
        thread = threading.Thread(target=lambda: results.append(compare_trees(own, "x", "x")))
        thread.start()
        thread.join(60)
        assert results[0].result is True
        del thread  # the worker outlives the thread that started it
        assert compare_trees(own, "x", "x").result is True
    assert before == [signal.getsignal(n) for n in (signal.SIGALRM, signal.SIGCHLD, signal.SIGINT, signal.SIGTERM)]


def test_closing_a_pool_leaves_no_process_and_no_descriptor():
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    with WorkerPool(workers=1) as own:
        compare_trees(own, "x", "x")
        family = [own._all[0].process.pid, *children(own._all[0].process.pid)]
        assert len(family) == 2 and all(map(is_alive, family))
    deadline = time.monotonic() + 5
    while any(map(is_alive, family)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(is_alive, family))
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
    with pytest.raises(WorkerFault, match="closed"):
        compare_trees(own, "x", "x")


FORKS = r"""
import os, sys
from marft_envs.mathematics import grade
from marft_envs.mathematics.grader.sample_points import sign_points
from marft_envs.mathematics.grader.symbolic import shared_pool
TRIG = (r"\boxed{\sec^2(y)}", r"\tan^2(y)+1")
assert grade(*TRIG).score == 1.0
mine = [worker.process.pid for worker in shared_pool()._all]
child = os.fork()
if child == 0:
    assert shared_pool()._all == []
    ok = grade(*TRIG).score == 1.0 and mine != [worker.process.pid for worker in shared_pool()._all]
    shared_pool().close()
    os._exit(0 if ok else 7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert grade(*TRIG).score == 1.0 and mine == [worker.process.pid for worker in shared_pool()._all]
print(*mine)
if "die" in sys.argv:
    os.kill(os.getpid(), 9)
"""


ORPHAN = r"""
import os, subprocess
from marft_envs.mathematics.grader.sample_points import sign_points
from marft_envs.mathematics.grader.symbolic import shared_pool
shared_pool().warm_up()
worker = shared_pool()._all[0].process
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
print(worker.pid, subprocess.Popen(["sleep", "20"], pass_fds=[worker.stdin.fileno()], **QUIET).pid)
os.sys.stdout.flush()
os.kill(os.getpid(), 9)
"""


def test_a_worker_ends_with_its_parent_even_if_another_process_holds_its_pipe():
    run = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True, timeout=120)
    worker, other = map(int, run.stdout.split())
    deadline = time.monotonic() + 6
    while is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_alive(other) and not is_alive(worker)
    os.kill(other, signal.SIGKILL)


@pytest.mark.parametrize("how", [pytest.param("end", marks=pytest.mark.slow), "die"])
def test_a_forked_child_has_workers_of_its_own_and_no_worker_outlives_its_parent(how):
    run = subprocess.run([sys.executable, "-c", FORKS, how], capture_output=True, text=True, timeout=120)
    assert run.returncode == (0 if how == "end" else -9), run.stderr
    worker = int(run.stdout.split()[0])
    deadline = time.monotonic() + 5
    while is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(worker)
