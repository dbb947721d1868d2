"""Environments of other packages: lazy loading, and errors of broken plug-ins."""

import subprocess
import sys
from pathlib import Path

import pytest

from marft_envs.registry.versioned_names import BUILT_IN

ROOT = Path(__file__).resolve().parents[3]
GOOD = (ROOT / "examples" / "coins_v0.py").read_text()
POINTS = """
[marft_envs.tasks]
broken_v0 = broken_tasks
silent_v0 = silent_tasks
coins_v0 = good_tasks
math_v0 = broken_tasks
"""


@pytest.fixture
def run(tmp_path):
    """Run a program with an installed package "other-tasks" that has a good plug-in, a broken one, and a silent one.

    The silent one does not register its environment.
    """
    info = tmp_path / "other_tasks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-tasks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (tmp_path / "good_tasks.py").write_text(GOOD)
    (tmp_path / "broken_tasks.py").write_text("raise RuntimeError('no disk')\n")
    (tmp_path / "silent_tasks.py").write_text("")

    def start(program):
        paths = f"{tmp_path}:{ROOT}"
        return subprocess.run(
            [sys.executable, "-W", "always", "-c", "import sys, marft_envs\n" + program],
            capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": paths},
        )  # fmt: skip

    return start


def test_built_in_environments_load_no_plugin(run):
    done = run(
        "marft_envs.make('math_v0'); print('good_tasks' in sys.modules, 'importlib.metadata' in sys.modules, "
        "hasattr(marft_envs, 'nonsense'))"
    )
    assert done.stdout.split() == ["False", "False", "False"], done.stderr


@pytest.mark.parametrize(
    "expression", ["marft_envs.coins_v0", "marft_envs.make('coins_v0')", "__import__('marft_envs.coins_v0').coins_v0"]
)
def test_an_environment_by_name_loads_only_its_plugin(run, expression):
    done = run(f"x = {expression}; print('good_tasks' in sys.modules, 'silent_tasks' in sys.modules)")
    assert done.stdout.split() == ["True", "False"], done.stderr
    assert "no disk" not in done.stderr


def test_a_listing_omits_broken_plugins_and_warns_once(run):
    done = run("print(marft_envs.all_environments)\nmarft_envs.all_environments\nprint(marft_envs.make('math_v0'))")
    assert done.stdout.splitlines() == [str(tuple(sorted((*BUILT_IN, "coins_v0")))), "math_v0"], done.stderr
    broken = "environment broken_v0 of the package other-tasks: loading broken_tasks failed: RuntimeError: no disk"
    assert done.stderr.count(broken) == 1, done.stderr
    silent = "environment silent_v0 of the package other-tasks: silent_tasks does not register silent_v0"
    assert done.stderr.count(silent) == 1, done.stderr


def test_the_error_for_a_broken_plugin_names_its_package(run):
    done = run("marft_envs.make('broken_v0')")
    assert "PluginError: environment broken_v0 of the package other-tasks" in done.stderr
    done = run("import marft_envs.broken_v0")
    assert "environment broken_v0 of the package other-tasks: loading broken_tasks failed" in done.stderr
