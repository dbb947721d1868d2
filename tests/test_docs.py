"""The guides are executed: Python blocks run, commands parse, paths exist."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GUIDES = [ROOT / "README.md", *sorted(ROOT.glob("CONTRIBUTING.md")), *sorted((ROOT / "docs").glob("*.md"))]
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)


def blocks(guide, language):
    return re.findall(rf"```{language}\n(.*?)```", guide.read_text(), re.S)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda p: p.name)
def test_python_blocks_run_one_after_the_other(guide, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    with contextlib.redirect_stdout(io.StringIO()):
        for code in blocks(guide, "python"):
            exec(compile(code, guide.name, "exec"), names)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda p: p.name)
def test_commands_parse(guide):
    from benchmarks import compare, evaluate, report

    parsers = {"compare": compare.parse, "evaluate": evaluate.parse}
    for line in "\n".join(blocks(guide, "sh")).splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            assert words[1] in TARGETS, line
        elif words and words[0].endswith("python") and words[1:2] != ["-m"]:
            script = Path(words[1])
            assert (ROOT / script).is_file(), line
            if script.stem in parsers:
                parsers[script.stem](words[2:])
            else:
                assert script.stem == report.__name__.split(".")[-1] and len(words) == 3, line


@pytest.mark.parametrize("guide", GUIDES, ids=lambda p: p.name)
def test_every_path_a_guide_names_exists(guide):
    named = re.findall(r"`((?:marft_envs|baselines|benchmarks|tests|docs)/[\w./-]*)", guide.read_text())
    assert all((ROOT / path.rstrip("/")).exists() for path in named), named
