"""The orchestrator: its briefing, the reading of its replies, and their effect on the game."""

import copy
import pickle
import time

import numpy as np
import pytest

from marft_envs import CycleError, Dependency, FlexMG, Role, Team
from marft_envs.dependency.orchestration import Orchestrated, read_next, read_plan, unknown_names
from tests.marft_envs.three_agents import ABC, TEXTS, Anything, play, team


def test_read_next_selects_one_agent_per_round():
    game = FlexMG(Anything(), team(Orchestrated("a_0", read=read_next)), rounds=3, memory="none")
    seen = play(game, {**TEXTS, "a_0": ["Next: b_0", "now c_0 please", "FINISH"], "c_0": "yes"})
    assert seen == [
        ("a_0", ()), ("b_0", ("Next: b_0",)), ("a_0", ()), ("c_0", ("now c_0 please",)), ("a_0", ()),
    ]  # fmt: skip
    assert game.outcome.score == 1.0  # c_0's message of the second round is graded
    assert game.round == 2


def test_a_plan_orders_the_agents_that_it_names():
    plan = "Let us see.\n- c_0: guess\n- b_0 (after c_0): check it"
    game = FlexMG(Anything(), team(Orchestrated("a_0")), rounds=1)
    assert play(game, {**TEXTS, "a_0": plan}) == [("a_0", ()), ("c_0", (plan,)), ("b_0", (plan, "C_0"))]


def test_an_invalid_plan_uses_the_fallback_and_is_flagged():
    for reply, why in (
        ("no names here", "the reply names none of b_0, c_0"),
        (
            "b_0 (after c_0): x\nc_0 (after b_0): y",
            "dependency has a cycle: c_0 -> b_0 -> c_0; expected an acyclic graph",
        ),
        ("b_0 (after c_0): x", "the plan waits for c_0 but has no line for it"),
    ):
        game = FlexMG(Anything(), team(Orchestrated("a_0", fallback="none")))
        seen = play(game, {**TEXTS, "a_0": reply})
        assert seen == [("a_0", ()), ("b_0", (reply,)), ("c_0", (reply,))]
        assert game.infos["a_0"]["plan_malformed"] == why
        assert "plan_unknown" not in game.infos["a_0"]


def test_a_plan_is_executed_in_random_order():
    """order="random" also applies to the agents that a reply names, and messages are listed in that order."""
    roles = {agent: Role() for agent in ("a_0", "b_0", "c_0", "d_0")}
    game = FlexMG(Anything(), Team(roles, Orchestrated("a_0")), order="random")
    orders = set()
    for seed in range(20):
        game.reset(seed=seed)
        for text in ("b_0: go\nc_0: go\nd_0 (after b_0, c_0): go", "x", "y"):
            game.step(text)
        orders.add(tuple(turn.agent for turn in game.transcript))
        senders = [m["name"] for m in game.observe("d_0")["messages"] if m["name"] != "task"]
        assert tuple(senders) == tuple(turn.agent for turn in game.transcript)
        assert game.agent_selection == "d_0"
    assert orders == {("a_0", "b_0", "c_0"), ("a_0", "c_0", "b_0")}


def test_unknown_names_are_ignored_and_listed():
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
def test_the_finish_word_may_contain_any_characters(finish, reply, ends):
    game = FlexMG(Anything(), team(Orchestrated("a_0", finish=finish)), rounds=2)
    game.reset(seed=0)
    game.step(reply)
    assert game.over is ends


@pytest.mark.parametrize("rounds", [1, 2])
def test_an_invalid_plan_uses_the_fallback_even_if_its_reply_ends_the_game(rounds):
    reply = "b_0 (after c_0): x\nFINISH"
    game = FlexMG(Anything(), team(Orchestrated("a_0", fallback="none")), rounds=rounds)
    assert play(game, {**TEXTS, "a_0": reply}) == [("a_0", ()), ("b_0", (reply,)), ("c_0", (reply,))]
    assert game.infos["a_0"]["plan_malformed"] == "the plan waits for c_0 but has no line for it"
    play(game, {**TEXTS, "a_0": "z_0: x\nFINISH"})  # no teammate is named, so there is no plan that could be malformed
    assert [turn.agent for turn in game.transcript] == ["a_0"] and "plan_malformed" not in game.infos["a_0"]


def test_an_answering_agent_that_never_acts_gives_no_answer():
    game = FlexMG(Anything(), team(Orchestrated("a_0")))
    play(game, {**TEXTS, "a_0": "FINISH"})
    assert game.outcome.verdicts["c_0"].outcome == "no_answer"
    assert game.outcome.score == 0.0 and all(game.terminations.values())


def test_an_unknown_orchestrator_and_a_team_of_one_are_errors():
    with pytest.raises(ValueError, match="orchestrator='z_0': expected one of"):
        team(Orchestrated("z_0"))
    with pytest.raises(ValueError, match="'a_0' is the only agent"):
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
        ({"syntax": 3}, TypeError, "Orchestrated syntax=3: got int, expected a string or None"),
    ],
)
def test_invalid_arguments_are_named_in_the_error(settings, error, message):
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
def test_an_invalid_fallback_is_named_in_the_error(fallback, message):
    with pytest.raises(ValueError, match=message):
        team(Orchestrated("a_0", fallback=fallback))


@pytest.mark.parametrize("plan", ["chain", [("b_0", "c_0")], Dependency.preset("none", ["a_0"]), 3])
def test_an_invalid_result_of_a_reader_is_named_in_the_error(plan):
    game = FlexMG(Anything(), team(Orchestrated("a_0", read=lambda reply, agents: plan, syntax="")))
    with pytest.raises(
        TypeError, match=r"read=<lambda> returned .*: expected None or a Dependency over some of b_0, c_0"
    ):
        play(game, TEXTS)


def test_the_finish_word_cannot_be_an_agents_name():
    """Otherwise naming that agent in a plan would end the episode."""
    with pytest.raises(ValueError, match="Orchestrated finish='b_0': expected a word other than the agents' names"):
        team(Orchestrated("a_0", finish="b_0"))


def test_read_next_and_read_plan():
    assert read_next("b_0 or rather c_0", ABC).agents == ("c_0",)
    assert read_next("b_01 and xb_0", ABC) is None
    plan = read_plan("1. a_0: do\n2) b_0 (after a_0): do\n* c_0 (after a_0, b_0): do\nnobody: x", ABC)
    assert plan.edges == (("a_0", "b_0"), ("a_0", "c_0"), ("b_0", "c_0"))
    with pytest.raises(CycleError):
        read_plan("a_0 (after a_0): x", ABC)


def test_a_game_can_be_copied_in_the_middle_of_a_plan():
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
def test_markdown_is_ignored(reply):
    assert read_plan(reply, ("b_0", "c_0")).edges == (("b_0", "c_0"),)
    assert unknown_names(reply, ABC) == ()


@pytest.mark.parametrize(
    "piece", [" ", "a", "*", "`", "- ", "1. ", "(after ", "b_0 (after ", "b_0 (after c_0) ", "* *", "and ", "\n"]
)
@pytest.mark.parametrize("start", ["", "a", "b_0 ", "b_0**", "b_0 (after ", "b_0 (after c_0)"])
def test_any_reply_is_read_in_linear_time(start, piece):
    reply = (start + piece * 8000)[:8000]
    game = FlexMG(Anything(), team(Orchestrated("a_0")))
    game.reset(seed=0)
    started = time.process_time()
    game.step(reply)
    assert time.process_time() - started < 1  # milliseconds; with backtracking, long runs of spaces took hours
    assert game.transcript[-1].text == reply


ROLES = {"a_0": Role("You plan."), "b_0": Role(summary="adds up"), "c_0": Role(answers=True)}


def system_messages(agent, **settings):
    game = FlexMG(Anything(), Team(ROLES, settings.pop("dependency", Orchestrated("a_0"))), **settings)
    game.reset(seed=0)
    assert game.observation_space(agent).contains(game.observe(agent))
    return [m["content"] for m in game.observe(agent)["messages"] if m["role"] == "system"]


def test_the_briefing_lists_teammates_and_the_form_of_a_reply():
    assert system_messages("a_0")[0].splitlines() == [
        "You plan.",
        "",
        "You direct the team. In each round you act first, and your reply decides which teammates act next. They read "
        "your reply. Your teammates:",
        "- b_0: adds up",
        "- c_0: gives the team's answer",
        "Write one line for each teammate that must act:",
        "b_0: its task",
        "To make a teammate wait for another one and read its message, write:",
        "c_0 (after b_0): its task",
        "A teammate without a line does not act.",
        "If your reply does not have the required form, all teammates act: b_0, c_0.",
    ]
    assert system_messages("b_0") == system_messages("c_0") == []
    assert system_messages("a_0", dependency="chain") == ["You plan."]


def test_the_examples_in_the_briefing_can_be_read():
    lines = system_messages("a_0")[0].splitlines()
    plan = "\n".join(line for line in lines if line.endswith(": its task"))
    assert read_plan(plan, ("b_0", "c_0")) == Dependency.from_edges(["b_0", "c_0"], [("b_0", "c_0")])
    briefing = system_messages("a_0", dependency=Orchestrated("a_0", read=read_next))[0]
    (line,) = [line for line in briefing.splitlines() if "for example" in line]
    assert line == (
        "Write the name of the teammate that must act next, for example: b_0. If you write several names, the last one "
        "counts."
    )
    assert read_next(line, ("b_0", "c_0")).agents == ("b_0",)


def test_the_briefing_names_the_finish_word_only_if_there_are_several_rounds():
    several = system_messages("a_0", rounds=3, dependency=Orchestrated("a_0", finish="DONE"))[0]
    assert several.endswith(
        "\nThere are at most 3 rounds. Write DONE to end the work after this round. If you write DONE and name no "
        "teammate, the work ends at once."
    )
    assert "FINISH" not in system_messages("a_0")[0]


def test_a_custom_reader_requires_its_syntax():
    def read(reply, agents):
        return Dependency.preset("none", [agents[int(reply)]])

    def briefing(syntax):
        return system_messages("a_0", dependency=Orchestrated("a_0", read=read, syntax=syntax))[0]

    with pytest.raises(ValueError, match=r"read=read: expected syntax= as well"):
        Orchestrated("a_0", read=read)
    assert "\nSay 0 or 1.\n" in briefing("Say 0 or 1.")
    assert "c_0: gives the team's answer\nIf your" in briefing("")
    game = FlexMG(Anything(), Team(ROLES, Orchestrated("a_0", read=read, syntax="")))
    assert play(game, {**TEXTS, "a_0": "1"}) == [("a_0", ()), ("c_0", ("1",))]


def test_a_teammate_without_a_summary_is_listed_by_name():
    roles = {f"agent_{i}": Role(answers=i == 2) for i in range(3)}
    game = FlexMG(Anything(), Team(roles, Orchestrated("agent_0")))
    game.reset(seed=0)
    assert "- agent_1\n- agent_2: gives the team's answer\n" in game.observe("agent_0")["messages"][0]["content"]


def test_the_reply_extends_the_d_of_the_round():
    game = FlexMG(Anything(), team(Orchestrated("a_0")))
    game.reset(seed=0)
    assert game.dependency == Dependency.preset("none", ["a_0"])
    game.step("c_0: go")
    assert game.dependency == Dependency.from_edges(["a_0", "c_0"], [("a_0", "c_0")])


def test_edges_that_depend_on_a_reply_are_dashed():
    drawn = team(Orchestrated("b_0")).dependency
    assert drawn.to_mermaid().splitlines() == ["flowchart LR", "    b_0 -.-> a_0", "    b_0 -.-> c_0"]
    assert '    "b_0" -> "a_0" [style=dashed]' in drawn.to_graphviz().splitlines()


def test_equality_compares_the_fallback_as_a_graph():
    matrix = np.array([[0, 1], [0, 0]])
    same = [matrix, matrix.tolist(), [matrix[0], matrix[1]]]
    unbound = [Orchestrated("a_0", fallback=fallback) for fallback in same]
    assert unbound[0] == unbound[1] == unbound[2] != Orchestrated("a_0", fallback=matrix.T)
    bound = [schedule.bind(ABC) for schedule in (*unbound, Orchestrated("a_0"))]
    assert bound == [bound[0]] * 4 and len(set(bound)) == 1  # the preset "chain" is the same matrix
    assert bound[0] != Orchestrated("a_0", fallback="none").bind(ABC)
    assert bound[0] != Orchestrated("a_0", finish="DONE").bind(ABC)
    assert bound[0] != unbound[0] and bound[0] != "chain"
