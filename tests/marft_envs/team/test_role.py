"""Role: validation of its fields, and their effect on spaces and observations."""

import pytest

from marft_envs import Role
from marft_envs.team.tools import CALCULATOR
from tests.marft_envs.team.say_yes import game


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"instructions": None}, "Role instructions=None: expected a string"),
        ({"reply_prefix": 3}, "Role reply_prefix=3: expected a string"),
        ({"max_chars": "9"}, "Role max_chars='9': got str, expected int"),
        ({"answers": "no"}, "Role answers='no': got str, expected True or False"),
        ({"choices": None}, "Role choices=None: expected a list or tuple"),
        ({"choices": "yes"}, "Role choices='yes': expected a list or tuple"),
        ({"choices": ("yes", 1)}, r"Role choices=\('yes', 1\): expected strings"),
        ({"tools": "calculator"}, "Role tools='calculator': expected a list or tuple"),
    ],
)
def test_fields_of_the_wrong_type_are_named_in_the_error(fields, message):
    with pytest.raises(TypeError, match=message):
        Role(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tools": ("calculater",)}, r"'calculater': .* \(did you mean 'calculator'\?\)"),
        ({"tools": ("calculator", CALCULATOR)}, r"Role tools=\['calculator', 'calculator'\]: expected no name twice"),
        ({"choices": ("yes", "no", "yes")}, r"Role choices=.*: expected no choice twice, got \['yes'\]"),
        ({"choices": ("yes",), "max_chars": 2}, "Role choices=.*: .* at most max_chars=2 characters"),
    ],
)
def test_unusable_tools_and_choices_are_named_in_the_error(fields, message):
    with pytest.raises(ValueError, match=message):
        Role(**fields)


def test_choices_and_limits_define_the_spaces_of_each_agent():
    roles = {"a_0": Role(max_chars=4), "b_0": Role(choices=("yes", "no")), "c_0": Role(max_observed_chars=3)}
    g = game(roles, "full")
    assert g.action_space("a_0") != g.action_space("b_0")
    assert g.action_space("b_0").contains("yes") and not g.action_space("b_0").contains("maybe")
    assert g.action_space("b_0").sample() in ("yes", "no")
    assert g.observation_space("a_0") != g.observation_space("c_0")
    g.step("abcdef")
    g.step("maybe")
    assert g.infos["b_0"]["outside_space"] == "maybe"
    assert [m["content"] for m in g.observe("c_0")["messages"]][-2:] == ["bcd", "ybe"]


def test_every_observation_is_in_its_space_under_tight_limits():
    """The problem is truncated to its last characters and flagged; instructions are never truncated."""
    tight = Role("A long instruction.", max_observed_chars=4, reply_prefix="A long beginning:", max_chars=100_000_000)
    g = game({"a_0": tight, "b_0": Role("B", max_observed_chars=4), "c_0": Role()}, "full")
    assert [m["content"] for m in g.observe("a_0")["messages"]] == ["A long instruction.", "yes."]
    assert g.infos == {"a_0": {"problem_clipped": 8}, "b_0": {"problem_clipped": 8}, "c_0": {}}
    g.step("x" * 11_000_000)
    for agent in ("a_0", "b_0"):
        assert g.observation_space(agent).contains(g.observe(agent))
    assert g.state_space.contains(g.state())
    assert g.observation_space("b_0").spaces["reply_prefix"].max_length == 4
