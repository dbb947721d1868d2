"""Which runs a comparison is made of: tasks with their own values, learning rates, the head of a results folder."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.experiment import results_folder, script
from benchmarks.experiment.grid import Grid, GridError, load_preset, with_options
from benchmarks.experiment.results_folder import Results

RELAY = {"arguments": {"dataset": "relay"}}


def grid(**changes):
    return Grid(**{"arms": ("ippo", "marft"), "tasks": {"relay": RELAY}, "seeds": 2, **changes})


def rates(built):
    return [(r.arm, r.learner().learning_rate) for r in built.runs() if r.seed == 0]


def test_runs_go_seed_by_seed_over_tasks_arms_and_rates():
    built = grid(learning_rates=[1e-3, 3e-4], tasks={"a": RELAY, "b": RELAY})
    assert [r.seed for r in built.runs()] == [0] * 8 + [1] * 8
    assert [r.task for r in built.runs()][:8] == ["a"] * 4 + ["b"] * 4
    assert rates(built)[:4] == [("ippo", 1e-3), ("ippo", 3e-4), ("marft", 1e-3), ("marft", 3e-4)]


def test_a_task_overrides_values_and_is_laid_over_tables():
    task = {**RELAY, "updates": 7, "model": "tiny-report", "settings": {"critic_epochs": 4}}
    (run,) = grid(arms=("ippo",), seeds=1, tasks={"a": task}, settings={"critic_epochs": 1, "clip": 0.1}).runs()
    assert (run.updates, run.model) == (7, "tiny-report")
    assert (run.learner().critic_epochs, run.learner().clip) == (4, 0.1)


def test_an_option_goes_before_a_task_s_own_value():
    built = with_options(grid(tasks={"a": {**RELAY, "updates": 7}}), {"updates": 3, "model": None})
    assert {run.updates for run in built.runs()} == {3}
    built = with_options(
        grid(tasks={"a": {**RELAY, "learning_rates": {"ippo": [1.0], "marft": [2.0]}}}), {"learning_rates": [0.5]}
    )
    assert rates(built) == [("ippo", 0.5), ("marft", 0.5)]


def test_each_arm_may_have_rates_of_its_own_as_many_as_the_others():
    assert rates(grid(learning_rates={"ippo": [3e-4], "marft": [1e-3]})) == [("ippo", 3e-4), ("marft", 1e-3)]
    with pytest.raises(GridError, match=r"learning_rates: ippo 2, marft 1; expected the same number of trials"):
        grid(learning_rates={"ippo": [3e-4, 1e-3], "marft": [1e-3]})
    with pytest.raises(GridError, match=r"learning_rates: ippo 0, marft 1; expected the same number"):
        grid(learning_rates={"marft": [1e-3]})


def test_the_untrained_team_has_no_rate_and_one_run():
    built = grid(arms=("untrained", "ippo"), learning_rates=[1e-3, 3e-4])
    assert [r.arm for r in built.runs() if r.seed == 0] == ["untrained", "ippo", "ippo"]
    assert built.resolved()["tasks"]["relay"]["learning_rates"] == {"ippo": [1e-3, 3e-4]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": ("ippo", "ippo")}, "expected each once"),
        ({"seeds": "5"}, "seeds=5, arms="),
        ({"tasks": {"a/b": RELAY}}, "task 'a/b': expected letters"),
        ({"tasks": {"a": {**RELAY, "update": 3}}}, r"tasks.a has no key 'update' \(did you mean 'updates'\?\)"),
        ({"tasks": {"a": 3}}, "tasks.a=3: expected a table"),
        ({"learning_rates": [1e-3, 1e-3]}, "expected a list of different positive numbers"),
        ({"learning_rates": [0]}, "different positive numbers"),
        ({"learning_rates": {"marftt": [1e-3]}}, r"no key 'marftt' \(did you mean 'marft'\?\)"),
    ],
)
def test_what_cannot_be_is_named(changes, message):
    with pytest.raises(GridError, match=message):
        grid(**changes)


def test_cells_are_told_apart_by_their_rate(tmp_path):
    folder = Results(tmp_path)
    names = [folder.cell(run).name for run in grid(seeds=1, learning_rates=[1e-3, 3e-4]).runs()]
    assert names == ["relay-ippo-lr0.001-0", "relay-ippo-lr0.0003-0", "relay-marft-lr0.001-0", "relay-marft-lr0.0003-0"]


def test_a_resumed_folder_names_every_option_that_differs(tmp_path):
    folder = Results(tmp_path / "r")
    folder.open(grid(), resume=False)
    folder.add_session()
    folder.open(grid(), resume=True)
    folder.add_session()
    head = json.loads((tmp_path / "r" / "grid.json").read_text())
    assert len(head["sessions"]) == 2 and head["sessions"][0]["sources"]
    with pytest.raises(GridError, match=r"seeds was \[0, 1\], now \[0, 1, 2\]; tasks.relay.updates was 30, now 5: exp"):
        folder.open(replace(grid(), seeds=3, updates=5), resume=True)


def test_a_script_of_another_text_is_another_comparison(tmp_path):
    said = tmp_path / "said.txt"
    said.write_text("12")
    built = grid(scripted={"reasoner_0": str(said)})
    Results(tmp_path / "r").open(built, resume=False)
    Results(tmp_path / "r").open(built, resume=True)
    said.write_text("13")
    with pytest.raises(GridError, match=r"holds another comparison; tasks\.relay\.scripted_sha256\.reasoner_0 was "):
        Results(tmp_path / "r").open(built, resume=True)


def test_a_folder_that_is_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(GridError, match=r"holds no grid\.json"):
        Results(tmp_path / "mine").open(grid(), resume=True)
    (tmp_path / "mine" / "grid.json").write_text("{")
    with pytest.raises(GridError, match="cannot be read"):
        Results(tmp_path / "mine").open(grid(), resume=True)
    (tmp_path / "mine" / "grid.json").write_text('{"kind": "run", "config": {"arms": ["ippo"]}}')
    with pytest.raises(GridError, match="cannot be read"):  # of a version without sessions
        Results(tmp_path / "mine").open(grid(), resume=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(GridError, match=r"--out .*file: Not a directory; expected a folder to write to"):
        Results(tmp_path / "file").open(grid(), resume=False)


def test_one_comparison_at_a_time_in_a_folder(tmp_path):
    with Results(tmp_path / "r").locked(), pytest.raises(ValueError, match=r"r is in use by another process"):
        Results(tmp_path / "r").locked().__enter__()
    with Results(tmp_path / "r").locked():
        Results(tmp_path / "r").open(grid(), resume=False)


def test_a_folder_that_cannot_be_made_is_one_line():
    with pytest.raises(GridError, match=r"--out /proc/nowhere: .*; expected a folder to write to"):
        Results(Path("/proc/nowhere")).open(grid(), resume=False)


def test_a_disk_that_is_full_is_no_mistake_of_the_options(tmp_path, monkeypatch, capsys):
    """The disk's own error comes through, with the folder; compare.py says what to do. The rest is as before."""

    def full(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as a write raises it, without a name

    folder = Results(tmp_path / "r")
    folder.open(grid(), resume=False)
    monkeypatch.setattr(results_folder, "replace_file", full)
    for work in (folder.add_session, folder.merge, lambda: Results(tmp_path / "s").open(grid(), resume=False)):
        with pytest.raises(OSError, match=r"No space left on device: '.*/[rs]'"):
            work()
    assert script.run("compare", lambda: folder.merge() or 0, "go on with: compare.py --resume") == 1
    told = f"compare: {folder.folder}: No space left on device; make room, then go on with: compare.py --resume\n"
    assert capsys.readouterr().err == told


def test_rows_are_gathered_under_one_head_and_cut_lines_left_out(tmp_path):
    folder = Results(tmp_path)
    built = grid(arms=("ippo",), seeds=1)
    folder.open(built, resume=False)
    cell = folder.cell(built.runs()[0])
    cell.mkdir()
    config = built.runs()[0].resolved()
    lines = [{"kind": "run", "config": config, "config_hash": "x", "model": {"sha256": "y"}}, {"kind": "eval", "n": 1}]
    (cell / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "tra')
    folder.merge()
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["run", "cell", "eval"]
    assert rows[1]["model"] == {"sha256": "y"} and rows[1]["learning_rate"] == config["learner"]["learning_rate"]


def test_presets_of_one_s_own_may_have_all_keys(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('arms = ["ippo"]\nlearning_rates = [1e-3, 1e-4]\n[tasks.a]\nepisodes = 8\n')
    assert len(load_preset(str(path)).runs()) == 10
    path.write_text('arms = "ippo"\n[tasks.a]\n')
    with pytest.raises(GridError, match="arms='ippo': expected a list of names"):
        load_preset(str(path))
    path.write_text('arms = ["ippo"]\ntasks = 3\n')
    with pytest.raises(GridError, match="tasks=3: expected a table"):
        load_preset(str(path))
