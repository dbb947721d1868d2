"""The end of an episode: rewards, termination, and truncation by faults and limits."""

import pytest

from marft_envs import FlexMG, Outcome, Role
from marft_envs.game.reward import StepDiscounted
from tests.marft_envs.game.echo import ABC, Echo, contents, play, team
from tests.marft_envs.team.say_yes import game


@pytest.mark.parametrize(("reward", "expected"), [("shared", [1, 1, 1]), ("last", [0, 0, 1]), ("answerer", [0, 0, 1])])
def test_rewards_are_set_after_the_last_turn_and_returned_once_to_each_agent(reward, expected):
    env = FlexMG(Echo(), team(), reward=reward)
    env.reset(seed=0)
    for _ in ABC:
        assert env.rewards == dict.fromkeys(ABC, 0.0)
        env.step("yes")
    assert list(env.rewards.values()) == expected
    for agent, value in zip(ABC, expected, strict=True):
        _, reward_, terminated, truncated, info = env.last()
        assert (env.agent_selection, reward_, terminated, truncated) == (agent, value, True, False)
        assert info["score"] == 1.0
        env.step(None)
    assert env.agents == []
    assert contents(env.observe("c_0"))  # also after the end
    assert env.outcome.verdicts["c_0"].outcome is Outcome.CORRECT


def test_the_reward_can_be_a_function():
    env = FlexMG(Echo(), team(), reward=lambda outcome: dict.fromkeys(outcome.agents, 0.5 * outcome.score))
    env.reset(seed=0)
    for _ in ABC:
        env.step("yes")
    assert set(env.rewards.values()) == {0.5}


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (lambda: {"a_0": 1.0}, r"reward=<lambda>: takes \(\), expected a function of \(outcome\)"),
        (StepDiscounted, "reward=StepDiscounted: got the class"),
    ],
)
def test_a_reward_with_the_wrong_arguments_is_an_error(reward, message):
    with pytest.raises(TypeError, match=message):
        FlexMG(Echo(), team(), reward=reward)


def test_the_score_of_several_answering_agents_is_the_mean():
    roles = {"b_0": Role(answers=True), "c_0": Role(answers=True)}
    env = FlexMG(Echo(gold={"b_0": "yes", "c_0": "no"}), team("none", **roles))
    play(env, {"a_0": "x", "b_0": "yes", "c_0": "yes"})
    assert env.outcome.score == 0.5
    assert {a: v.score for a, v in env.outcome.verdicts.items()} == {"b_0": 1.0, "c_0": 0.0}


def test_the_format_bonus_is_rewarded_and_reported_separately():
    for text, bonus in (("wrong", 0.1), ("yes", 0.1), ("", None)):
        g = game({"a_0": Role(), "b_0": Role(answers=True)}, format_bonus=0.1)
        g.step("x")
        g.step(text)
        score = float(text == "yes")
        assert g.outcome.score == score == g.rewards["a_0"]
        assert g.rewards["b_0"] == pytest.approx(score + (bonus or 0))
        assert g.infos["b_0"].get("format_bonus") == bonus and "format_bonus" not in g.infos["a_0"]


def test_a_wrong_answer_terminates_and_a_fault_of_the_grader_truncates():
    env = FlexMG(Echo(), team())
    env.reset(seed=0)
    for _ in ABC:
        env.step("no")
    assert all(env.terminations.values()) and not any(env.truncations.values())
    env.reset(seed=0)
    for _ in ABC:
        env.step("crash")
    assert all(env.truncations.values()) and not any(env.terminations.values())
    assert set(env.rewards.values()) == {0.0}
    assert env.infos["a_0"]["not_graded"] == "c_0: OSError: disk full"
    assert env.outcome.verdicts["c_0"].outcome is Outcome.NOT_GRADED


def test_max_turns_truncates():
    g = game({"a_0": Role(), "b_0": Role(answers=True)}, rounds=3, max_turns=3)
    for _ in range(3):
        g.step("yes")
    assert g.over and all(g.truncations.values()) and not any(g.terminations.values())
    assert g.infos["a_0"]["truncated"] == "max_turns=3" and set(g.rewards.values()) == {0.0}
    assert g.outcome is None and g.observe("a_0")["messages"]
    g = game({"a_0": Role(), "b_0": Role(answers=True)}, max_turns=2)
    g.step("x")
    g.step("yes")
    assert g.outcome.score == 1.0  # the last turn reaches the limit: the episode is graded
    g.truncate("too late")
    assert all(g.terminations.values())


def test_an_action_of_a_terminated_agent_is_an_error():
    env = FlexMG(Echo(), team())
    env.reset(seed=0)
    for _ in ABC:
        env.step("yes")
    with pytest.raises(ValueError, match="action of a_0: got 'more' after its end, expected None"):
        env.step("more")
    assert len(env.agents) == 3
