"""The structure of the code: marft_envs without torch, import contracts, no module named like a standard library's."""

import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from marft_envs.registry import is_versioned

ROOT = Path(__file__).resolve().parents[1]


def test_marft_envs_plays_without_torch():
    """A process in which importing torch or its company fails still plays an episode."""
    program = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'peft', 'accelerate', 'datasets', 'pyarrow', 'scipy'):\n"
        "    sys.modules[name] = None\n"
        "import marft_envs\n"
        "import marft_envs.batch\n"
        "env = marft_envs.math_v0.env()\n"
        "env.reset(seed=0)\n"
        "for agent in env.agent_iter():\n"
        "    _, _, terminated, truncated, _ = env.last()\n"
        "    env.step(None if terminated or truncated else f'\\\\boxed{{{env.unwrapped.problem.gold}}}')\n"
        "print(env.unwrapped.outcome.score)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert run.stdout.strip() == "1.0", run.stderr


def test_import_contracts_hold():
    run = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert "0 broken" in run.stdout, run.stdout + run.stderr


def test_every_module_of_marft_envs_has_a_layer():
    """The other packages' contracts are exhaustive; here a versioned module that a contributor adds needs no entry."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract.get("containers") == ["marft_envs"])
    listed = {name.strip() for layer in layers for name in layer.split("|")}
    modules = {module.name for module in pkgutil.iter_modules([str(ROOT / "marft_envs")])}
    assert {name for name in modules if not is_versioned(name)} <= listed
    assert listed <= modules


@pytest.mark.parametrize("folder", ["marft_envs", "baselines", "benchmarks"])
def test_no_module_bears_a_standard_librarys_name(folder):
    names = {p.stem for p in (ROOT / folder).rglob("*.py")} | {p.name for p in (ROOT / folder).rglob("*") if p.is_dir()}
    assert not names & set(sys.stdlib_module_names)
