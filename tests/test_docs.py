"""The guides are executed: Python blocks run, commands parse, paths exist; CONTRIBUTING.md is followed."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import marft_envs
from marft_envs import __main__
from marft_envs.registry import entry_points

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "CONTRIBUTING.md"
GUIDES = [
    *(ROOT / name for name in ("README.md", "AGENTS.md", "SECURITY.md")),
    RECIPES,
    *sorted((ROOT / "docs").rglob("*.md")),
]
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
WORKS = ("marft_envs", "baselines", "benchmarks", "examples", "tests", "docs", "pyproject.toml", "Makefile")


def all_blocks(guide):
    """(language, text) of each fenced block, in order."""
    return re.findall(r"```(\w+)\n(.*?)```", guide.read_text(), re.S)


def blocks(guide, language):
    return [text for found, text in all_blocks(guide) if found == language]


@pytest.mark.parametrize("guide", [guide for guide in GUIDES if guide != RECIPES], ids=lambda p: p.name)
def test_python_blocks_run_one_after_the_other(guide, monkeypatch, tmp_path, clean_registry):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    with contextlib.redirect_stdout(io.StringIO()):
        for code in blocks(guide, "python"):
            exec(compile(code, guide.name, "exec"), names)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda p: p.name)
def test_commands_parse(guide):
    from baselines import evaluate, export, play, train
    from benchmarks import compare, critic, grading, report, throughput

    parsers = {m.__name__.split(".")[-1]: m.parse for m in (compare, critic, grading, throughput)}
    modules = {"marft_envs": __main__.parse} | {f"baselines.{m.__name__.split('.')[-1]}": m.parse
                                                for m in (evaluate, export, play, train)}  # fmt: skip
    for line in "\n".join(blocks(guide, "sh")).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            assert words[1] in TARGETS, line
        elif words and words[0].endswith("python") and words[1:2] == ["-m"] and words[2] in modules:
            modules[words[2]](words[3:])
        elif words and words[0].endswith("python") and words[1:2] != ["-m"]:
            script = Path(words[1])
            assert (ROOT / script).is_file(), line
            if script.stem in parsers:
                parsers[script.stem](words[2:])
            else:
                assert (script.stem, len(words)) == (report.__name__.split(".")[-1], 3), line


def test_the_team_files_of_the_guides_are_teams():
    pytest.importorskip("yaml")
    files = [text for guide in GUIDES for text in blocks(guide, "yaml") if "roles:" in text]
    assert files and all(marft_envs.Team.from_yaml(text).agents for text in files)


def test_make_help_lists_every_target():
    listed = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [line.split()[:2] for line in listed.splitlines()] == [["make", target] for target in TARGETS]
    assert all(len(line.split()) > 2 for line in listed.splitlines())


@pytest.mark.parametrize("guide", GUIDES, ids=lambda p: p.name)
def test_every_path_a_guide_names_exists(guide):
    named = re.findall(r"`((?:marft_envs|baselines|benchmarks|examples|tests|docs)/[\w./-]*)", guide.read_text())
    assert all((ROOT / path.rstrip("/")).exists() for path in named), named


def test_the_recipes_are_each_under_a_page():
    recipes = RECIPES.read_text().split("\n## ")[1:]
    assert [recipe.splitlines()[0] for recipe in recipes] == ["A task", "A team", "A learner"]
    assert all(len(recipe.splitlines()) <= 66 for recipe in recipes)  # a page of A4


@pytest.mark.slow
def test_the_recipes_are_followed_to_the_letter(tmp_path):
    """Every block of CONTRIBUTING.md, from top to bottom, in a copy of the repository."""
    for name in WORKS:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    before = {path.relative_to(tmp_path).as_posix() for path in _files(tmp_path)}
    for language, text in all_blocks(RECIPES):
        place = re.match(r"# (add|write) to (\S+)\n", text)
        if place:
            with (tmp_path / place[2]).open("a" if place[1] == "add" else "w") as file:
                file.write(text)
        elif language == "toml":
            assert list(tomllib.loads(text)["project"]["entry-points"]) == [entry_points.GROUP]
        else:
            command = ["bash", "-ec", text] if language == "sh" else [sys.executable, "-c", text]
            run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=_environment())
            assert run.returncode == 0, f"{text}\n{run.stdout}\n{run.stderr}"
    assert "word_sum_v0" in (tmp_path / "docs" / "environments" / "word_sum_v0.md").read_text()
    assert "marft_narrow" in (tmp_path / "results" / "narrow" / "report.md").read_text()
    left = {path.relative_to(tmp_path).as_posix() for path in _files(tmp_path)} - before
    assert {path for path in left if not path.startswith("results/narrow/")} == {
        "marft_envs/word_sum_v0.py", "docs/environments/word_sum_v0.md",
        "docs/environments/word_sum_v0.validation.json", "narrow.toml",
    }  # fmt: skip


def _files(folder):
    """The files below ``folder`` that git would see."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in found if not re.search(r"__pycache__|/\.[a-z_]+cache/|/\.hypothesis/", str(path))]


def _environment():
    """Ours, with this Python first, and without what would lead back to this repository."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONPATH": ""}
