"""From round to round: what the task tells of the answers before the next one begins."""

import pytest

from marft_envs import FlexMG
from marft_envs.team.stop_rules import Agreement
from tests.marft_envs.three_agents import ABC, Anything, team


class Tells(Anything):
    def __init__(self, told):
        self.told = told

    def feedback(self, answer, problem):
        return self.told


def after_a_round(told):
    game = FlexMG(Tells(told), team("chain"), rounds=2)
    game.reset(seed=0)
    for _ in ABC:
        game.step("yes")
    return game


@pytest.mark.parametrize("told", [3, True, ["well done"]])
def test_feedback_that_is_no_text_is_a_fault(told):
    game = after_a_round(told)
    assert (
        game.over
        and game.truncation_reason == f"feedback: TypeError: Tells.feedback returned {told!r}, expected a string"
    )
    assert [message["name"] for message in game.observe("c_0")["messages"]] == ["task", "b_0"]


@pytest.mark.parametrize("told", ["", None])
def test_no_feedback_is_none(told):
    game = after_a_round(told)
    assert not game.over and game.feedback == []


def test_feedback_with_lone_surrogates_is_repaired():
    """No file and no tokenizer can hold them; a task may quote them from anywhere."""
    game = after_a_round("you wrote \ud800!")
    assert game.feedback[0].text == "you wrote ?!"
    assert all(game.observation_space(agent).contains(game.observe(agent)) for agent in ABC)


class Unreadable(Anything):
    def answer_of(self, text):
        raise RecursionError("too deep")


@pytest.mark.parametrize(
    ("stop", "fault"),
    [
        (Agreement(("a_0", "b_0")), "stop: RecursionError: too deep"),
        (lambda turns, task: turns[3].text == "done", "stop: IndexError: tuple index out of range"),
    ],
)
def test_a_fault_of_the_rule_to_stop_is_not_graded(stop, fault):
    """It reads what models write, as a grader does, and must not end a run of many episodes."""
    game = FlexMG(Unreadable(), team("chain", stop=stop), rounds=2)
    game.reset(seed=0)
    for _ in ABC:
        game.step("yes")
    assert game.over and game.infos["b_0"]["not_graded"] == fault and all(game.truncations.values())
