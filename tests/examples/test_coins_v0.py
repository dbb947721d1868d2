"""The example task is short, passes the checks, and can be played."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

import marft_envs
from marft_envs import registry
from marft_envs.batch import BatchRunner
from marft_envs.testing import check_env, check_task

FOLDER = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def coins(monkeypatch):
    """The example task, registered for one test."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(registry.registry, "_REGISTERED", dict(registry.registry._REGISTERED))
    yield importlib.import_module("coins_v0")
    del sys.modules["coins_v0"]


def code_lines(path):
    """Count the lines of code, without blank lines, comments and docstrings."""
    source = path.read_text()
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = [n.body[0] for n in ast.walk(tree) if isinstance(n, documented) and ast.get_docstring(n) is not None]
    inside = {line for node in docs for line in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(source.splitlines(), 1)
    return sum(bool(text.strip()) and not text.strip().startswith("#") and n not in inside for n, text in lines)


def test_the_example_is_short():
    assert code_lines(FOLDER / "coins_v0.py") <= 17


def test_the_example_passes_the_checks(coins):
    assert not check_task(coins.Coins, skip=["seeds_differ"]).not_checked.keys() - {"seeds_differ"}
    assert not check_env(marft_envs.coins_v0.env).not_checked


def test_the_splits_share_no_problem(coins):
    splits = [coins.Coins(split=split) for split in ("train", "test")]
    train, test = ({task.problem(i).prompt for i in range(task.size)} for task in splits)
    assert (len(train), len(test)) == (800, 200)
    assert not train & test


def test_a_problem_computed_by_hand(coins):
    task = coins.Coins()
    problem = next(p for p in map(task.problem, range(800)) if p.prompt.startswith("3 quarters, 4 dimes and 2 "))
    assert problem.gold == "117"  # 75 + 40 + 2
    assert task.grade("117", problem).score == 1.0
    assert task.grade("117 dimes", problem).score == 0.0


def test_a_batch_of_episodes(coins):
    runner = BatchRunner(marft_envs.coins_v0.env(split="test"), size=4)
    prompts = []

    def policy(requests):
        prompts.extend(request.observation["messages"][1]["content"] for request in requests)
        return ["0"] * len(requests)

    assert [episode.score for episode in runner.play(policy, indices=[0, 1, 2, 3])] == [0.0] * 4
    assert len(prompts) == 8 and all(prompt.endswith("single cents") for prompt in prompts)
