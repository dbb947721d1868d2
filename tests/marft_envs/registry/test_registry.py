"""Registration of a Task class, the ways to make its environment, and errors of both."""

import importlib
import inspect
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

import gymnasium
import pettingzoo
import pytest

import marft_envs
from marft_envs import Problem, Role, Task, Team, Verdict, register, registry
from marft_envs.registry.registry import RegistrationError, UnknownEnvironment

ROOT = Path(__file__).resolve().parents[3]


pytestmark = pytest.mark.usefixtures("clean_registry")


def with_built_in(*names):
    """Return the built-in environments and ``names``, sorted as they are listed."""
    return tuple(sorted((*registry.BUILT_IN, *names)))


class Echo(Task):
    """Say the word again.

    Version history: v0, first version.
    """

    size = 5

    def __init__(self, *, split: Literal["train", "test"] = "train", word="a"):
        self.word = word

    def problem(self, index):
        return Problem(index, f"{self.word}{index}", f"{self.word}{index}")

    def grade(self, answer, problem):
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("another word")


def play(env, answer):
    env.reset(seed=0)
    for _ in env.agent_iter():
        _, _, terminated, truncated, _ = env.last()
        env.step(None if terminated or truncated else answer(env.unwrapped.problem))
    return env.unwrapped.outcome.score


def test_every_way_to_make_the_environment():
    register("echo", version=3, team="duo")(Echo)
    module = importlib.import_module("marft_envs.echo_v3")
    ways = [
        marft_envs.echo_v3.env(word="b"),
        module.env(word="b"),
        marft_envs.make("echo_v3", word="b"),
        pettingzoo.make("aec", "marft/echo-v3", word="b"),
        pettingzoo.make("aec", "marft/echo", word="b"),
        gymnasium.make("marft/echo-v3", word="b", team="duo", agent="actor_0", policies=str).unwrapped.env,
    ]
    for env in ways:
        assert str(env) == "echo_v3"
        assert env.possible_agents == ["reasoner_0", "actor_0"]
        assert play(env, lambda problem: problem.gold) == 1.0
        assert env.unwrapped.problem.gold.startswith("b")
    assert type(module.raw_env()) is marft_envs.FlexMG
    assert marft_envs.all_environments == with_built_in("echo_v3")
    assert (Echo.name, Echo.version) == ("echo", 3)


def test_the_default_instructions_are_the_first_paragraph_of_the_docstring():
    register("echo")(Echo)
    assert marft_envs.echo_v0.raw_env().team.roles["actor_0"].instructions == "Say the word again."
    register("echo", instructions="Echo.")(Echo)
    assert marft_envs.echo_v0.raw_env().team.roles["actor_0"].instructions == "Echo."
    register("echo", version=1, team=Team({"speaker_0": Role("Hm.")}))(Echo)
    assert marft_envs.echo_v1.raw_env().team.agents == ("speaker_0",)
    assert marft_envs.echo_v1.raw_env(team="trio").team.agents == ("planner_0", "reasoner_0", "actor_0")


def test_a_task_can_have_a_default_number_of_rounds():
    register("echo", team="duo", rounds=3)(Echo)
    assert marft_envs.echo_v0.env().unwrapped.rounds == 3 and marft_envs.echo_v0.env(rounds=1).unwrapped.rounds == 1
    assert inspect.signature(marft_envs.echo_v0.env).parameters["rounds"].default == 3
    assert "`rounds=3`" in marft_envs.echo_v0.__doc__
    with pytest.raises(ValueError, match="rounds=0: expected"):
        register("echo", rounds=0)


def test_the_page_has_agents_arguments_and_the_docstring():
    register("echo", team="duo")(Echo)
    page = marft_envs.echo_v0.__doc__
    for line in (
        "Say the word again.",
        '| agents | `reasoner_0`, `actor_0` (team "duo"); see `team=` |',
        "* `split='train'`: an argument of the task (one of 'train', 'test').",
        "* `word='a'`: an argument of the task.",
        "Version history: v0, first version.",
    ):
        assert line in page.splitlines(), page


def test_register_wraps_problem_to_validate_the_index():
    register("echo")(Echo)
    for index in (-1, 5):
        with pytest.raises(IndexError, match=rf"index={index} of echo: expected 0 to 4"):
            Echo().problem(index)
    with pytest.raises(TypeError, match=r"index='1' of echo: got str, expected int"):
        Echo().problem("1")


def test_the_same_class_can_be_registered_again():
    register("echo")(Echo)
    first = marft_envs.echo_v0.env
    location = {"__module__": Echo.__module__, "__qualname__": Echo.__qualname__}
    renewed = type("Echo", (Echo,), {**location, "__doc__": "New."})
    register("echo")(renewed)
    assert type(marft_envs.make("echo_v0").unwrapped.task) is renewed
    assert type(first().unwrapped.task) is renewed  # also for a function that was stored before


def test_another_class_under_a_registered_name_raises():
    register("echo")(Echo)
    other = type("Other", (Echo,), {"__doc__": "Other."})
    with pytest.raises(RegistrationError, match=r"echo_v0 is already registered by .*\.Echo, now again by .*\.Other"):
        register("echo")(other)
    assert type(marft_envs.make("echo_v0").unwrapped.task) is Echo


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "Echo"}, "name='Echo': expected lower-case letters"),
        ({"name": "class"}, "name='class': expected lower-case"),
        ({"name": "echo_v2"}, "name='echo_v2': expected a name without the version; pass version=2"),
        ({"name": "math"}, "math_v0 is built into marft_envs: expected another name or version"),
        ({"name": "echo", "version": "1"}, "version='1': expected an integer"),
        ({"name": "echo", "team": "pair"}, "team='pair': expected one of solo, duo"),
    ],
)
def test_wrong_arguments_of_register(arguments, message):
    with pytest.raises(RegistrationError, match=message):
        register(**arguments)(Echo)
    assert "echo_v0" not in registry.registry._REGISTERED


def _with_init(init):
    return type("Bad", (Echo,), {"__init__": init, "__doc__": "Bad."})


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (lambda: int, "expected a subclass of marft_envs.Task"),
        (
            lambda: type("Bad", (Echo,), {"__doc__": None}),
            "Bad has no docstring: expected one, because it is the doc page",
        ),
        (lambda: type("Bad", (Task,), {"__doc__": "Bad."}), "Bad lacks grade and problem"),
        (lambda: _with_init(lambda self, path: None), "Bad argument 'path' has no default"),
        (lambda: _with_init(lambda self, **rest: None), r"Bad takes \*\*rest: expected named parameters only"),
        (lambda: _with_init(lambda self, rounds=1: None), "Bad takes 'rounds': expected another name"),
        (lambda: _with_init(lambda self, team=1: None), "Bad takes 'team': expected another name"),
    ],
)
def test_classes_that_cannot_be_registered(task, message):
    with pytest.raises(RegistrationError, match=message):
        register("bad")(task())


def test_the_error_for_an_unknown_name_suggests_the_nearest():
    register("echo")(Echo)
    with pytest.raises(
        UnknownEnvironment,
        match=rf"'ecko_v0': expected one of {', '.join(with_built_in('echo_v0'))} .did you mean 'echo",
    ):
        marft_envs.make("ecko_v0")
    with pytest.raises(AttributeError, match=r"no attribute 'ecko_v0'.*did you mean 'echo_v0'"):
        _ = marft_envs.ecko_v0
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = marft_envs.nonsense
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("marft_envs.ecko_v0")
    with pytest.raises(UnknownEnvironment, match=r"no_such_module:echo_v0: .*expected an importable module before ':'"):
        marft_envs.make("no_such_module:echo_v0")
    with pytest.raises(UnknownEnvironment, match="environment 3"):
        marft_envs.make(3)


def test_a_name_can_include_the_module_that_registers_it(tmp_path, monkeypatch):
    shutil.copy(ROOT / "examples" / "coins_v0.py", tmp_path / "my_money.py")
    monkeypatch.syspath_prepend(tmp_path)
    assert str(marft_envs.make("my_money:coins_v0", split="test")) == "coins_v0"
    sys.modules.pop("my_money")


def test_env_unpickles_in_another_process_and_registers_there(tmp_path):
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        importlib.import_module("coins_v0")
        (tmp_path / "envs").write_bytes(pickle.dumps((marft_envs.coins_v0.env, marft_envs.coins_v0.env())))
    finally:
        sys.path.remove(str(ROOT / "examples"))
        sys.modules.pop("coins_v0", None)
    program = "import pickle, sys; e, one = pickle.load(sys.stdin.buffer); print(e, e(split='test'), one)"
    with (tmp_path / "envs").open("rb") as file:
        run = subprocess.run(
            [sys.executable, "-c", program],
            stdin=file, capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": "examples:."},
        )  # fmt: skip
    assert run.stdout.split() == ["marft_envs.coins_v0.env", "coins_v0", "coins_v0"], run.stderr


def test_a_task_file_in_the_package_is_a_built_in_environment(tmp_path):
    """A copied file is listed, imported lazily, registered with PettingZoo, and has a doc page."""
    shutil.copytree(ROOT / "marft_envs", tmp_path / "marft_envs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "examples" / "coins_v0.py", tmp_path / "marft_envs")
    program = (
        "import sys, marft_envs, pettingzoo\n"
        "assert 'marft_envs.coins_v0' not in sys.modules\n"
        "print(marft_envs.all_environments, 'coins_v0' in marft_envs.__all__)\n"
        "print(pettingzoo.make('aec', 'marft/coins-v0'), marft_envs.coins_v0.env(split='test'))\n"
        "print('| agents |' in marft_envs.coins_v0.__doc__, marft_envs.coins_v0.__file__.endswith('coins_v0.py'))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert run.stdout.splitlines() == [f"{with_built_in('coins_v0')} True", "coins_v0 coins_v0", "True True"], (
        run.stderr
    )
