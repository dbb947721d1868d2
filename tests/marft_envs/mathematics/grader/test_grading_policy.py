"""Each setting of GradingPolicy changes what it says, and nothing is a setting that nothing reads."""

from dataclasses import fields

import pytest

from marft_envs.mathematics import GradingPolicy, grade

SETTINGS = [  # setting, answer, gold, right by default, right under the setting
    ({"lists": "given"}, "3, 2, 1", "1, 2, 3", True, False),
    ({"lists": "given"}, r"\{2, 1\}", r"\{1, 2\}", True, False),
    ({"lists": "given"}, "blue, red", r"\text{red, blue}", True, False),
    ({"tuples": "strict"}, "1, 2", "(1, 2)", True, False),
    ({"rounding": 0.01}, "0.333", r"\frac13", False, True),
    ({"rounding": 0.01}, "0.35", r"\frac13", False, False),
    ({"rounding": 0.01}, "4.46e33", r"4.5 \times 10^{33}", False, True),
    ({"rounding": 1e-3}, r"1.414", r"\sqrt{2}", False, True),
    ({"percent": "strict"}, "50", r"50\%", True, False),
    ({"percent": "strict"}, "0.5", r"50\%", True, True),
    ({"percent": "strict"}, r"\frac{100}{3}", r"\frac{100}{3}\%", True, False),
    ({"units": "required"}, "5", r"5\text{ cm}", True, False),
    ({"units": "required"}, r"2\sqrt{3}", r"2\sqrt{3}\text{ cm}", True, False),
    ({"units": "ignored"}, "5 m", r"5\text{ cm}", False, True),
    ({"units": "ignored"}, r"\sqrt{5}\text{ m}", r"\sqrt{5}\text{ cm}", False, True),
    ({"degrees": "strict"}, r"60^\circ", "60", True, True),  # numbers: a degree sign never counts
    ({"degrees": "strict"}, r"(20\sqrt{9})^\circ", "60", True, False),
    ({"degrees": "strict"}, r"60^\circ", r"\frac{\pi}{3}", True, True),
    ({"log": "10"}, r"\log 2", r"\ln 2", True, False),
    ({"log": "10"}, r"\log 100", "2", False, True),
    ({"ratios": "written"}, "4:6", "2:3", True, False),
    ({"ratios": "written"}, "2 to 3", "2:3", True, True),
    ({"bases": "required"}, "1010", "1010_2", True, False),
]


@pytest.mark.parametrize(("setting", "answer", "gold", "default", "changed"), SETTINGS)
def test_setting(setting, answer, gold, default, changed):
    reply = rf"\boxed{{{answer}}}"
    assert (grade(reply, gold).score == 1.0) is default
    assert (grade(reply, gold, policy=GradingPolicy(**setting)).score == 1.0) is changed


def test_every_setting_is_tested():
    assert {name for setting, *_ in SETTINGS for name in setting} == {field.name for field in fields(GradingPolicy)}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"lists": "sorted"}, "lists='sorted': expected one of 'free', 'given'"),
        ({"log": "2"}, "log='2': expected one of 'e', '10'"),
        ({"rounding": 1.0}, "rounding=1.0: expected a number from 0"),
        ({"rounding": True}, "rounding=True: expected a number from 0"),
    ],
)
def test_wrong_settings_are_named(setting, message):
    with pytest.raises(ValueError, match=message.replace("'", ".")):
        GradingPolicy(**setting)
