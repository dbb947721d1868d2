"""The message for an unknown name."""

import pytest

import marft_envs
from marft_envs.arguments import did_you_mean, expected_one_of


def test_the_message_names_argument_value_choices_and_the_nearest():
    told = expected_one_of("dataset", "gsm9k", ("gsm8k", "svamp"))
    assert told == "dataset='gsm9k': expected one of gsm8k, svamp (did you mean 'gsm8k'?)"


def test_where_nothing_is_near_nothing_is_suggested():
    assert expected_one_of("memory", "elephant", ("none", "own")) == "memory='elephant': expected one of none, own"


def test_what_else_is_allowed_stands_before_the_suggestion():
    told = expected_one_of("reward", "share", ("shared", "last"), " or a callable")
    assert told == "reward='share': expected one of shared, last or a callable (did you mean 'shared'?)"


def test_values_that_are_no_texts_are_written_as_in_python():
    assert expected_one_of("render_mode", 3, (None, "human")) == "render_mode=3: expected one of None, 'human'"


def test_a_long_value_is_cut():
    assert len(expected_one_of("team", "x" * 10_000, ("solo",))) < 200


@pytest.mark.parametrize(
    ("value", "told"),
    [("GSM8K", " (did you mean 'gsm8k'?)"), ("Svmap", " (did you mean 'SVAMP'?)"), (["gsm8k"], ""), (None, "")],
)
def test_case_is_no_hindrance_and_a_value_of_another_type_has_no_neighbour(value, told):
    assert did_you_mean(value, ("gsm8k", "SVAMP")) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [("lr", "learning_rate"), ("LR", "learning_rate"), ("ent_coef", "entropy_coefficient"), ("kc", "kl_coefficient"),
     ("clp", "clip"), ("rl", None), ("l", None), ("lrx", None), ("l_", None), ("", None)],
)  # fmt: skip
def test_a_short_form_is_answered_with_the_name_that_it_stands_for(value, told):
    known = ("learning_rate", "critic_learning_rate", "entropy_coefficient", "kl_coefficient", "clip")
    assert did_you_mean(value, known) == (f" (did you mean {told!r}?)" if told else "")


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
def test_a_slip_in_any_name_that_env_takes_is_answered_with_the_nearest(arguments, nearest):
    with pytest.raises(ValueError, match=rf"did you mean '{nearest}'\?"):
        marft_envs.math_v0.env(**arguments)


def test_a_slip_in_an_environments_name_too():
    with pytest.raises(ValueError, match=r"environment 'mth_v0': .* \(did you mean 'math_v0'\?\)"):
        marft_envs.make("mth_v0")
