"""Every preset: its header, the names in it, and its line in the guide; presets for GPUs on a machine without one."""

import json
import re
from pathlib import Path

import pytest
import torch

from benchmarks import compare
from benchmarks.experiment import comparison
from benchmarks.experiment.grid import load_preset
from benchmarks.experiment.presets import PRESETS, GridError, preset_names, preset_path
from tests.benchmarks.experiment.published_rows import write_published_rows

pytestmark = pytest.mark.usefixtures("clean_registry")  # a preset may name a module that registers environments
GUIDE = Path(__file__).parents[3] / "docs" / "comparing.md"
FOR_GPUS = [name for name in preset_names() if name.startswith("gpu/")]
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="a machine without a GPU is needed")


@pytest.fixture
def published_rows(tmp_path, monkeypatch):
    """MARFT_DATA names a folder with a few rows of each data set."""
    monkeypatch.setenv("MARFT_DATA", str(write_published_rows(tmp_path / "data")))


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """MARFT_DATA names an empty folder, and the hub does not answer."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("MARFT_DATA", str(tmp_path / "empty"))

    def no_answer(*_, **__):
        raise ConnectionError("no network")

    monkeypatch.setattr("huggingface_hub.HfApi", no_answer)


def test_presets_are_found_in_sub_folders():
    names = preset_names()
    assert {"quick", "gpu/math_duo"} <= set(names) and names.index("quick") < names.index("gpu/math_duo")
    assert preset_path("gpu/math_duo") == PRESETS / "gpu" / "math_duo.toml"
    with pytest.raises(GridError, match=r"gpu/math_duo.*did you mean 'gpu/math_duo'"):
        preset_path("math_duo")


@pytest.mark.parametrize("name", preset_names())
def test_every_name_in_a_preset_exists(name, published_rows):
    grid = load_preset(name)
    comparison.check_tasks(grid)
    assert len(grid.runs()) == sum(
        max(1, len(rates)) for task in grid.tasks for rates in grid._rates(task).values()
    ) * grid.seeds  # fmt: skip


@pytest.mark.parametrize("name", preset_names())
def test_the_header_of_a_preset_describes_what_it_needs(name):
    header = preset_path(name).read_text().split("\narms")[0]
    assert all(line.startswith("#") for line in header.splitlines())
    assert "# Hardware: " in header and f"Command: python benchmarks/compare.py --preset {name}" in header
    (time,) = re.findall(r"Time: (.*(?:\n# .*)?)", header)
    assert re.search(r"\d+ min|\d+ s|not measured; --dry-run", time), time


@pytest.mark.parametrize("name", preset_names())
def test_the_guide_has_the_question_of_each_preset(name):
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    assert any(f"`{name}`" in line.split("|")[1] for line in rows)


@without_gpu
@pytest.mark.parametrize("name", FOR_GPUS)
def test_the_plan_of_a_preset_for_gpus_fits_its_memory(name, offline, capsys):
    assert compare.main(["--preset", name, "--dry-run"]) == 0
    out = capsys.readouterr().out
    grid = load_preset(name)
    for task in grid.tasks:
        for arm in grid.arms:
            assert re.search(rf"^{task} +{arm} +{grid.seeds} .* [1-9]\d*\.\d$", out, re.M), "no line with its memory"
    assert "all tasks and arms: device='cuda': " in out
    for dataset in {run.environment_arguments["dataset"] for run in grid.runs()}:
        assert f"all tasks and arms: dataset='{dataset}', split='train' was not found. Tried: MARFT_DATA" in out
    assert "the memory plan has a peak" not in out
    assert f"{len(grid.runs())} runs: at most" in out and f"{len(grid.runs())} of them were not measured" in out


@without_gpu
def test_the_plan_says_if_the_memory_does_not_hold_a_run(offline, capsys):
    command = ["--preset", "gpu/math_duo", "--dry-run"]
    assert compare.main([*command, "--set", "memory_gib=24"]) == 0
    assert "and the run may use 24.0 GiB" in capsys.readouterr().out
    assert compare.main([*command, "--set", "memory_gib=2"]) == 2
    assert "memory_gib=2: expected more than" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpu/math_duo", "gpu/code_trio"])
def test_a_preset_for_gpus_learns_with_a_small_model_in_its_place(name, published_rows, tmp_path):
    small = ["episodes=4", "decoding.max_new_tokens=4", "decoding.max_prompt_tokens=128", "memory_gib=2"]
    command = ["--preset", name, "--model", "tiny", "--device", "cpu", "--seeds", "1", "--updates", "2", "--items", "4",
               "--workers", "1", "--out", str(tmp_path / "r")]  # fmt: skip
    assert compare.main([*command, *(word for setting in small for word in ("--set", setting))]) == 0
    rows = [json.loads(line) for line in (tmp_path / "r" / "rows.jsonl").read_text().splitlines()]
    grid = load_preset(name)
    found = {(r["task"], r["arm"], r["update"]) for r in rows if r["kind"] == "train"}
    assert found == {(task, arm, update) for task in grid.tasks for arm in grid.arms for update in (1, 2)}
    transfers = {dataset for run in grid.runs() for dataset in run.transfer}
    evaluated = {row["task"] for row in rows if row["kind"] == "eval"}
    assert evaluated == {
        *grid.tasks, *(f"{dataset} (trained on {task})" for dataset in transfers for task in grid.tasks)
    }  # fmt: skip
