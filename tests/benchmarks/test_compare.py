"""compare.py as a user runs it: a small comparison that is killed, resumed and stopped, and its report."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from baselines.command_line import interpreter
from baselines.ladder import ARMS
from baselines.runs.run import train
from benchmarks import compare
from benchmarks.analysis.read_rows import load_rows
from benchmarks.analysis.rows_schema import ROW_KINDS
from benchmarks.experiment import workers
from benchmarks.experiment.comparison_progress import ComparisonProgress
from benchmarks.experiment.grid import load_preset
from benchmarks.experiment.results_folder import ResultsFolder
from tests.benchmarks.experiment import light_workers
from tests.benchmarks.small_comparison import SMALL

pytestmark = pytest.mark.xdist_group("compare")  # they have a comparison in common
BEGUN = "compare: loading torch and transformers ...\n"
ROOT = Path(__file__).resolve().parents[2]
BLOCK_TORCH = (
    "import importlib.abc, importlib.util, os, runpy, sys\n"
    "class Block(importlib.abc.MetaPathFinder):\n"
    "    def find_spec(self, name, path, target=None):\n"
    "        if name in ('torch', 'transformers'): os.write(2, name.encode()); os._exit(3)\n"
    "importlib.util.find_spec = lambda name, package=None: True\n"  # baselines looks for torch without importing it
    "sys.meta_path.insert(0, Block())\n"
)

OWN_TASK = '''
from marft_envs import Problem, Task, Verdict, register


@register("count")
class Count(Task):
    """Reply with the number."""

    def __init__(self, split="train"):
        self.size = 4

    def problem(self, index):
        return Problem(index, str(index), str(index))

    def grade(self, answer, problem):
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("another number")
'''


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    path = tmp_path_factory.mktemp("preset") / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory, preset):
    """The folder of a comparison without interruption; its runs are made in this process, which has torch loaded."""
    results = ResultsFolder(tmp_path_factory.mktemp("whole") / "results")
    grid = load_preset(str(preset))
    results.open(grid, resume=False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in a worker; sums of several threads are rounded differently
    try:
        for run in grid.runs():
            train(run, folder=results.run_folder(run))
    finally:
        torch.set_num_threads(threads)
    results.write_rows()
    return results.folder


@pytest.fixture(scope="module")
def resumed(tmp_path_factory, preset):
    """The folder and the output of a comparison that was killed inside its first run and resumed."""
    out = tmp_path_factory.mktemp("killed") / "results"
    process = start("--preset", preset, "--out", out, "--workers", "1")
    for line in process.stdout:
        if "relay ippo seed 0: update 2/4, sampled" in line:
            break
    checkpoints = out / "runs" / "relay-ippo-lr0.001-0" / "checkpoints"
    while not (checkpoints / "000002").exists():
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=60)
    assert not (checkpoints / "000004").exists() and not (out / "rows.jsonl").exists()
    with pytest.MonkeyPatch.context() as patch:
        output = Output()
        patch.setattr(sys, "stdout", output)
        assert compare.main(["--preset", str(preset), "--out", str(out), "--resume", "--workers", "1"]) == 0
    return out, output.text


class Output:
    """A stream that collects what is printed."""

    text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return False


def start(*arguments):
    command = [sys.executable, "-u", "benchmarks/compare.py", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def rows_of(folder):
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def without_times(folder):
    """Return every row without what depends on the clock; the head without data and sessions, which only compare.py
    writes."""
    timed = ("wall_s", "seconds", "started", "sessions", "data")
    return [{key: value for key, value in row.items() if key not in timed} for row in rows_of(folder)]


@pytest.mark.slow
def test_a_comparison_that_was_killed_resumes_inside_the_run_to_the_same_rows(resumed, whole):
    out, output = resumed
    assert "2 runs (1 of them resumed from a checkpoint)" in output
    assert "ippo seed 0: update 2/4" not in output and "ippo seed 0: update 4/4" in output
    assert without_times(out) == without_times(whole)
    assert [p.name for p in (out / "runs" / "relay-ippo-lr0.001-0" / "checkpoints").iterdir()] == ["000004"]


def test_a_finished_comparison(resumed):
    out, output = resumed
    assert "marft - ippo" in output and "inconclusive" in output
    assert output.rstrip().endswith(f"Results: {out}/ (report.html, report.md, rows.jsonl, summary.json, curve_*.png)")
    names = {"rows.jsonl", "summary.json", "report.md", "report.html", "curve_relay.png"}
    assert {p.name for p in out.iterdir()} >= names
    assert "relay: model tiny-relay-duo-v1 v1 (sha256 " in output
    assert "answers nothing scores 0.0 %" in " ".join(output.split())
    rows = rows_of(out)
    assert rows[0]["kind"] == "comparison" and [s["versions"]["torch"] for s in rows[0]["sessions"]][1:]
    assert [(r["arm"], r["learning_rate"]) for r in rows if r["kind"] == "run"] == [("ippo", 1e-3), ("marft", 1e-3)]
    evals = [r for r in rows if r["kind"] == "eval"]
    assert {(r["arm"], r["update"], r["mode"]) for r in evals} == {
        (a, u, m) for a in ("ippo", "marft") for u in (0, 2, 4) for m in ("greedy", "sampled")
    }
    first = {r["arm"]: r["item_score"] for r in evals if r["update"] == 0 and r["mode"] == "sampled"}
    assert first["ippo"] == first["marft"]  # same team, same problems, same uniforms
    trains = [r for r in rows if r["kind"] == "train"]
    assert trains[-1]["episodes"] == 64 and trains[-1]["trained_tokens"] > 0 and trains[-1]["learning_rate"] == 1e-3


def test_every_key_of_a_real_row_is_documented(resumed):
    """In the schema, or for the metrics of a learner in docs/metrics.md."""
    metrics = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "metrics.md").read_text()))
    for row in load_rows(resumed[0]):
        known = set(ROW_KINDS[row["kind"]]) | {"kind"} | (metrics if row["kind"] == "train" else set())
        assert set(row) <= known, (row["kind"], set(row) - known)
        assert {metric for agent in row.get("agents", {}).values() for metric in agent} <= metrics


def test_a_folder_that_holds_a_comparison(resumed, preset, capsys):
    out, _ = resumed
    again = ["--preset", str(preset), "--out", str(out)]
    assert compare.main(again) == 2
    expected = f"compare: results folder {out} exists: expected --resume, or another folder with --out\n"
    assert capsys.readouterr().err == expected
    assert compare.main([*again, "--resume"]) == 0
    assert "all 2 runs are finished" in capsys.readouterr().out
    assert compare.main([*again, "--resume", "--updates", "5"]) == 2
    assert capsys.readouterr().err == (
        f"compare: results folder {out} holds another comparison; tasks.relay.updates was 4, now 5: "
        "expected the same options, or another folder with --out\n"
    )


@pytest.mark.slow
def test_folders_of_two_machines_are_merged_and_the_missing_run_is_done(tmp_path, whole, preset, capsys):
    for name, left_out in (("a", "relay-marft-*"), ("b", "relay-ippo-*"), ("c", "relay-marft-*")):
        shutil.copytree(whole, tmp_path / name, ignore=shutil.ignore_patterns(left_out))
    a, b, c, both, one = (tmp_path / name for name in ("a", "b", "c", "both", "one"))
    assert compare.main(["--merge", str(a), str(b), "--out", str(both)]) == 0
    assert "marft - ippo" in (output := capsys.readouterr().out) and "2 of 2 runs are finished\n" in output
    assert without_times(both) == without_times(whole) and {p.name for p in both.iterdir()} >= {"report.html"}
    assert compare.main(["--merge", str(a), str(c), "--out", str(one)]) == 0
    assert "1 of 2 runs are finished; --resume with the options of" in capsys.readouterr().out
    assert compare.main(["--preset", str(preset), "--out", str(one), "--resume", "--workers", "1"]) == 0
    assert without_times(one) == without_times(whole)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b"], "--merge: expected --out FOLDER and no other option"),
        (
            ["a", "b", "--out", "c", "--seeds", "3"],
            "--merge: expected --out FOLDER and no other option, got --seeds too",
        ),
        (["a", "--out", "c"], "--merge a: expected two or more results folders, each once"),
        (["a", "b", "--out", "c"], "results folder a holds no grid.json: expected a folder of compare.py"),
    ],
)
def test_wrong_words_beside_merge_are_named(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert compare.main(["--merge", *words]) == 2
    assert capsys.readouterr().err == f"compare: {message}\n" and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_runs_writes_the_rows_and_tells_how_to_resume(
    tmp_path, whole, preset, number, code, monkeypatch, capsys
):
    """One run is finished, the other one is in the hands of a light worker when the signal comes."""
    out = tmp_path / "results"
    shutil.copytree(whole, out, ignore=shutil.ignore_patterns("relay-marft-*"))
    (out / "rows.jsonl").unlink()
    monkeypatch.setattr(workers, "_work", light_workers.send_a_row_and_hang)
    monkeypatch.setattr(ComparisonProgress, "report", lambda self, event: os.kill(os.getpid(), number))
    words = ["--preset", str(preset), "--out", str(out), "--workers", "1", "--resume"]
    monkeypatch.setattr(sys, "argv", ["benchmarks/compare.py", *words])
    assert compare.main(words) == code
    errors = capsys.readouterr().err
    assert errors.startswith(f"\nstopped; resume with: {interpreter()} ")
    assert errors.endswith(f"benchmarks/compare.py {' '.join(words)}\n")
    assert {row["kind"] for row in rows_of(out)} == {"comparison", "run", "train", "eval", "episodes"}
    assert multiprocessing.active_children() == []


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_real_process(tmp_path, preset, number, code):
    out = tmp_path / "results"
    process = start("--preset", preset, "--out", out, "--workers", "1")
    for line in process.stdout:
        if "relay ippo seed 0: update 0/4, sampled" in line:
            break
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    command = f"benchmarks/compare.py --preset {preset} --out {out} --workers 1 --resume"
    assert errors.startswith(f"{BEGUN}\nstopped; resume with: {interpreter()} ") and errors.endswith(f"{command}\n")
    assert {row["kind"] for row in rows_of(out)} >= {"comparison", "run", "eval"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_imports_is_one_line(tmp_path, preset, number):
    process = start("--preset", preset, "--out", tmp_path / "results")
    maps = Path(f"/proc/{process.pid}/maps")
    while "libtorch" not in maps.read_text():  # torch is being imported, and after it a good deal more
        time.sleep(0.005)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number and output == ""
    assert errors.startswith(f"{BEGUN}\nstopped; resume with: ") and errors.count("\n") == 3
    assert not (tmp_path / "results").exists()


def test_the_imports_are_announced_before_torch_is_imported():
    program = BLOCK_TORCH + "runpy.run_path('benchmarks/compare.py', run_name='__main__')\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("", f"{BEGUN}torch")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--preset", "quik"], "(did you mean 'quick'?)"),
        (["--arms", "ippo", "marfft"], "arm='marfft': expected one of ippo, "),
    ],
    ids=["preset", "arms"],
)
def test_names_are_validated_before_torch_is_imported(words, message):
    program = f"{BLOCK_TORCH}sys.argv[1:] = {words}\nrunpy.run_path('benchmarks/compare.py', run_name='__main__')\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.slow
def test_tasks_in_the_current_folder_are_found_also_by_workers(tmp_path):
    (tmp_path / "my_tasks").mkdir()
    (tmp_path / "my_tasks" / "count_v0.py").write_text(OWN_TASK)
    (tmp_path / "own.toml").write_text(
        'arms = ["untrained"]\nseeds = 1\nupdates = 0\nevaluation_items = 2\n'
        '[tasks.count]\nenvironment = "my_tasks.count_v0:count_v0"\n[decoding]\nmax_new_tokens = 2\n'
    )
    command = [sys.executable, ROOT / "benchmarks" / "compare.py", "--preset", "own.toml", "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_run_that_fails_is_recorded_with_its_traceback_and_the_others_go_on(tmp_path):
    """The broken task fails at a problem that no check before the first run reads."""
    broken = OWN_TASK.replace("return Problem(", "return 1 // (index < 70) and Problem(").replace('"count"', '"broken"')
    (tmp_path / "broken_v0.py").write_text(broken.replace("self.size = 4", "self.size = 80"))
    (tmp_path / "count_v0.py").write_text(OWN_TASK)
    (tmp_path / "own.toml").write_text(
        'arms = ["untrained"]\nseeds = 1\nupdates = 0\nevaluation_items = 80\n[decoding]\nmax_new_tokens = 2\n'
        '[tasks.broken]\nenvironment = "broken_v0:broken_v0"\n[tasks.count]\nenvironment = "count_v0:count_v0"\n'
    )
    command = [sys.executable, ROOT / "benchmarks" / "compare.py", "--preset", "own.toml", "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    out, failures = tmp_path / "results" / "own", "results/own/failures"
    assert done.returncode == 1, done.stderr
    assert f"broken untrained seed 0: FAILED; traceback in {failures}/broken-untrained-0.json\nZeroDiv" in done.stderr
    assert done.stderr.endswith(
        f"1 of the runs failed: their tracebacks are in {failures}/; --resume does them again from their last "
        "checkpoints\n"
    )
    (row,) = [row for row in load_rows(out) if row["kind"] == "failure"]
    assert (row["task"], row["arm"], row["seed"], row["update"]) == ("broken", "untrained", 0, 0)
    assert any("return 1 // (index < 70)" in line for line in row["traceback"])
    named = "FAILED: broken, untrained seed 0, last checkpoint after update 0: ZeroDivisionError: integer division"
    assert named in " ".join((out / "report.md").read_text().split())
    assert "return 1 // (index &lt; 70)" in (out / "report.html").read_text()
    assert "TASK count: 1 of 1 runs finished" in done.stdout
    (tmp_path / "broken_v0.py").write_text(OWN_TASK.replace("size = 4", "size = 80").replace('"count"', '"broken"'))
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list((out / "failures").iterdir()) == [] and "FAILED" not in (out / "report.md").read_text()


def test_help_imports_no_torch():
    names = ("compare", "report", "grading", "throughput")
    program = BLOCK_TORCH + (
        f"for name in {names}:\n"
        "    sys.argv = [name, '--help']\n"
        "    try: runpy.run_path(f'benchmarks/{name}.py', run_name='__main__')\n"
        "    except SystemExit as end: assert end.code == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.count("usage: ") == len(names)


def test_help_lists_the_arms(capsys):
    with pytest.raises(SystemExit):
        compare.parse(["--help"])
    assert ", ".join(ARMS) in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_killed_parent_leaves_no_workers_behind(tmp_path, preset):
    process = start("--preset", preset, "--out", tmp_path / "results", "--workers", "1")
    for line in process.stdout:
        if "update 0/4" in line:
            break
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert children
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while any(_runs(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_runs(pid) for pid in children)


def _runs(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
