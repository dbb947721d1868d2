"""Between two rounds: the task's feedback, and faults of feedback functions and stop rules."""

import pytest

from marft_envs import FlexMG
from marft_envs.team.stop_rules import Agreement
from tests.marft_envs.three_agents import ABC, Anything, team


class Commented(Anything):
    def __init__(self, comment):
        self.comment = comment

    def feedback(self, answer, problem):
        return self.comment


def after_a_round(comment):
    """Return a game after the first of two rounds, with ``comment`` as feedback."""
    game = FlexMG(Commented(comment), team("chain"), rounds=2)
    game.reset(seed=0)
    for _ in ABC:
        game.step("yes")
    return game


@pytest.mark.parametrize("comment", [3, True, ["well done"]])
def test_feedback_that_is_not_a_string_is_a_fault(comment):
    game = after_a_round(comment)
    assert (
        game.over
        and game.truncation_reason == f"feedback: TypeError: Commented.feedback returned {comment!r}, expected a string"
    )
    assert [message["name"] for message in game.observe("c_0")["messages"]] == ["task", "b_0"]


@pytest.mark.parametrize("comment", ["", None])
def test_empty_feedback_adds_nothing(comment):
    game = after_a_round(comment)
    assert not game.over and game.feedback == []


def test_feedback_with_lone_surrogates_is_repaired():
    """UTF-8 and tokenizers cannot represent them, but a task may quote them."""
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
def test_an_exception_in_a_stop_rule_truncates_the_episode(stop, fault):
    """A rule reads what models write, so it must not end a run of many episodes."""
    game = FlexMG(Unreadable(), team("chain", stop=stop), rounds=2)
    game.reset(seed=0)
    for _ in ABC:
        game.step("yes")
    assert game.over and game.infos["b_0"]["not_graded"] == fault and all(game.truncations.values())
