"""Merge of results folders: what is taken from which folder, and every difference that is refused by name."""

import json
import re
import shutil
from dataclasses import replace

import pytest

from baselines.runs.run_folder import head_row
from benchmarks.experiment.grid import Grid
from benchmarks.experiment.merge import merge
from benchmarks.experiment.presets import GridError
from benchmarks.experiment.results_folder import ResultsFolder
from benchmarks.report import write_report
from tests.benchmarks.made_rows import eval_row

GRID = Grid(arms=("ippo", "marft"), tasks={"relay": {"arguments": {"dataset": "relay"}}}, seeds=2, updates=2)
MODEL = {"name": "tiny", "revision": "v1", "sha256": "aa", "device": "cpu", "dtype": "float32", "quantization": "none"}
DATA = {"train": {"size": 9, "sha256": "bb"}, "test": {"size": 9, "sha256": "cc"}, "negative_control": 0.0}


def make(path, grid=GRID, chosen=".*", last=2):
    """Return a results folder whose runs, chosen by task-arm-seed, have rows and a checkpoint up to ``last``."""
    folder = ResultsFolder(path)
    folder.open(grid, resume=False, data=dict.fromkeys(grid.tasks, DATA))
    folder.record_session()
    for run in grid.runs():
        if re.fullmatch(chosen, f"{run.task}-{run.arm}-{run.seed}"):
            own = folder.run_folder(run)
            (own / "checkpoints" / f"{last:06d}").mkdir(parents=True)
            (own / "config.json").write_text(json.dumps(run.resolved()))
            solved = 3 + run.seed + (run.arm == "marft")
            evals = [eval_row(run.arm, run.seed, u, solved + u, run.task, learning_rate=1e-4) for u in range(last + 1)]
            rows = [head_row(run) | {"models": {"tiny": MODEL}, "pass_gib": 1.0}, *evals]
            (own / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder.write_rows()
    return folder


def change(file, before, after):
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def rows_file(folder, name="relay-ippo-lr0.0001-0"):
    return folder.folder / "runs" / name / "rows.jsonl"


def rows_of(path):
    return [json.loads(line) for line in (path / "rows.jsonl").read_text().splitlines()]


def test_runs_of_two_machines_become_one_comparison_that_can_be_resumed(tmp_path):
    a, b = make(tmp_path / "a", chosen=".*-0"), make(tmp_path / "b", chosen=".*-ippo-1")
    head = json.loads((b.folder / "grid.json").read_text())
    head["sessions"][0]["started"] = "2026-01-02 03:04:05"  # that of the other may be in the same second
    (b.folder / "grid.json").write_text(json.dumps(head))
    out = tmp_path / "new" / "merged"
    assert merge([a.folder, b.folder], out) == (
        "3 of 4 runs are finished; --resume with the options of the comparison does the others"
    )
    whole = make(tmp_path / "whole", chosen=".*-0|.*-ippo-1")
    assert [row for row in rows_of(out) if row["kind"] == "eval"] == [
        row for row in rows_of(whole.folder) if row["kind"] == "eval"
    ]
    merged = ResultsFolder(out)
    merged.open(GRID, resume=True, data={"relay": DATA})
    assert [merged.finished(run) for run in GRID.runs()] == [True, True, True, False]
    assert len(merged.head()["sessions"]) == 2 and merged.head()["config_hash"] == GRID.hash()
    assert "3 of 4 runs finished" in write_report(out)
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "new", "whole"}
    assert [path.name for path in out.parent.iterdir()] == ["merged"]  # no temporary folder is left


def test_arms_tasks_and_seeds_may_differ(tmp_path):
    more = {"relay": GRID.tasks["relay"], "other": GRID.tasks["relay"]}
    a = make(tmp_path / "a", replace(GRID, arms=("marft", "ippo")))
    b = make(tmp_path / "b", replace(GRID, arms=("untrained", "marft", "ippo"), tasks=more, seeds=3))
    with pytest.raises(GridError, match=r"no folder has task relay with arm magrpo, which another task has"):
        c = make(tmp_path / "c", replace(GRID, arms=("magrpo",), tasks={"other": more["other"]}))
        merge([a.folder, b.folder, c.folder], tmp_path / "no")
    merge([a.folder, b.folder], tmp_path / "merged")
    config = ResultsFolder(tmp_path / "merged").head()["config"]
    assert config["arms"] == ["untrained", "ippo", "marft"] and config["seeds"] == [0, 1, 2]
    built = replace(GRID, arms=("untrained", "ippo", "marft"), tasks=more, seeds=3)
    ResultsFolder(tmp_path / "merged").open(built, resume=True)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (
            replace(GRID, episodes=64),
            "tasks.relay.episodes is 128 in {a} and 64 in {b}: expected folders that differ in",
        ),
        (replace(GRID, updates=3), "tasks.relay.updates is 2 in {a} and 3 in {b}"),
        (replace(GRID, settings={"clip": 0.1}), "tasks.relay.learners.ippo.clip is 0.2 in {a} and 0.1 in {b}"),
        (replace(GRID, learning_rates=[1e-3]), "learning_rates.ippo is [0.0001] in {a} and [0.001] in {b}"),
    ],
)
def test_a_setting_that_differs_is_named_with_both_values(grid, message, tmp_path):
    a, b = make(tmp_path / "a").folder, make(tmp_path / "b", grid).folder
    with pytest.raises(GridError, match=re.escape(message.format(a=a, b=b))):
        merge([a, b], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        ("grid.json", '"sha256": "cc"', '"sha256": "dd"', 'problems.relay.test.sha256 is "cc" in {a} and "dd" in {b}'),
        ("grid.json", '"sources": "', '"sources": "0', r"sources is \w+ in {a} and 0\w+ in {b}"),
        ("grid.json", '"torch": "', '"torch": "0.', r"versions.torch is [\w.+]+ in {a} and 0[\w.+]+ and "),
        ("rows", '"marft_envs": "', '"marft_envs": "0.', r"versions.marft_envs is \S+ in {a} and 0\S+ in {b}"),
        ("rows", '"sha256": "aa"', '"sha256": "ee"', "models.relay.tiny.sha256 is aa in {a} and ee in {b}"),
        ("rows", '"revision": "v1"', '"revision": "v2"', "models.relay.tiny.revision is v1 in {a} and v2 in {b}"),
    ],
)
def test_other_problems_code_versions_or_models_are_named(file, before, after, message, tmp_path):
    a, b = make(tmp_path / "a", chosen=".*-ippo-0"), make(tmp_path / "b", chosen=".*-ippo-0")
    change(b.folder / file if file == "grid.json" else rows_file(b), before, after)
    where = {"a": re.escape(str(a.folder)), "b": re.escape(str(b.folder))}
    with pytest.raises(GridError, match=message.format(**where)):
        merge([a.folder, b.folder], tmp_path / "merged")


def test_a_run_in_both_folders_must_have_the_same_rows(tmp_path):
    a, b = make(tmp_path / "a"), make(tmp_path / "b")
    change(rows_file(b), '"hardware": "', '"hardware": "another ')
    change(rows_file(b), '"device": "cpu"', '"device": "cuda:0"')
    merge([a.folder, b.folder], tmp_path / "merged")
    change(rows_file(b), '"answers": 10', '"answers": 11')
    expected = (
        "run relay-ippo-lr0.0001-0 lies in both folders and differs in the eval row of update 0: answers is 10 in "
        f"{a.folder} and 11 in {b.folder}: expected the same rows"
    )
    with pytest.raises(GridError, match=re.escape(expected)):
        merge([a.folder, b.folder], tmp_path / "again")


def test_of_an_unfinished_and_a_finished_run_the_finished_one_is_taken(tmp_path):
    a, b = make(tmp_path / "a", chosen=".*-0", last=1), make(tmp_path / "b", chosen=".*-ippo-0")
    with rows_file(a).open("a") as file:
        file.write('{"kind": "eva')  # being written when the run was killed
    ippo, marft = GRID.runs()[:2]
    for run in (ippo, marft):
        a.record_failure(run, "no memory", ["Traceback", "no memory"])
    merge([a.folder, b.folder], tmp_path / "merged")
    merged = ResultsFolder(tmp_path / "merged")
    assert merged.finished(ippo) and merged.last_checkpoint(marft) == 1
    assert [(row["arm"], row["update"]) for row in rows_of(merged.folder) if row["kind"] == "failure"] == [("marft", 1)]


def test_the_larger_limit_of_a_prompt_is_kept(tmp_path):
    a = make(tmp_path / "a", replace(GRID, decoding={"max_prompt_tokens": 200}), chosen=".*-0")
    b = make(tmp_path / "b", replace(GRID, decoding={"max_prompt_tokens": 100}), chosen=".*-1")
    for n, folders in enumerate(([a.folder, b.folder], [b.folder, a.folder])):
        merge(folders, tmp_path / str(n))
        limit = ResultsFolder(tmp_path / str(n)).head()["config"]["tasks"]["relay"]["decoding"]["max_prompt_tokens"]
        assert limit == 200


def test_folders_that_cannot_be_used_are_named(tmp_path):
    a, b = make(tmp_path / "a").folder, make(tmp_path / "b").folder
    with pytest.raises(GridError, match="expected two or more results folders, each once"):
        merge([a, b, tmp_path / "b" / ".." / "a"], tmp_path / "merged")
    with pytest.raises(GridError, match=f"--out {a} exists: expected a new or empty folder"):
        merge([a, b], a)
    with ResultsFolder(b).locked(), pytest.raises(ValueError, match="b is in use by another process"):
        merge([a, b], tmp_path / "merged")
    (b / "grid.json").write_text("{")
    with pytest.raises(GridError, match=r"grid\.json: cannot be read"):
        merge([a, b], tmp_path / "merged")
    shutil.rmtree(b)
    with pytest.raises(GridError, match=r"b holds no grid\.json"):
        merge([a, b], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
