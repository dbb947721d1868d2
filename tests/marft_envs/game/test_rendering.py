"""An episode as text for people."""

import pytest

from marft_envs import FlexMG, Problem, Role, Task, Team, Verdict


class Word(Task):
    name, size = "word", 1

    def problem(self, index):
        return Problem(index, "Say yes.", "yes")

    def grade(self, answer, problem):
        if answer == "crash":
            raise OSError("disk full")
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("another word")


def play(answer, **settings):
    """A whole episode of a duo, with its dead steps."""
    game = FlexMG(Word(), Team({"a_0": Role(), "b_0": Role()}), **settings)
    game.reset(seed=0)
    for _ in game.agent_iter():
        game.step(None if game.over else answer)
    return game


ENDS = [
    ("yes", {}, ["=> b_0: correct", "=> team score 1"]),
    ("no", {}, ["=> b_0: wrong (another word)", "=> team score 0"]),
    ("yes", {"max_turns": 1}, ["=> truncated: max_turns=1"]),
    ("crash", {}, ["=> b_0: not_graded (OSError: disk full)", "=> truncated: b_0: OSError: disk full"]),
]


@pytest.mark.parametrize(("answer", "settings", "told"), ENDS)
def test_the_end_is_told_for_good(answer, settings, told):
    """Also when all agents, and their infos, have left."""
    game = play(answer, render_mode="ansi", **settings)
    assert game.agents == [] and game.infos == {}
    assert [line for line in game.render().splitlines() if line.startswith("=>")] == told


@pytest.mark.parametrize(("answer", "settings", "told"), ENDS)
def test_what_is_printed_step_by_step_is_the_same(answer, settings, told, capsys):
    play(answer, render_mode="human", **settings)
    printed = capsys.readouterr().out.splitlines()
    assert printed == play(answer, render_mode="ansi", **settings).render().splitlines()
