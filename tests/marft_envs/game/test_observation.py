"""Messages without the private part: the very messages that a problem without it would have made."""

from dataclasses import replace

import pytest

from marft_envs.game.observation import opening_messages, without_private
from marft_envs.task import PublicProblem
from marft_envs.team.role import Role

SAID = {"role": "user", "name": "agent_1", "content": "the number is 7"}
FEEDBACK = {"role": "user", "name": "task", "content": "seen: 7"}


@pytest.mark.parametrize("prompt", ["", "Add the numbers.", "ends in a blank line\n\n"])
@pytest.mark.parametrize("private", ["", "7", "two\n\nparts"])
def test_taking_it_away_is_never_having_had_it(prompt, private):
    problem = PublicProblem(0, prompt, {"agent_0": private})
    told = opening_messages("agent_0", Role(instructions="You add."), problem)
    never = opening_messages("agent_0", Role(instructions="You add."), replace(problem, private={}))
    assert without_private([*told, SAID, FEEDBACK], private) == (*never, SAID, FEEDBACK)


def test_a_part_that_was_cut_is_all_there_is():
    assert without_private([{"role": "user", "name": "task", "content": "own part"}, SAID], "my own part") == (SAID,)


def test_a_part_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"expected one by 'task' that ends with '7'"):
        without_private([SAID], "7")
