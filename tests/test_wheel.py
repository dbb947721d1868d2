"""The wheel: what is in it; installed alone it plays offline; each extra installs and works; without it, it is named.

Needs the package index. One fresh environment, to which the extras come in order.
"""

import re
import subprocess
import sys
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

import marft_envs

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("one environment for all extras")]
ROOT = Path(__file__).resolve().parents[1]
OFFLINE = """
import socket

def refuse(*_):
    raise OSError("the test is offline")

socket.socket.connect = refuse
"""
PLAY = """
import importlib.metadata, sys
import marft_envs
from marft_envs.batch import BatchRunner

for arguments in ({}, {"dataset": "relay", "team": "trio"}):
    env = marft_envs.math_v0.env(**arguments)
    env.reset(seed=0)
    for agent in env.agent_iter():
        _, _, terminated, truncated, _ = env.last()
        env.step(None if terminated or truncated else f"\\\\boxed{{{env.unwrapped.problem.gold}}}")
    print(env.unwrapped.outcome.score)
installed = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
print(sorted(installed & {"torch", "transformers", "pyarrow", "scipy", "datasets", "pyyaml"}))
print(marft_envs.__file__)
"""
CHECK = """
import sys
sys.path.insert(0, ".")
import test_coins_v0
test_coins_v0.test_task()
test_coins_v0.test_environment()
print("kept")
"""
LOAD = """
import pyarrow, pyarrow.parquet
table = pyarrow.table({"question": ["How much is 1 + 1?"], "answer": ["1 + 1 = 2. #### 2"]})
pyarrow.parquet.write_table(table, "test.parquet")
from marft_envs.mathematics import datasets
print(datasets.load("gsm8k", path="test.parquet").problem(0).gold)
"""
LOAD_WITHOUT = """
from pathlib import Path
from marft_envs.mathematics import datasets
Path("rows.parquet").touch()
datasets.load("gsm8k", path="rows.parquet")
"""
TRAIN = """
from baselines.train import RunConfig, train
rows = []
numbers = {"updates": 1, "episodes": 8, "evaluation_items": 4}
config = RunConfig(arm="marft", task="relay", environment_arguments={"dataset": "relay"}, **numbers)
train(config, rows.append, folder="run")
from baselines import evaluate, export
assert (evaluate.main(["run"]), export.main(["run", "--out", "team"])) == (0, 0)
print(len([row for row in rows if row["kind"] == "train"]))
"""
FOUR_BIT = """
from baselines.models.load import load_model
loaded = load_model("tiny", quantization="4bit")
print(loaded.model.is_loaded_in_4bit)
"""
COMPARE = f"""
import runpy, sys
sys.argv = "compare.py --preset quick --seeds 1 --updates 0 --items 4 --out results --workers 1".split()
sys.path[0] = {str(ROOT / "benchmarks")!r}
if __name__ == "__main__":
    runpy.run_path({str(ROOT / "benchmarks" / "compare.py")!r}, run_name="__main__")
"""
TOOLS = """
import importlib, shutil, sys
from pathlib import Path
for name in ("pytest", "hypothesis", "importlinter"):
    importlib.import_module(name)
print([tool for tool in ("ruff", "mypy", "lint-imports") if not (Path(sys.executable).parent / tool).is_file()])
"""
TEAM = """
from marft_envs import Team
print(Team.from_yaml("roles:\\n  a_0: {instructions: Hm.}\\n").agents)
"""
SYMBOLIC = """
from marft_envs.mathematics import grade
if __name__ == "__main__":
    verdict = grade(r"\\boxed{\\sin^2 x}", r"1-\\cos^2 x")
    print(verdict.outcome, verdict.reason)
"""
# extra: (a program that works with it, the last line it prints, a program that without it must name it)
FEATURES = {
    "yaml": (TEAM, "('a_0',)", TEAM),
    "math": (SYMBOLIC, "correct", SYMBOLIC),
    "data": (LOAD, "2", LOAD_WITHOUT),
    "train": (TRAIN, "1", "import baselines; baselines.RunConfig"),
    "quantization": (FOUR_BIT, "True", None),  # it needs torch, too, which the other extra names
    "bench": (COMPARE, "Results: results/ (report.html, report.md, rows.jsonl, summary.json, curve_*.png)", None),
    "tracking": ("import tensorboard; print(1)", "1", None),
    "wandb": ("import wandb; print(1)", "1", None),
    "trackio": ("import trackio; print(1)", "1", None),
    "docs": ("import material, mkdocstrings; print(1)", "1", None),
    "browser": ("import axe_playwright_python, playwright; print(1)", "1", None),
    "dev": (TOOLS, "[]", None),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this working tree."""
    folder = tmp_path_factory.mktemp("wheel")
    pip(sys.executable, "wheel", str(ROOT), "--no-deps", "--wheel-dir", str(folder))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The Python of a fresh environment with the wheel and its base dependencies."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True)
    executable = folder / "bin" / "python"
    pip(executable, "install", str(wheel))
    return executable


def pip(python, *words):
    command = [python, "-m", "pip", "-q", "--disable-pip-version-check", *words]
    pins = ["-c", str(ROOT / "constraints.txt")] if words[0] == "install" else []
    done = subprocess.run([*command, *pins], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(python, program, folder):
    (folder / "program.py").write_text(OFFLINE + program)
    return subprocess.run([python, "-I", "program.py"], capture_output=True, text=True, cwd=folder)


def files_of(wheel):
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def metadata_of(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    return HeaderParser().parsestr(archive.read(name).decode())


def test_it_holds_both_packages_whole_and_nothing_else(wheel):
    packages = [path for folder in ("marft_envs", "baselines") for path in (ROOT / folder).rglob("*")]
    kept = {p.relative_to(ROOT).as_posix() for p in packages if p.is_file() and "__pycache__" not in p.parts}
    assert files_of(wheel) == kept
    assert {
        "baselines/models/tiny/model.safetensors",
        "baselines/models/tiny/chat_template.jinja",
        "baselines/models/tiny/README.md",
    } <= kept
    assert wheel.stat().st_size < 5e6


def test_its_version_is_the_packages_and_its_base_is_small(wheel):
    metadata = metadata_of(wheel)
    assert metadata["Version"] == marft_envs.__version__
    assert re.findall("^version", (ROOT / "pyproject.toml").read_text(), re.M) == [], (
        "it lives in marft_envs/__init__.py"
    )
    base = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert {re.split("[<>=]", line)[0] for line in base} == {"numpy", "gymnasium", "pettingzoo", "tqdm"}


def test_every_extra_has_a_test(wheel):
    assert set(metadata_of(wheel).get_all("Provides-Extra")) == set(FEATURES)


def test_alone_it_plays_offline(python, tmp_path):
    done = run(python, PLAY, tmp_path)
    lines = done.stdout.splitlines()
    assert lines[:3] == ["1.0", "1.0", "[]"], done.stderr
    assert Path(lines[3]).is_relative_to(python.parent.parent)


def test_alone_it_lists_checks_and_begins_a_task(python, tmp_path):
    for words in (["list"], ["new-task", "coins"]):
        done = subprocess.run([python, "-m", "marft_envs", *words], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    done = run(python, CHECK, tmp_path)
    assert done.stdout.strip() == "kept", done.stderr


@pytest.mark.parametrize("extra", FEATURES)
def test_an_extra_is_named_where_it_is_missing_and_works_once_installed(extra, python, wheel, tmp_path):
    program, expected, without = FEATURES[extra]
    if without:
        told = run(python, without, tmp_path)
        assert f"pip install '.[{extra}]'" in told.stdout + told.stderr
    pip(python, "install", f"{wheel}[{extra}]")
    done = run(python, program, tmp_path)
    assert done.stdout.strip().splitlines()[-1:] == [expected], done.stdout + done.stderr
