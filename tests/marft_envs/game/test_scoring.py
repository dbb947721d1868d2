"""Scoring: faults of team scores and reward functions, and verdicts that arrive late."""

import numpy as np
import pytest

from marft_envs import FlexMG, Verdict
from marft_envs.batch import BatchRunner
from tests.marft_envs.three_agents import ABC, Anything, team


def played(task=None, **arguments):
    """Return a finished game of a chain of three agents that all give the correct answer."""
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
def test_an_invalid_team_score_truncates_the_episode(score, fault):
    game = played(Scores(score))
    assert game.infos["a_0"]["not_graded"].startswith(fault) and game.outcome.score == 0.0
    assert all(game.truncations.values()) and set(game.rewards.values()) == {0.0}
    (episode,) = BatchRunner(game, 1).play(lambda requests: ["yes"] * len(requests), indices=[0])
    assert episode.not_graded.startswith(fault)


@pytest.mark.parametrize("score", [1, 0.25, np.float32(0.5), True, sum([1 / 9] * 9)])
def test_any_number_from_0_to_1_is_a_team_score(score):
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
def test_an_invalid_result_of_a_reward_function_is_named_in_the_error(reward, returned):
    with pytest.raises(
        TypeError, match=rf"reward=<lambda> returned {returned}: expected a number for each of \['a_0', "
    ):
        played(reward=reward)


def test_numpy_rewards_are_accepted():
    assert played(reward=lambda outcome: dict.fromkeys(ABC, np.float32(0.5))).rewards == dict.fromkeys(ABC, 0.5)


def test_verdicts_can_arrive_after_agents_were_removed():
    """With ``defer_grading`` a loop over the agents may end before the verdicts arrive."""
    for removed in (1, 3):
        game = played(defer_grading=True)
        verdicts = game.grade()
        for _ in range(removed):
            game.step(None)
        game.settle(verdicts)
        assert game.outcome.score == 1.0 and game.rewards == dict.fromkeys(game.agents, 1.0)
        assert len(game.agents) == 3 - removed


def test_a_fault_can_arrive_after_all_agents_were_removed():
    game = played(defer_grading=True)
    for _ in ABC:
        game.step(None)
    game.settle({"c_0": Verdict.not_graded("lost")})
    assert game.truncation_reason == "c_0: lost" and game.outcome.score == 0.0 and not game.agents


def test_settling_too_early_or_for_the_wrong_agent_is_an_error():
    game = FlexMG(Anything(), team("chain"), defer_grading=True)
    game.reset(seed=0)
    game.step("yes")
    with pytest.raises(
        RuntimeError, match=r"settle\(\) before the end of the episode: expected all turns to be played first"
    ):
        game.settle({"c_0": Verdict.correct()})
    game.step("yes")
    game.step("yes")
    with pytest.raises(ValueError, match=r"settle\(\) names \['b_0'\]: expected some of \['c_0'\]"):
        game.settle({"b_0": Verdict.correct()})
    game.settle({"c_0": Verdict.correct()})
    assert game.outcome.score == 1.0


@pytest.mark.parametrize(("reason", "error"), [("", ValueError), (" ", ValueError), (None, TypeError)])
def test_truncate_requires_a_reason(reason, error):
    """The reason distinguishes a truncated episode from a graded one."""
    game = FlexMG(Anything(), team("chain"))
    game.reset(seed=0)
    with pytest.raises(error, match="truncate reason="):
        game.truncate(reason)
    assert not game.over
