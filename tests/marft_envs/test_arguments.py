"""Error messages for unknown names: argument, value, allowed values and the nearest of them."""

import pytest

import marft_envs
from marft_envs.arguments import did_you_mean, expected_one_of


def test_the_message_names_argument_value_choices_and_the_nearest():
    message = expected_one_of("dataset", "gsm9k", ("gsm8k", "svamp"))
    assert message == "dataset='gsm9k': expected one of gsm8k, svamp (did you mean 'gsm8k'?)"


def test_nothing_is_suggested_if_nothing_is_similar():
    assert expected_one_of("memory", "elephant", ("none", "own")) == "memory='elephant': expected one of none, own"


def test_further_allowed_values_precede_the_suggestion():
    message = expected_one_of("reward", "share", ("shared", "last"), " or a callable")
    assert message == "reward='share': expected one of shared, last or a callable (did you mean 'shared'?)"


def test_choices_that_are_not_strings_are_written_as_literals():
    assert expected_one_of("render_mode", 3, (None, "human")) == "render_mode=3: expected one of None, 'human'"


def test_a_long_value_is_truncated():
    assert len(expected_one_of("team", "x" * 10_000, ("solo",))) < 200


@pytest.mark.parametrize(
    ("value", "suggestion"),
    [("GSM8K", " (did you mean 'gsm8k'?)"), ("Svmap", " (did you mean 'SVAMP'?)"), (["gsm8k"], ""), (None, "")],
)
def test_suggestions_ignore_case_and_values_that_are_not_strings(value, suggestion):
    assert did_you_mean(value, ("gsm8k", "SVAMP")) == suggestion


@pytest.mark.parametrize(
    ("value", "name"),
    [("lr", "learning_rate"), ("LR", "learning_rate"), ("ent_coef", "entropy_coefficient"), ("kc", "kl_coefficient"),
     ("clp", "clip"), ("rl", None), ("l", None), ("lrx", None), ("l_", None), ("", None)],
)  # fmt: skip
def test_an_abbreviation_suggests_the_full_name(value, name):
    known = ("learning_rate", "critic_learning_rate", "entropy_coefficient", "kl_coefficient", "clip")
    assert did_you_mean(value, known) == (f" (did you mean {name!r}?)" if name else "")


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        ({"dataset": "gsm9k"}, "gsm8k"),
        ({"team": "dou"}, "duo"),
        ({"dependency": "chian"}, "chain"),
        ({"reward": "share"}, "shared"),
        ({"memory": "parent"}, "parents"),
        ({"order": "randon"}, "random"),
        ({"render_mode": "ANSI"}, "ansi"),
        ({"split": "tets"}, "test"),
        ({"dependency": ["chain", "fulll"], "rounds": 2}, "full"),
        ({"round": 2}, "rounds"),
    ],
)
def test_misspelled_arguments_of_env_suggest_the_nearest(arguments, nearest):
    with pytest.raises(ValueError, match=rf"did you mean '{nearest}'\?"):
        marft_envs.math_v0.env(**arguments)


def test_a_misspelled_environment_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"environment 'mth_v0': .* \(did you mean 'math_v0'\?\)"):
        marft_envs.make("mth_v0")
