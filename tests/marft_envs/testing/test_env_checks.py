"""``check_env``: correct environments pass, and each check rejects environments that are wrong on purpose."""

import functools
import re

import gymnasium
import pytest

import marft_envs
from marft_envs import FlexMG, Problem, Role, Team, registry
from marft_envs.dependency.orchestration import Orchestrated
from marft_envs.team.stop_rules import Agreement
from marft_envs.testing import ENV_CHECKS, ConformanceError, check_env, check_task
from tests.marft_envs.testing import (
    wrong_interfaces,
    wrong_reproducibility,
    wrong_scoring,
    wrong_tasks,
    wrong_visibility,
)
from tests.marft_envs.testing.correct_task import ABC, Game, Words


@pytest.mark.parametrize(
    "make",
    [
        Game,
        functools.partial(Game, dependency="none", memory="none"),
        functools.partial(Game, dependency="full", memory="own", order="random", rounds=3),
        functools.partial(Game, dependency=["chain", "none"], memory="parents"),
        functools.partial(Game, dependency=Orchestrated("b_0"), memory="parents"),
        functools.partial(Game, dependency=Orchestrated("a_0"), memory="all", order="random"),
        functools.partial(Game, reward="last", format_bonus=0.25),
        "math_v0",
        "marft_envs.math_v0:raw_env",
    ],
)
def test_correct_environments_pass_every_check(make):
    report = check_env(make)
    assert report.passed == tuple(ENV_CHECKS)
    assert not report.not_checked


def test_a_team_with_a_stop_rule_passes():
    roles = {a: Role(f"You are {a}.") for a in ABC}
    team = Team(roles, "chain", stop=Agreement(("a_0", "b_0")))
    assert "no_label_leak" in check_env(lambda: FlexMG(Words(), team, rounds=3)).passed


def test_checks_that_cannot_run_are_reported_with_the_reason():
    report = check_env(lambda: Game(), skip=["fork"])
    assert set(report.not_checked) == {"fork", "other_process"}
    assert "does not pickle" in report.not_checked["other_process"]
    assert "other_process was not checked: another process cannot make it" in str(report)
    tight = Team({"a_0": Role(max_chars=3), "b_0": Role()})
    report = check_env(lambda: FlexMG(Words(), tight), only=["visibility"])
    assert "the limits of ['a_0'] clip" in report.not_checked["visibility"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: check_env(7), TypeError, "env_fn=7: expected a function"),
        (lambda: check_env("maths_v0"), ValueError, "environment 'maths_v0': expected one of"),
        (lambda: check_env(Game, only=["forks"]), ValueError, r"only=\['forks'\]: expected some of interface"),
        (
            lambda: check_env(lambda: Game(defer_grading=True)),
            ValueError,
            "defer_grading=True: expected an environment",
        ),
        (lambda: check_env(lambda: Game(max_turns=3)), ValueError, "max_turns=3: expected an environment"),
        (lambda: check_task(dict), TypeError, "got dict, expected a Task"),
        (lambda: check_task(Words, skip=["colour"]), ValueError, r"skip=\['colour'\]: expected some of attributes"),
    ],
)
def test_wrong_arguments_raise_errors_that_name_them(call, error, message):
    with pytest.raises(error, match=message):
        call()


WRONG = [
    *wrong_interfaces.WRONG,
    *wrong_visibility.WRONG,
    *wrong_reproducibility.WRONG,
    *wrong_scoring.WRONG,
]


@pytest.mark.parametrize(("check", "message", "make"), WRONG)
def test_each_check_rejects_a_wrong_environment(check, message, make):
    with pytest.raises(ConformanceError) as caught:
        check_env(make, only=[check])
    assert message in str(caught.value)
    assert f"fails the check '{check}': " in str(caught.value)


def test_every_check_of_environments_has_been_seen_to_fail():
    assert {parameters.values[0] for parameters in WRONG} == set(ENV_CHECKS)


def test_the_name_of_the_module_is_known_from_a_string(monkeypatch):
    monkeypatch.setattr(marft_envs.math_v0, "env", lambda: Game(name="maths_v1"))
    with pytest.raises(
        ConformanceError, match=r"metadata\['name'\] is 'maths_v1'; expected the module's name, 'math_v0'"
    ):
        check_env("marft_envs.math_v0:env", only=["names_and_metadata"])


class Registered(Words):
    """Say the word of the problem. Registering a class changes its name, so these tests register this one."""


def test_a_name_that_another_process_cannot_import(monkeypatch):
    monkeypatch.setattr(registry.registry, "_REGISTERED", dict(registry.registry._REGISTERED))
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    marft_envs.register("known_here")(Registered)
    with pytest.raises(ConformanceError, match=r"UnknownEnvironment.*such as 'tests\.\S+env_checks:known_here_v0'"):
        check_env(functools.partial(marft_envs.make, "known_here_v0"), only=["other_process"])


def test_an_environment_of_the_script_that_runs_the_check(monkeypatch, clean_registry):
    monkeypatch.setattr(Registered, "__module__", "__main__")
    marft_envs.register("of_script")(Registered)
    with pytest.raises(ConformanceError, match="expected a task in a module that a new process can import, not in the"):
        check_env("of_script_v0", only=["other_process"])


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (wrong_tasks.TooLarge, "problem(4) raised IndexError: tuple index out of range; size is 5; expected a Problem"),
        (
            wrong_tasks.WithoutSize,
            "out of range; size is None, which means unlimited; expected a Problem for every index",
        ),
    ],
)
def test_a_wrong_size_is_reported_with_the_index(task, message):
    with pytest.raises(ConformanceError, match=re.escape(message)):
        check_env(lambda: Game(task()))


def test_a_gold_of_another_type_than_the_reply_is_reported_in_one_sentence():
    message = (
        "the gold 4 of problem 0 is of type int, and the reply '4' is wrong; expected a string as gold, or a grade()"
    )
    with pytest.raises(ConformanceError, match=re.escape(message)) as caught:
        check_env(lambda: Game(wrong_tasks.IntegerGold()), only=["gold_scores_one"])
    assert "Verdict(" not in str(caught.value)


class Formatted(wrong_scoring.WantsFormat):
    """Like WantsFormat, with a method that returns a correct reply."""

    def reference_answer(self, problem):
        return f"word: {problem.gold}"


class Several(Words):
    """Each of two answering agents has its own gold."""

    def problem(self, index):
        p = super().problem(index)
        return Problem(p.index, p.prompt, {"a_0": p.gold, "b_0": p.gold[::-1]}, p.private)


def test_a_task_with_reference_answer():
    assert "gold_is_correct" in check_task(Formatted).passed
    assert "gold_scores_one" in check_env(lambda: Game(Formatted())).passed


def test_a_task_with_a_gold_per_agent():
    assert "gold_is_correct" in check_task(Several).passed
    team = Team({"a_0": Role(answers=True), "b_0": Role(answers=True, reply_prefix=" "), "c_0": Role()}, "none")
    report = check_env(lambda: FlexMG(Several(), team, rounds=2))
    assert set(report.passed) == set(ENV_CHECKS) - {"other_process"}
