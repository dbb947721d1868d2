"""``python -m marft_envs new-task NAME``: write a template of a task and a test that it passes."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from marft_envs.registry.registry import is_known, names

TASK = Template('''\
"""A task in one file. Importing it registers `marft_envs.${name}_v0`."""

from typing import Literal

import numpy as np

from marft_envs import Problem, Task, Verdict, register


@register("$name", version=0, team="duo")
class $Class(Task):
    """Add the two numbers. Reply with the sum alone.

    This docstring is the doc page. Its first paragraph is also part of the agents' instructions.

    Data: 10,000 generated problems; no problem is in two splits.

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
"""${name}_v0 passes the checks of marft_envs.testing."""

import sys
from pathlib import Path

import marft_envs
from marft_envs.testing import check_env, check_task

sys.path.insert(0, str(Path(__file__).parent))  # the task is in the same folder
from ${name}_v0 import $Class


def test_task():
    check_task($Class)


def test_environment():
    check_env(marft_envs.${name}_v0.env)
''')


class ScaffoldError(ValueError):
    """The name of the task, or the folder, cannot be used."""


def new_task(name: str, folder: Path) -> list[Path]:
    """Write ``<name>_v0.py`` and ``test_<name>_v0.py`` into ``folder``, which is created if necessary.

    Args:
        name: Lower-case words joined by ``_``, without a version.
        folder: The folder of the new files.

    Returns:
        The paths of both files.

    Raises:
        ScaffoldError: The name is not valid or already taken, or a file exists.
    """
    _check_name(name)
    if folder.exists() and not folder.is_dir():
        raise ScaffoldError(f"--into {folder}: this is a file, expected a folder")
    words = {"name": name, "Class": "".join(word.capitalize() for word in name.split("_"))}
    files = {folder / f"{name}_v0.py": TASK, folder / f"test_{name}_v0.py": TEST}
    for path in files:
        if path.exists():
            raise ScaffoldError(f"{path} exists: expected another name or another folder (--into)")
    folder.mkdir(parents=True, exist_ok=True)
    for path, template in files.items():
        path.write_text(template.substitute(words), encoding="utf-8")
    return list(files)


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise ScaffoldError(f"name {name!r}: expected lower-case words joined by _, such as coins or word_count")
    if re.search(r"_v\d+$", name):
        raise ScaffoldError(f"name {name!r}: expected a name without a version; the version of a new task is 0")
    if is_known(f"{name}_v0") or f"{name}_v0" in names():
        raise ScaffoldError(f"name {name!r}: {name}_v0 exists already, expected another name")
