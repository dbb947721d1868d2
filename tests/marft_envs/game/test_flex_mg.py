"""FlexMG: PettingZoo's own tests, names, spaces, validation of arguments and repair of actions."""

import warnings

import pettingzoo
import pytest
from pettingzoo.test import api_test, seed_test

import marft_envs
from marft_envs import FlexMG, Role
from tests.marft_envs.game.echo import WORDS, Echo, play, team


@pytest.mark.parametrize("environment", marft_envs.all_environments)
def test_pettingzoos_own_tests_pass(environment):
    """The only warnings are that observations and actions, being strings, are not arrays or Box spaces."""
    module = getattr(marft_envs, environment)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        api_test(module.env(), num_cycles=30)
        api_test(module.raw_env(), num_cycles=30)
        seed_test(module.env, num_cycles=30)
    expected = (
        "Observation is not a NumPy array",
        "Observation space for each agent probably",
        "Action space for each",
    )
    assert [str(w.message) for w in caught if not str(w.message).startswith(expected)] == []


def test_names_and_metadata():
    env = marft_envs.math_v0.env()
    assert str(env) == env.metadata["name"] == "math_v0"
    assert env.possible_agents == ["reasoner_0", "actor_0"]
    assert env.metadata["is_parallelizable"] is False
    assert marft_envs.math_v0.env(dependency="none").metadata["is_parallelizable"] is True
    assert str(pettingzoo.make("aec", "marft/math-v0")) == "math_v0"
    assert str(marft_envs.make("math_v0")) == "math_v0"


def test_spaces_are_the_same_objects_and_contain_every_observation():
    env = FlexMG(Echo(), team())
    assert env.observation_space("a_0") is env.observation_space("a_0")
    assert env.action_space("a_0") is env.action_space("a_0")
    env.reset(seed=0)
    for _ in env.agent_iter():
        for other in env.possible_agents:
            assert env.observation_space(other).contains(env.observe(other))
        assert env.state_space.contains(env.state())
        env.step(None if env.terminations[env.agent_selection] else "Grüße\n日本 \U0001f600")


def test_invalid_actions_are_repaired_and_flagged():
    env = FlexMG(Echo(), team(a_0=Role(max_chars=5)))
    env.reset(seed=0)
    env.step("123456789")
    assert env.infos["a_0"]["clipped"] == 9
    assert env.transcript[0].text == "12345"
    env.step("bad \ud800 end")
    assert "surrogates" in env.infos["b_0"]["malformed"]
    assert env.observation_space("c_0").contains(env.observe("c_0"))


@pytest.mark.parametrize("wrong", [None, 7, b"bytes", ["text"]])
def test_an_action_that_is_not_a_string_is_an_error_and_changes_nothing(wrong):
    env = FlexMG(Echo(), team())
    env.reset(seed=0)
    env.step("fine")
    with pytest.raises(TypeError, match=rf"action of b_0: got {type(wrong).__name__} .*expected str"):
        env.step(wrong)
    assert env.agent_selection == "b_0" and len(env.transcript) == 1
    env.step("fine again")


def test_a_game_has_at_most_42_attributes():
    """With more than 42, the instance dictionary outgrows 64 slots and every turn takes longer."""
    env = FlexMG(Echo(), team(), rounds=2)
    play(env, WORDS)
    assert len(vars(env)) <= 42


@pytest.mark.parametrize("method", ["observation_space", "action_space", "observe"])
def test_an_unknown_agent_is_named_in_the_error(method):
    env = marft_envs.math_v0.env()
    env.reset(seed=0)
    with pytest.raises(
        ValueError, match=r"agent='actor': expected one of reasoner_0, actor_0 \(did you mean 'actor_0'"
    ):
        getattr(env, method)("actor")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": Echo}, "task=<class .*: got ABCMeta, expected Task"),
        ({"team": "duo"}, "team='duo': got str, expected Team"),
        ({"rounds": 1.0}, r"rounds=1\.0: got float, expected int"),
        ({"max_turns": "9"}, "max_turns='9': got str, expected int"),
        ({"format_bonus": "0.1"}, r"format_bonus='0\.1': got str, expected int or float"),
        ({"defer_grading": "no"}, "defer_grading='no': got str, expected bool"),
    ],
)
def test_arguments_of_the_wrong_type_are_named_in_the_error(arguments, message):
    with pytest.raises(TypeError, match=message):
        FlexMG(**{"task": Echo(), "team": team(), **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": "gsm9k"}, "dataset='gsm9k': expected one of .*did you mean 'gsm8k'"),
        ({"team": "sextet"}, "team='sextet': expected one of solo, duo"),
        ({"memory": "some"}, "memory='some': expected one of none, own"),
        ({"order": "any"}, "order='any': expected one of"),
        ({"rounds": 0}, "rounds=0: expected at least 1"),
        ({"format_bonus": float("nan")}, "format_bonus=nan: expected a finite number"),
        ({"reward": "none"}, "reward='none': expected one of shared, last, answerer"),
        ({"render_mode": "rgb"}, "render_mode='rgb': expected one of None, 'human', 'ansi'"),
        ({"split": "dev"}, "split.*dev"),
        ({"levle": 3}, r"unknown arguments \['levle'\] for dataset='word_problems': expected some of"),
        ({"dependency": "ring"}, "dependency='ring'"),
    ],
)
def test_values_that_are_not_allowed_are_named_in_the_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        marft_envs.math_v0.env(**arguments)


def test_a_cycle_is_an_error_at_construction():
    with pytest.raises(
        marft_envs.CycleError, match=r"actor_0 -> reasoner_0 -> actor_0|reasoner_0 -> actor_0 -> reason"
    ):
        marft_envs.math_v0.env(dependency=[("reasoner_0", "actor_0"), ("actor_0", "reasoner_0")])


def test_an_unknown_environment_is_named_in_the_error():
    with pytest.raises(ValueError, match=r"environment 'maths_v0': expected one of .*math_v0.*did you mean 'math_v0'"):
        marft_envs.make("maths_v0")
    with pytest.raises(AttributeError, match="no attribute 'maths_v0'"):
        _ = marft_envs.maths_v0
