"""Team: validation of its roles, its dependency function and its stop rule."""

import pytest

from marft_envs import Role, Team
from marft_envs.dependency.orchestration import Orchestrated
from marft_envs.team.stop_rules import Word


@pytest.mark.parametrize("roles", [["a_0"], "a_0", None, Role()])
def test_roles_that_are_not_a_mapping_are_named_in_the_error(roles):
    with pytest.raises(TypeError, match=r"team roles=.*: expected a mapping from agent to Role"):
        Team(roles)


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        (lambda turns: True, r"stop=<lambda>: takes \(turns\), expected a function of \(turns, task\)"),
        (Word, "stop=Word: got the class, expected an instance of it"),
    ],
)
def test_a_stop_rule_with_the_wrong_arguments_is_an_error(stop, message):
    with pytest.raises(TypeError, match=message):
        Team({"a_0": Role()}, stop=stop)


@pytest.mark.parametrize("settings", [{"dependency": Orchestrated("a_0")}, {"stop": Word("a_0", "DONE")}])
def test_only_a_team_with_a_fixed_d_and_no_stop_rule_has_an_anonymous_form(settings):
    with pytest.raises(ValueError, match=r"anonymous\(\): expected a team with a fixed D and without a stop rule"):
        Team({"a_0": Role(), "b_0": Role()}, **settings).anonymous()
