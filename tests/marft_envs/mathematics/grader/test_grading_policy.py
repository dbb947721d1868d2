"""Each setting of GradingPolicy changes the verdicts that it describes, and every setting is read."""

from dataclasses import fields

import pytest

from marft_envs.mathematics import GradingPolicy, grade

SETTINGS = [  # setting, answer, gold, correct by default, correct under the setting
    ({"lists": "ordered"}, "3, 2, 1", "1, 2, 3", True, False),
    ({"lists": "ordered"}, r"\{2, 1\}", r"\{1, 2\}", True, False),
    ({"lists": "ordered"}, "blue, red", r"\text{red, blue}", True, False),
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
    ({"degrees": "strict"}, r"60^\circ", "60", True, True),  # between two numbers a degree sign is ignored
    ({"degrees": "strict"}, r"(20\sqrt{9})^\circ", "60", True, False),
    ({"degrees": "strict"}, r"60^\circ", r"\frac{\pi}{3}", True, True),
    ({"log": "10"}, r"\log 2", r"\ln 2", True, False),
    ({"log": "10"}, r"\log 100", "2", False, True),
    ({"ratios": "written"}, "4:6", "2:3", True, False),
    ({"ratios": "written"}, "2 to 3", "2:3", True, True),
    ({"bases": "required"}, "1010", "1010_2", True, False),
    ({"arithmetic": "evaluated"}, "3 + 9", "12", True, False),
    ({"arithmetic": "evaluated"}, "3 + 9 = 12", "12", True, True),
]


@pytest.mark.parametrize(("setting", "answer", "gold", "default", "changed"), SETTINGS)
def test_setting_changes_the_verdict(setting, answer, gold, default, changed):
    reply = rf"\boxed{{{answer}}}"
    assert (grade(reply, gold).score == 1.0) is default
    assert (grade(reply, gold, policy=GradingPolicy(**setting)).score == 1.0) is changed


def test_every_setting_is_tested():
    assert {name for setting, *_ in SETTINGS for name in setting} == {field.name for field in fields(GradingPolicy)}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"lists": "sorted"}, "lists='sorted': expected one of 'unordered', 'ordered'"),
        ({"log": "2"}, "log='2': expected one of 'e', '10'"),
        ({"rounding": 1.0}, "rounding=1.0: expected a number of at least 0 and below 1"),
        ({"rounding": True}, "rounding=True: expected a number of at least 0 and below 1"),
    ],
)
def test_errors_name_the_invalid_setting(setting, message):
    with pytest.raises(ValueError, match=message.replace("'", ".")):
        GradingPolicy(**setting)
