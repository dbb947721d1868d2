"""What an episode pays and how it ends, where tasks, rewards and callers do what they should not."""

import numpy as np
import pytest

from marft_envs import FlexMG, Verdict
from marft_envs.batch.runner import BatchRunner
from tests.marft_envs.three_agents import ABC, Anything, team


def played(task=None, **arguments):
    """A chain of three in which all say the right word, up to the dead steps."""
    game = FlexMG(task or Anything(), team("chain"), **arguments)
    game.reset(seed=0)
    for _ in ABC:
        game.step("yes")
    return game


class Scores(Anything):
    def __init__(self, score):
        self.score = score

    def team_score(self, verdicts):
        if isinstance(self.score, Exception):
            raise self.score
        return self.score


@pytest.mark.parametrize(
    ("score", "fault"),
    [
        (7, "Scores.team_score returned 7, expected a number from 0 to 1"),
        (-0.5, "Scores.team_score returned -0.5, expected"),
        (float("nan"), "Scores.team_score returned nan, expected"),
        (None, "Scores.team_score returned None, expected"),
        (OSError("disk full"), "team_score: OSError: disk full"),
    ],
)
def test_a_fault_of_the_teams_score_is_not_graded(score, fault):
    game = played(Scores(score))
    assert game.infos["a_0"]["not_graded"].startswith(fault) and game.outcome.score == 0.0
    assert all(game.truncations.values()) and set(game.rewards.values()) == {0.0}
    (episode,) = BatchRunner(game, 1).play(lambda requests: ["yes"] * len(requests), indices=[0])
    assert episode.not_graded.startswith(fault)


@pytest.mark.parametrize("score", [1, 0.25, np.float32(0.5), True, sum([1 / 9] * 9)])
def test_any_number_from_0_to_1_is_a_score(score):
    game = played(Scores(score))
    assert game.outcome.score == game.rewards["a_0"] == min(1, float(score)) and type(game.outcome.score) is float


@pytest.mark.parametrize(
    ("reward", "returned"),
    [
        (lambda outcome: 1.0, "1.0"),
        (lambda outcome: None, "None"),
        (lambda outcome: {"a_0": 1.0}, r"\{'a_0': 1.0\}"),
        (lambda outcome: dict.fromkeys(ABC, "much"), r"\{'a_0': 'much', .*"),
    ],
)
def test_what_is_no_reward_is_named(reward, returned):
    with pytest.raises(
        TypeError, match=rf"reward=<lambda> returned {returned}: expected a number for each of \['a_0', "
    ):
        played(reward=reward)


def test_a_reward_may_be_of_numpy():
    assert played(reward=lambda outcome: dict.fromkeys(ABC, np.float32(0.5))).rewards == dict.fromkeys(ABC, 0.5)


def test_verdicts_may_come_when_agents_have_left():
    """With ``defer_grading`` a loop over the agents ends before the verdicts are there."""
    for leaving in (1, 3):
        game = played(defer_grading=True)
        verdicts = game.grade()
        for _ in range(leaving):
            game.step(None)
        game.settle(verdicts)
        assert game.outcome.score == 1.0 and game.rewards == dict.fromkeys(game.agents, 1.0)
        assert len(game.agents) == 3 - leaving


def test_a_fault_may_come_when_all_agents_have_left():
    game = played(defer_grading=True)
    for _ in ABC:
        game.step(None)
    game.settle({"c_0": Verdict.not_graded("gone")})
    assert game.truncation_reason == "c_0: gone" and game.outcome.score == 0.0 and not game.agents


def test_wrong_settling_is_named():
    game = FlexMG(Anything(), team("chain"), defer_grading=True)
    game.reset(seed=0)
    game.step("yes")
    with pytest.raises(RuntimeError, match=r"settle\(\) before the end of the episode: expected the last turn first"):
        game.settle({"c_0": Verdict.correct()})
    game.step("yes")
    game.step("yes")
    with pytest.raises(ValueError, match=r"settle\(\) names \['b_0'\]: expected some of \['c_0'\]"):
        game.settle({"b_0": Verdict.correct()})
    game.settle({"c_0": Verdict.correct()})
    assert game.outcome.score == 1.0


@pytest.mark.parametrize(("reason", "error"), [("", ValueError), (" ", ValueError), (None, TypeError)])
def test_a_limit_without_a_reason_is_refused(reason, error):
    """The reason is what tells a truncated episode from a graded one."""
    game = FlexMG(Anything(), team("chain"))
    game.reset(seed=0)
    with pytest.raises(error, match="truncate reason="):
        game.truncate(reason)
    assert not game.over
