"""Results folder of a comparison: what is resumed, what is refused, and how rows.jsonl is gathered."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from baselines.command_line import run_command
from benchmarks.analysis.rows_schema import check_row
from benchmarks.experiment import results_folder
from benchmarks.experiment.grid import Grid
from benchmarks.experiment.presets import GridError
from benchmarks.experiment.results_folder import ResultsFolder

RELAY = {"arguments": {"dataset": "relay"}}


def grid(**changes):
    return Grid(**{"arms": ("ippo", "marft"), "tasks": {"relay": RELAY}, "seeds": 2, **changes})


def test_the_folders_of_runs_differ_by_their_rate(tmp_path):
    folder = ResultsFolder(tmp_path)
    names = [folder.run_folder(run).name for run in grid(seeds=1, learning_rates=[1e-3, 3e-4]).runs()]
    assert names == ["relay-ippo-lr0.001-0", "relay-ippo-lr0.0003-0", "relay-marft-lr0.001-0", "relay-marft-lr0.0003-0"]


def test_a_resumed_folder_names_every_option_that_differs(tmp_path):
    folder = ResultsFolder(tmp_path / "r")
    folder.open(grid(), resume=False)
    folder.record_session()
    folder.open(grid(), resume=True)
    folder.record_session()
    head = json.loads((tmp_path / "r" / "grid.json").read_text())
    assert len(head["sessions"]) == 2 and head["sessions"][0]["sources"]
    with pytest.raises(GridError, match=r"seeds was \[0, 1\], now \[0, 1, 2\]; tasks.relay.updates was 30, now 5: exp"):
        folder.open(replace(grid(), seeds=3, updates=5), resume=True)


def test_a_comparison_is_resumed_with_the_settings_that_a_run_may_be_resumed_with(tmp_path):
    folder = ResultsFolder(tmp_path / "r")
    folder.open(grid(decoding={"max_prompt_tokens": 100}), resume=False)
    longer = grid(decoding={"max_prompt_tokens": 200}, memory_gib=4.0, training_rows=8, gradient_checkpointing="on")
    assert longer.hash() == grid().hash()
    folder.open(longer, resume=True)
    head = json.loads((tmp_path / "r" / "grid.json").read_text())
    assert head["config"] == json.loads(json.dumps(longer.resolved())) and head["config_hash"] == longer.hash()
    with pytest.raises(GridError, match=r"max_prompt_tokens=100: expected at least 200, the limit of task relay in "):
        folder.check(grid(decoding={"max_prompt_tokens": 100}), resume=True)


def test_a_comparison_with_another_script_of_an_agent_is_another_one(tmp_path):
    script_file = tmp_path / "replies.txt"
    script_file.write_text("12")
    built = grid(scripted={"reasoner_0": str(script_file)})
    ResultsFolder(tmp_path / "r").open(built, resume=False)
    ResultsFolder(tmp_path / "r").open(built, resume=True)
    script_file.write_text("13")
    with pytest.raises(GridError, match=r"holds another comparison; tasks\.relay\.scripted_sha256\.reasoner_0 was "):
        ResultsFolder(tmp_path / "r").open(built, resume=True)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(GridError, match=r"holds no grid\.json"):
        ResultsFolder(tmp_path / "mine").open(grid(), resume=True)
    (tmp_path / "mine" / "grid.json").write_text("{")
    with pytest.raises(GridError, match="cannot be read"):
        ResultsFolder(tmp_path / "mine").open(grid(), resume=True)
    (tmp_path / "mine" / "grid.json").write_text('{"kind": "comparison", "config": {"arms": ["ippo"]}}')
    with pytest.raises(GridError, match="cannot be read"):  # of another version, without sessions
        ResultsFolder(tmp_path / "mine").open(grid(), resume=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(GridError, match=r"--out .*file: Not a directory; expected a writable folder"):
        ResultsFolder(tmp_path / "file").open(grid(), resume=False)


def test_one_comparison_at_a_time_in_a_folder(tmp_path):
    with ResultsFolder(tmp_path / "r").locked(), pytest.raises(ValueError, match=r"r is in use by another process"):
        ResultsFolder(tmp_path / "r").locked().__enter__()
    with ResultsFolder(tmp_path / "r").locked():
        ResultsFolder(tmp_path / "r").open(grid(), resume=False)


def test_a_folder_that_cannot_be_made_is_named():
    with pytest.raises(GridError, match=r"--out /proc/nowhere: .*; expected a writable folder"):
        ResultsFolder(Path("/proc/nowhere")).open(grid(), resume=False)


def test_a_full_disk_is_not_a_wrong_option(tmp_path, monkeypatch, capsys):
    """The error of the disk is raised with the name of the folder, and compare.py prints what to do."""

    def full(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as a write raises it, without a file name

    folder = ResultsFolder(tmp_path / "r")
    folder.open(grid(), resume=False)
    monkeypatch.setattr(results_folder, "replace_file", full)
    for work in (
        folder.record_session,
        folder.write_rows,
        lambda: ResultsFolder(tmp_path / "s").open(grid(), resume=False),
    ):
        with pytest.raises(OSError, match=r"No space left on device: '.*/[rs]'"):
            work()
    assert run_command("compare", folder.write_rows, advice="resume with: compare.py --resume") == 1
    line = f"compare: {folder.folder}: No space left on device; make room, then resume with: compare.py --resume\n"
    assert capsys.readouterr().err == line


def test_rows_are_gathered_under_one_head_without_incomplete_lines(tmp_path):
    folder = ResultsFolder(tmp_path)
    built = grid(arms=("ippo",), seeds=1)
    folder.open(built, resume=False)
    run = folder.run_folder(built.runs()[0])
    run.mkdir()
    config = built.runs()[0].resolved()
    lines = [{"kind": "run", "config": config, "config_hash": "x", "model": {"sha256": "y"}}, {"kind": "eval", "n": 1}]
    (run / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "tra')
    folder.write_rows()
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["comparison", "run", "eval"]
    assert rows[1]["model"] == {"sha256": "y"} and rows[1]["learning_rate"] == config["learner"]["learning_rate"]
    assert "config" not in rows[1] and list(rows[1])[:5] == ["kind", "arm", "task", "seed", "learning_rate"]


def test_transcripts_follow_the_rows_of_their_run(tmp_path):
    folder = ResultsFolder(tmp_path)
    built = grid(arms=("ippo",), seeds=1)
    folder.open(built, resume=False)
    run = folder.run_folder(built.runs()[0])
    (run / "transcripts").mkdir(parents=True)
    (run / "rows.jsonl").write_text(json.dumps({"kind": "run", "config": built.runs()[0].resolved()}) + "\n")
    header = {"kind": "header", "schema": "marft-trace/1"}
    for update, dataset, tail in ((0, "", '{"kind": "epi'), (5, "gsm8k", "")):
        about = {"update": update, "mode": "greedy", "dataset": dataset, "items": 9}
        lines = [header | {"notes": about}, {"kind": "episode", "index": 3}]
        text = "".join(json.dumps(line) + "\n" for line in lines) + tail
        (run / "transcripts" / f"{update:06d}.jsonl").write_text(text)
    (run / "transcripts" / "000010.jsonl").write_text('{"kind": "hea')  # killed before the first episode
    folder.write_rows()
    _, _, *rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [check_row(row, "row")["task"] for row in rows] == ["relay", "gsm8k (trained on relay)"]
    assert [row["update"] for row in rows] == [0, 5] and rows[0]["learning_rate"] is not None
    assert rows[0]["episodes"] == [{"kind": "episode", "index": 3}] and rows[0]["header"]["notes"]["items"] == 9


def test_a_malformed_row_of_a_run_is_named_with_file_and_line(tmp_path):
    folder = ResultsFolder(tmp_path)
    built = grid(arms=("ippo",), seeds=1)
    folder.open(built, resume=False)
    path = folder.run_folder(built.runs()[0]) / "rows.jsonl"
    path.parent.mkdir()
    for line, message in (("{broken", " is not JSON"), ("[1]", ": expected an object with a 'kind'")):
        path.write_text(f'{{"kind": "eval"}}\n{line}\n')
        with pytest.raises(ValueError, match=rf"{path}, line 2{message}"):
            folder.write_rows()
