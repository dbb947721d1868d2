"""report.py: every figure is rebuilt from rows.jsonl alone, and every broken folder is one line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import report
from tests.benchmarks.made_rows import change_rows, make_rows, write_rows

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    return write_rows(tmp_path / "results", make_rows())


def run_script(*arguments, cwd):
    command = [sys.executable, str(ROOT / "benchmarks" / "report.py"), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_every_figure_is_rebuilt_from_the_rows_alone(folder):
    text = report.write_report(folder)
    before = (folder / "summary.json").read_bytes()
    page = (folder / "report.html").read_bytes()
    for name in ("summary.json", "report.md", "report.html", "curve_relay.png"):
        (folder / name).unlink()
    assert report.write_report(folder) == text
    assert (folder / "summary.json").read_bytes() == before and (folder / "report.html").read_bytes() == page
    assert text in (folder / "report.md").read_text() and "(curve_relay.png)" in (folder / "report.md").read_text()
    assert (folder / "curve_relay.png").read_bytes().startswith(b"\x89PNG")


def test_a_comparison_without_finished_runs_is_reported(tmp_path):
    folder = write_rows(tmp_path / "r", [row for row in make_rows(task="a/b") if row.get("update", 0) < 10])
    text = report.write_report(folder)
    assert "0 of 6 runs finished" in text and (folder / "curve_a-b.png").exists()


def test_a_comparison_whose_runs_all_failed_is_reported(tmp_path):
    label = {"arm": "ippo", "task": "relay", "seed": 3, "learning_rate": 1e-3, "update": 0}
    error = {"error": "ValueError: <b>", "traceback": ["Traceback", "  x()", "ValueError: <b>"], "failed": "2026"}
    folder = write_rows(tmp_path / "r", [make_rows()[0], {"kind": "failure", **label, **error}])
    sentence = "relay, ippo lr 0.001 seed 3, last checkpoint after update 0: ValueError: "
    assert f"FAILED: {sentence}<b>" in " ".join(report.write_report(folder).split())
    page = (folder / "report.html").read_text()
    assert f"<summary>Failed: {sentence}&lt;b&gt;</summary><pre>Traceback\n  x()\nValueError" in page


def test_different_items_cannot_be_paired(tmp_path, capsys):
    def other_items(row):
        if row["arm"] == "marft":
            row["item_index"] = [index + 100 for index in row["item_index"]]

    folder = write_rows(tmp_path / "r", change_rows(make_rows(), "eval", other_items))
    assert report.main([str(folder)]) == 2
    assert "seed 0: marft and ippo share no evaluation item" in capsys.readouterr().err


def test_a_half_written_last_line_is_left_out_and_noted(tmp_path):
    folder = write_rows(tmp_path / "r", make_rows(), tail='{"kind": "eval", "arm": "ip')
    text = report.write_report(folder)
    number = len(make_rows()) + 1
    assert f"NOTE: line {number}, the last of rows.jsonl, is half-written and was left out" in text


def test_the_script_runs_from_any_folder_and_loads_no_torch(folder, tmp_path):
    done = run_script(folder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "COMPARISON OF LEARNERS" in done.stdout and str(folder) in done.stdout.splitlines()[-1]
    unwanted = ("torch", "matplotlib.pyplot", "pandas")
    code = f"import sys, benchmarks.report; print([m for m in {unwanted} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_a_broken_folder_is_one_line_and_exit_code_2(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    (tmp_path / "none").mkdir()
    lines = [json.dumps(row) for row in make_rows()]
    cases = {
        tmp_path / "absent": "does not exist",
        tmp_path / "file": "is not a folder",
        tmp_path / "none": "holds no rows.jsonl",
        write_rows(tmp_path / "empty", []): "is empty",
        write_rows(tmp_path / "head", make_rows()[:1]): "has no row of kind 'eval'",
        write_rows(tmp_path / "middle", [], tail="\n".join([lines[0], "{broken", *lines[1:]])): "line 2 is not JSON",
    }
    for folder, words in cases.items():
        assert report.main([str(folder)]) == 2
        error = capsys.readouterr().err
        assert words in error and str(folder) in error and error.count("\n") == 1


def test_module_names_shadow_nothing():
    shadowed = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} & set(sys.stdlib_module_names)
    assert not shadowed, f"these modules in benchmarks/ hide the standard library's when a script runs: {shadowed}"
