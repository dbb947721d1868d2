"""``python -m marft_envs new-task NAME``: the file of a task and its test, which pass as they are."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from marft_envs.registry.registry import is_known, names

TASK = Template('''\
"""The task is this one file; importing it makes `marft_envs.${name}_v0.env()`."""

from typing import Literal

import numpy as np

from marft_envs import Problem, Task, Verdict, register


@register("$name", version=0, team="duo")
class $Class(Task):
    """Add the two numbers. Reply with the sum alone.

    This docstring is the doc page; its first paragraph also tells the agents what to do.

    Data: made here, 10,000 problems; the splits share none.

    Version history: v0, first version.
    """

    def __init__(self, *, split: Literal["train", "test"] = "train") -> None:
        numbers = np.random.default_rng(0).permutation(10_000)
        self.numbers = numbers[:8_000] if split == "train" else numbers[8_000:]
        self.size = len(self.numbers)

    def problem(self, index: int) -> Problem:
        a, b = divmod(self.numbers[index], 100)
        return Problem(index, prompt=f"{a} and {b}", gold=str(a + b))

    def grade(self, answer: str, problem: Problem) -> Verdict:
        if not answer.strip():
            return Verdict.no_answer("the reply is empty")
        return Verdict.correct() if answer.strip() == problem.gold else Verdict.wrong(f"expected {problem.gold}")
''')

TEST = Template('''\
"""${name}_v0 keeps the contract of tasks and environments."""

import sys
from pathlib import Path

import marft_envs
from marft_envs.testing import check_env, check_task

sys.path.insert(0, str(Path(__file__).parent))  # the task is beside this file
from ${name}_v0 import $Class


def test_task():
    check_task($Class)


def test_environment():
    check_env(marft_envs.${name}_v0.env)
''')


class ScaffoldError(ValueError):
    """A name or a place that cannot be used; one line for the user."""


def new_task(name: str, folder: Path) -> list[Path]:
    """Write ``<name>_v0.py`` and ``test_<name>_v0.py`` into ``folder``, which is made if need be; -> both files."""
    _check_name(name)
    if folder.exists() and not folder.is_dir():
        raise ScaffoldError(f"--into {folder}: it is a file, expected a folder")
    words = {"name": name, "Class": "".join(word.capitalize() for word in name.split("_"))}
    files = {folder / f"{name}_v0.py": TASK, folder / f"test_{name}_v0.py": TEST}
    for path in files:
        if path.exists():
            raise ScaffoldError(f"{path} exists: expected another name, or another folder with --into")
    folder.mkdir(parents=True, exist_ok=True)
    for path, template in files.items():
        path.write_text(template.substitute(words), encoding="utf-8")
    return list(files)


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise ScaffoldError(f"name {name!r}: expected lower-case words joined by _, as in coins or word_count")
    if re.search(r"_v\d+$", name):
        raise ScaffoldError(f"name {name!r}: expected it without the version, which is 0")
    if is_known(f"{name}_v0") or f"{name}_v0" in names():
        raise ScaffoldError(f"name {name!r}: {name}_v0 exists already, expected another name")
