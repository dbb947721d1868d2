"""Rendering: the strings that describe an episode."""

import pytest

from marft_envs import FlexMG, Role, Team
from tests.marft_envs.game import echo


def play(answer, **settings):
    """Play a whole episode of a duo, until all agents are removed."""
    game = FlexMG(echo.Echo(), Team({"a_0": Role(), "b_0": Role()}), **settings)
    echo.play(game, dict.fromkeys(game.possible_agents, answer))
    return game


def test_an_episode_is_rendered_as_problem_turns_and_result():
    env = FlexMG(echo.Echo(), echo.team(), render_mode="ansi")
    echo.play(env, dict.fromkeys(echo.ABC, "yes"), options={"index": 2})
    lines = env.render().splitlines()
    assert lines[:3] == ["# echo_v0 problem 2", "Question 2", "(only a_0 sees) secret of a_0"]
    assert "[c_0] yes" in lines
    assert lines[-1] == "=> team score 1"


ENDS = [
    ("yes", {}, ["=> b_0: correct", "=> team score 1"]),
    ("no", {}, ["=> b_0: wrong (not the word)", "=> team score 0"]),
    ("yes", {"max_turns": 1}, ["=> truncated: max_turns=1"]),
    ("crash", {}, ["=> b_0: not_graded (OSError: disk full)", "=> truncated: b_0: OSError: disk full"]),
]


@pytest.mark.parametrize(("answer", "settings", "lines"), ENDS)
def test_the_result_is_rendered_after_the_end(answer, settings, lines):
    """The agents and their infos have been removed by then."""
    game = play(answer, render_mode="ansi", **settings)
    assert game.agents == [] and game.infos == {}
    assert [line for line in game.render().splitlines() if line.startswith("=>")] == lines


@pytest.mark.parametrize(("answer", "settings", "lines"), ENDS)
def test_mode_human_prints_what_mode_ansi_returns(answer, settings, lines, capsys):
    play(answer, render_mode="human", **settings)
    printed = capsys.readouterr().out.splitlines()
    assert printed == play(answer, render_mode="ansi", **settings).render().splitlines()
