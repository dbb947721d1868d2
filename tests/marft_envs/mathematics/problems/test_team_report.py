"""The team report: one section and one gold per agent, and the mean score as the team's score."""

import pytest

import marft_envs
from marft_envs.mathematics.problems.team_report import Report
from marft_envs.transcript import Turn


def play(reply, **arguments):
    """Play one episode in which agent ``a`` replies ``reply(a, problem)``; return the game."""
    env = marft_envs.math_v0.env(dataset="report", team="panel_4", **arguments)
    env.reset(seed=0, options={"index": 3})
    game = env.unwrapped
    while not game.over:
        env.step(reply(game.agent_selection, game.problem))
    return game


def test_the_team_score_is_the_share_of_correct_sections():
    assert play(lambda agent, problem: problem.gold[agent]).outcome.score == 1.0
    game = play(lambda agent, problem: problem.gold[agent] if agent in ("agent_0", "agent_3") else "99")
    assert game.outcome.score == 0.5
    assert set(game.rewards.values()) == {0.5}
    assert {a: v.score for a, v in game.outcome.verdicts.items()} == {
        "agent_0": 1.0, "agent_1": 0.0, "agent_2": 0.0, "agent_3": 1.0,
    }  # fmt: skip


def test_each_agent_observes_its_own_section_only():
    game = play(lambda agent, problem: "77")
    for agent in game.possible_agents:
        assert [m["content"] for m in game.observe(agent)["messages"]] == [game.problem.private[agent]]
    words = play(lambda agent, problem: "77", style="words")
    for agent in words.possible_agents:
        content = words.observe(agent)["messages"][0]["content"]
        assert words.problem.private[agent] in content and content.count("Your section") == 1


def test_golds_are_the_sums_and_splits_share_no_report():
    train, test = Report(split="train"), Report(split="test")
    for task in (train, test):
        for index in range(200):
            p = task.problem(index)
            assert {a: str(sum(map(int, t.rstrip("=").split("+")))) for a, t in p.private.items()} == p.gold
    keys = [{task.problem(i).notes["key"] for i in range(300)} for task in (train, test)]
    assert not keys[0] & keys[1]


@pytest.mark.parametrize("arguments", [{"agents": []}, {"agents": ["a_0", "a_0"]}, {"style": "prose"}])
def test_errors_name_the_invalid_argument(arguments):
    with pytest.raises(ValueError, match=f"{next(iter(arguments))}="):
        Report(**arguments)


def test_progress_counts_the_correct_sections_of_the_round():
    problem = Report(agents=("a", "b", "c")).problem(0)
    turns = [(0, "a", problem.gold["a"]), (0, "b", "no"), (0, "c", problem.gold["c"]), (1, "a", "x"), (1, "b", "x")]
    assert Report(agents=("a", "b", "c")).progress(problem, [Turn(*turn) for turn in turns]) == [0, 1, 1, 0, 0]
