"""The structure of the code: marft_envs without torch, import contracts, no module named like a standard library's."""

import ast
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


CONSTRUCTORS = {
    "arange", "as_tensor", "empty", "eye", "full", "linspace", "ones", "rand", "randint", "randn", "randperm",
    "scalar_tensor", "tensor", "zeros",
}  # fmt: skip


def is_call_of(node, *names):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def bare_constructors(source):
    """Return the lines of a module that make a tensor with torch.zeros(...) and the like without naming a device.

    Initial values of parameters and buffers are not among them, because they move with their module.
    """
    tree = ast.parse(source)
    of_modules = {
        id(inner)
        for node in ast.walk(tree)
        if is_call_of(node, "Parameter", "register_buffer")
        for inner in ast.walk(node)
    }
    return [
        call.lineno
        for call in ast.walk(tree)
        if is_call_of(call, *CONSTRUCTORS)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "torch"
        and id(call) not in of_modules
        and not any(keyword.arg == "device" for keyword in call.keywords)
    ]


def test_bare_constructors_are_found():
    found = ["a = torch.zeros(3)"]
    fine = ["b = torch.ones(3, device=a.device)", "c = nn.Parameter(torch.zeros(2))", "d = a.new_zeros(1)"]
    assert bare_constructors("\n".join(found + fine)) == [1]


@pytest.mark.parametrize("room", ["critics", "engine", "functional", "policies", "ppo"])
def test_tensors_of_the_update_name_their_device(room):
    """On a GPU a tensor without a device would be on the CPU. Write x.new_zeros(...), zeros_like, or device=...."""
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in (ROOT / "baselines" / room).rglob("*.py")
        for line in bare_constructors(path.read_text(encoding="utf-8"))
    }
    assert not found


@pytest.mark.parametrize("folder", ["marft_envs", "baselines", "benchmarks"])
def test_no_module_bears_a_standard_librarys_name(folder):
    names = {p.stem for p in (ROOT / folder).rglob("*.py")} | {p.name for p in (ROOT / folder).rglob("*") if p.is_dir()}
    assert not names & set(sys.stdlib_module_names)
