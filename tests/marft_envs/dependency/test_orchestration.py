"""The orchestrator: what it is told, how its replies are read, and what the game makes of them."""

import copy
import pickle
import time

import numpy as np
import pytest

from marft_envs import CycleError, Dependency, FlexMG, Role, Team
from marft_envs.dependency.orchestration import Orchestrated, names_next, names_plan, unknown_names
from tests.marft_envs.three_agents import ABC, TEXTS, Anything, play, team


def test_an_orchestrator_names_who_acts_next():
    game = FlexMG(Anything(), team(Orchestrated("a_0", read=names_next)), rounds=3, memory="none")
    seen = play(game, {**TEXTS, "a_0": ["Next: b_0", "now c_0 please", "FINISH"], "c_0": "yes"})
    assert seen == [
        ("a_0", ()), ("b_0", ("Next: b_0",)), ("a_0", ()), ("c_0", ("now c_0 please",)), ("a_0", ()),
    ]  # fmt: skip
    assert game.outcome.score == 1.0  # c_0's text of the second round is graded
    assert game.round == 2


def test_an_orchestrator_runs_a_plan_of_sub_tasks():
    plan = "Let us see.\n- c_0: guess\n- b_0 (after c_0): check it"
    game = FlexMG(Anything(), team(Orchestrated("a_0")), rounds=1)
    assert play(game, {**TEXTS, "a_0": plan}) == [("a_0", ()), ("c_0", (plan,)), ("b_0", (plan, "C_0"))]


def test_a_plan_that_cannot_be_read_falls_back_and_is_flagged():
    for reply, why in (
        ("no names here", "names none of b_0, c_0"),
        (
            "b_0 (after c_0): x\nc_0 (after b_0): y",
            "dependency has a cycle: c_0 -> b_0 -> c_0; expected an acyclic graph",
        ),
        ("b_0 (after c_0): x", "the plan waits for c_0, without a line for it"),
    ):
        game = FlexMG(Anything(), team(Orchestrated("a_0", fallback="none")))
        seen = play(game, {**TEXTS, "a_0": reply})
        assert seen == [("a_0", ()), ("b_0", (reply,)), ("c_0", (reply,))]
        assert game.infos["a_0"]["plan_malformed"] == why
        assert "plan_unknown" not in game.infos["a_0"]


def test_a_plan_is_played_in_a_random_order_too():
    """order="random" holds for the agents that a reply names, too: a linear extension, and read in its order."""
    roles = {agent: Role() for agent in ("a_0", "b_0", "c_0", "d_0")}
    game = FlexMG(Anything(), Team(roles, Orchestrated("a_0")), order="random")
    orders = set()
    for seed in range(20):
        game.reset(seed=seed)
        for text in ("b_0: go\nc_0: go\nd_0 (after b_0, c_0): go", "x", "y"):
            game.step(text)
        orders.add(tuple(turn.agent for turn in game.transcript))
        heard = [m["name"] for m in game.observe("d_0")["messages"] if m["name"] != "task"]
        assert tuple(heard) == tuple(turn.agent for turn in game.transcript)
        assert game.agent_selection == "d_0"
    assert orders == {("a_0", "b_0", "c_0"), ("a_0", "c_0", "b_0")}


def test_names_that_nobody_has_are_left_out_and_listed():
    plan = "Step_1: think\nz_0: sing\nb_0 (after a_0, y_0): go"
    game = FlexMG(Anything(), team(Orchestrated("a_0")))
    assert play(game, {**TEXTS, "a_0": plan}) == [("a_0", ()), ("b_0", (plan,))]
    assert game.infos["a_0"] == {"plan_unknown": ("Step_1", "z_0", "y_0"), "score": 0.0}


@pytest.mark.parametrize(
    ("finish", "reply", "ends"),
    [
        ("FINISH", "we FINISH.", True),
        ("FINISH", "UNFINISHED or FINISH_0", False),
        ("[DONE]", "All is said: [DONE]", True),
        ("[DONE]", "DONE", False),
        ("<end>", "<end>", True),
    ],
)
def test_the_word_that_ends_the_game_may_hold_any_signs(finish, reply, ends):
    game = FlexMG(Anything(), team(Orchestrated("a_0", finish=finish)), rounds=2)
    game.reset(seed=0)
    game.step(reply)
    assert game.over is ends


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_plan_that_cannot_be_run_falls_back_also_in_the_round_that_its_reply_ends(rounds):
    reply = "b_0 (after c_0): x\nFINISH"
    game = FlexMG(Anything(), team(Orchestrated("a_0", fallback="none")), rounds=rounds)
    assert play(game, {**TEXTS, "a_0": reply}) == [("a_0", ()), ("b_0", (reply,)), ("c_0", (reply,))]
    assert game.infos["a_0"]["plan_malformed"] == "the plan waits for c_0, without a line for it"
    play(game, {**TEXTS, "a_0": "z_0: x\nFINISH"})  # nobody is named: there is no plan, and none is malformed
    assert [turn.agent for turn in game.transcript] == ["a_0"] and "plan_malformed" not in game.infos["a_0"]


def test_an_answering_agent_that_never_spoke_gave_no_answer():
    game = FlexMG(Anything(), team(Orchestrated("a_0")))
    play(game, {**TEXTS, "a_0": "FINISH"})
    assert game.outcome.verdicts["c_0"].outcome == "no_answer"
    assert game.outcome.score == 0.0 and all(game.terminations.values())


def test_an_unknown_orchestrator_and_a_lonely_one_are_named():
    with pytest.raises(ValueError, match="orchestrator='z_0': expected one of"):
        team(Orchestrated("z_0"))
    with pytest.raises(ValueError, match="'a_0' is alone"):
        Team({"a_0": Role()}, Orchestrated("a_0"))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"finish": ""}, ValueError, "Orchestrated finish='': expected a non-empty string"),
        ({"finish": " \n"}, ValueError, r"Orchestrated finish=' \\n': expected a non-empty string"),
        ({"finish": None}, TypeError, "Orchestrated finish=None: got NoneType, expected a non-empty string"),
        ({"orchestrator": ""}, ValueError, "Orchestrated orchestrator='': expected a non-empty string"),
        ({"read": "plan"}, TypeError, "Orchestrated read='plan': got str, expected a function of "),
        ({"read": str, "syntax": ""}, TypeError, "Orchestrated read=str: got the class, expected an instance of it"),
        (
            {"read": lambda reply: None, "syntax": ""},
            TypeError,
            r"Orchestrated read=<lambda>: takes \(reply\), expected a function of \(reply, agents\)",
        ),
        ({"syntax": 3}, TypeError, "Orchestrated syntax=3: got int, expected a text or None"),
    ],
)
def test_words_that_are_none_are_named(settings, error, message):
    with pytest.raises(error, match=message):
        Orchestrated(**{"orchestrator": "a_0", **settings})


@pytest.mark.parametrize(
    ("fallback", "message"),
    [
        ("chian", r"Orchestrated fallback='chian': .*expected one of none, chain"),
        (lambda problem, transcript, round: "chain", "Orchestrated fallback=<function.*: .*expected a preset"),
        ([("b_0", "c_0"), ("c_0", "b_0")], r"Orchestrated fallback=\[.*: dependency has a cycle"),
    ],
)
def test_a_fallback_that_is_no_d_is_named(fallback, message):
    with pytest.raises(ValueError, match=message):
        team(Orchestrated("a_0", fallback=fallback))


@pytest.mark.parametrize("plan", ["chain", [("b_0", "c_0")], Dependency.preset("none", ["a_0"]), 3])
def test_a_reader_that_returns_no_plan_is_named(plan):
    game = FlexMG(Anything(), team(Orchestrated("a_0", read=lambda reply, agents: plan, syntax="")))
    with pytest.raises(
        TypeError, match=r"read=<lambda> returned .*: expected None or a Dependency over some of b_0, c_0"
    ):
        play(game, TEXTS)


def test_a_teammates_name_cannot_end_the_game():
    """Otherwise to name it in a plan would end the episode."""
    with pytest.raises(ValueError, match="Orchestrated finish='b_0': expected a word that is no agent's name"):
        team(Orchestrated("a_0", finish="b_0"))


def test_readers():
    assert names_next("b_0 or rather c_0", ABC).agents == ("c_0",)
    assert names_next("b_01 and xb_0", ABC) is None
    plan = names_plan("1. a_0: do\n2) b_0 (after a_0): do\n* c_0 (after a_0, b_0): do\nnobody: x", ABC)
    assert plan.edges == (("a_0", "b_0"), ("a_0", "c_0"), ("b_0", "c_0"))
    with pytest.raises(CycleError):
        names_plan("a_0 (after a_0): x", ABC)


def test_dynamic_games_can_be_forked():
    game = FlexMG(Anything(), team(Orchestrated("a_0")), rounds=2)
    game.reset(seed=0)
    game.step("b_0: go\nc_0 (after b_0): go")
    for twin in (copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        assert twin.agent_selection == "b_0"
        twin.step("said")
        assert twin.agent_selection == "c_0" and game.agent_selection == "b_0"


@pytest.mark.parametrize(
    "reply",
    [
        "- **b_0**: go\n- **c_0** (after b_0): go",
        "1. `b_0`: go\n2. `c_0` (after `b_0`): go",
        "### b_0: go\nc_0 (after a_0 and b_0) : go",
        "* **b_0:** go\n* **c_0 (after b_0):** go",
    ],
)
def test_markdown_is_passed_over(reply):
    assert names_plan(reply, ("b_0", "c_0")).edges == (("b_0", "c_0"),)
    assert unknown_names(reply, ABC) == ()


@pytest.mark.parametrize(
    "piece", [" ", "a", "*", "`", "- ", "1. ", "(after ", "b_0 (after ", "b_0 (after c_0) ", "* *", "and ", "\n"]
)
@pytest.mark.parametrize("start", ["", "a", "b_0 ", "b_0**", "b_0 (after ", "b_0 (after c_0)"])
def test_a_reply_of_any_form_is_read_in_linear_time(start, piece):
    reply = (start + piece * 8000)[:8000]
    game = FlexMG(Anything(), team(Orchestrated("a_0")))
    game.reset(seed=0)
    started = time.process_time()
    game.step(reply)
    assert time.process_time() - started < 1  # a few milliseconds; three runs of spaces in a row took hours
    assert game.transcript[-1].text == reply


ROLES = {"a_0": Role("You plan."), "b_0": Role(summary="adds up"), "c_0": Role(answers=True)}


def told(agent, **settings):
    game = FlexMG(Anything(), Team(ROLES, settings.pop("dependency", Orchestrated("a_0"))), **settings)
    game.reset(seed=0)
    assert game.observation_space(agent).contains(game.observe(agent))
    return [m["content"] for m in game.observe(agent)["messages"] if m["role"] == "system"]


def test_the_orchestrator_is_told_its_teammates_and_how_to_write():
    assert told("a_0")[0].splitlines() == [
        "You plan.",
        "",
        "You direct the team: you speak first in each round, and your reply decides who acts after you. Who acts reads "
        "your reply. Your teammates:",
        "- b_0: adds up",
        "- c_0: gives the team's answer",
        "Write one line for each teammate that is to act:",
        "b_0: what it is to do",
        "c_0 (after b_0): what it is to do",
        'Whom you name after "after" acts before, and is read, too. Who has no line does not act.',
        "If your reply cannot be read in this way, all of them act: b_0, c_0.",
    ]
    assert told("b_0") == told("c_0") == []
    assert told("a_0", dependency="chain") == ["You plan."]


def test_what_it_is_told_to_write_is_what_is_read():
    lines = told("a_0")[0].splitlines()
    plan = "\n".join(line for line in lines if line.endswith(": what it is to do"))
    assert names_plan(plan, ("b_0", "c_0")) == Dependency.from_edges(["b_0", "c_0"], [("b_0", "c_0")])
    (line,) = [x for x in told("a_0", dependency=Orchestrated("a_0", read=names_next))[0].splitlines() if "as in" in x]
    assert line == "Name the one that is to act next, as in: b_0. Where you name several, the last name counts."
    assert names_next(line, ("b_0", "c_0")).agents == ("b_0",)


def test_the_word_that_ends_the_game_is_told_where_there_are_rounds():
    assert "There are at most 3 rounds. The word DONE in your reply ends" in told(
        "a_0", rounds=3, dependency=Orchestrated("a_0", finish="DONE")
    )[0].replace("\n", " ")
    assert "FINISH" not in told("a_0")[0]


def test_a_reader_of_your_own_comes_with_its_syntax():
    def one(reply, agents):
        return Dependency.preset("none", [agents[int(reply)]])

    with pytest.raises(ValueError, match=r"read=one: expected syntax= with it"):
        Orchestrated("a_0", read=one)
    assert "\nSay 0 or 1.\n" in told("a_0", dependency=Orchestrated("a_0", read=one, syntax="Say 0 or 1."))[0]
    assert (
        "c_0: gives the team's answer\nIf your" in told("a_0", dependency=Orchestrated("a_0", read=one, syntax=""))[0]
    )
    game = FlexMG(Anything(), Team(ROLES, Orchestrated("a_0", read=one, syntax="")))
    assert play(game, {**TEXTS, "a_0": "1"}) == [("a_0", ()), ("c_0", ("1",))]


def test_an_anonymous_name_tells_nothing():
    roles = {f"agent_{i}": Role(answers=i == 2) for i in range(3)}
    game = FlexMG(Anything(), Team(roles, Orchestrated("agent_0")))
    game.reset(seed=0)
    assert "- agent_1\n- agent_2: gives the team's answer\n" in game.observe("agent_0")["messages"][0]["content"]


def test_the_d_of_the_round_is_known_after_the_reply():
    game = FlexMG(Anything(), team(Orchestrated("a_0")))
    game.reset(seed=0)
    assert game.dependency == Dependency.preset("none", ["a_0"])
    game.step("c_0: go")
    assert game.dependency == Dependency.from_edges(["a_0", "c_0"], [("a_0", "c_0")])


def test_what_a_reply_may_bring_about_is_drawn_dashed():
    drawn = team(Orchestrated("b_0")).dependency
    assert drawn.to_mermaid().splitlines() == ["flowchart LR", "    b_0 -.-> a_0", "    b_0 -.-> c_0"]
    assert '    "b_0" -> "a_0" [style=dashed]' in drawn.to_graphviz().splitlines()


def test_orchestrated_teams_are_compared_by_the_d_they_fall_back_to():
    matrix = np.array([[0, 1], [0, 0]])
    same = [matrix, matrix.tolist(), [matrix[0], matrix[1]]]
    unbound = [Orchestrated("a_0", fallback=fallback) for fallback in same]
    assert unbound[0] == unbound[1] == unbound[2] != Orchestrated("a_0", fallback=matrix.T)
    bound = [schedule.bound(ABC) for schedule in (*unbound, Orchestrated("a_0"))]
    assert bound == [bound[0]] * 4 and len(set(bound)) == 1  # "chain" is that matrix
    assert bound[0] != Orchestrated("a_0", fallback="none").bound(ABC)
    assert bound[0] != Orchestrated("a_0", finish="DONE").bound(ABC)
    assert bound[0] != unbound[0] and bound[0] != "chain"
