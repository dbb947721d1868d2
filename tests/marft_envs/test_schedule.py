"""D that changes: per round, by a function, by an orchestrator's reply; and what the game makes of it."""

import copy
import pickle

import numpy as np
import pytest

from marft_envs import CycleError, Dependency, FlexMG, Problem, Role, Task, Team, Verdict
from marft_envs.schedule import Orchestrated, PerRound, as_schedule, names_next, names_plan

ABC = ("a_0", "b_0", "c_0")


class Anything(Task):
    name, size = "anything", 1

    def problem(self, index):
        return Problem(index, "Go.", "yes", notes={"secret": 1})

    def grade(self, answer, problem):
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("no")


def play(game, texts):
    """texts: agent -> text or list of texts in turn. Returns (agent, contents of others' messages) for each turn."""
    queues = {a: list(t) if isinstance(t, list) else None for a, t in texts.items()}
    game.reset(seed=0)
    seen = []
    while not game.over:
        agent = game.agent_selection
        messages = game.observe(agent)["messages"]
        seen.append((agent, tuple(m["content"] for m in messages if m["name"] not in ("task", agent))))
        game.step(queues[agent].pop(0) if queues[agent] is not None else texts[agent])
    return seen


def team(dependency, **keywords):
    return Team({a: Role(answers=a == "c_0") for a in ABC}, dependency, **keywords)


TEXTS = {a: a.upper() for a in ABC}


def test_one_dependency_a_round():
    game = FlexMG(Anything(), team(["chain", "none"]), rounds=2, memory="none")
    assert play(game, TEXTS) == [
        ("a_0", ()), ("b_0", ("A_0",)), ("c_0", ("B_0",)), ("a_0", ()), ("b_0", ()), ("c_0", ()),
    ]  # fmt: skip
    assert game.metadata["is_parallelizable"] is False


@pytest.mark.parametrize(
    "spec",
    [["chain", "none"], {"rounds": ["chain", []]}, [Dependency.preset("chain", ABC), np.zeros((3, 3))]],
)
def test_ways_of_writing_a_list(spec):
    schedule = as_schedule(spec, ABC)
    assert isinstance(schedule, PerRound)
    assert [len(d.edges) for d in schedule.dependencies] == [2, 0]


def test_edges_are_not_taken_for_rounds():
    assert as_schedule([("a_0", "b_0"), ("b_0", "c_0")], ABC).static == Dependency.preset("chain", ABC)
    assert as_schedule([[0, 1, 0], [0, 0, 1], [0, 0, 0]], ABC).static == Dependency.preset("chain", ABC)


def test_rounds_must_fit_the_list():
    with pytest.raises(ValueError, match="rounds=3: expected 2, one for each D of the list"):
        FlexMG(Anything(), team(["chain", "none"]), rounds=3)
    with pytest.raises(ValueError, match="expected only 'rounds'"):
        team({"round": ["chain"]})


def test_a_function_gets_the_public_problem_and_the_transcript():
    calls = []

    def decide(problem, transcript, round):
        calls.append((problem.prompt, hasattr(problem, "gold"), hasattr(problem, "notes"), len(transcript), round))
        return Dependency.preset("none", ["c_0"]) if round else "chain"

    game = FlexMG(Anything(), team(decide), rounds=2, memory="own")
    assert play(game, TEXTS) == [("a_0", ()), ("b_0", ("A_0",)), ("c_0", ("B_0",)), ("c_0", ())]
    assert calls == [("Go.", False, False, 0, 0), ("Go.", False, False, 3, 1)]
    game = FlexMG(Anything(), team(lambda *_: Dependency.preset("none", ["z_0"])))
    with pytest.raises(ValueError, match=r"over \['z_0'\], which are not in the team"):
        game.reset(seed=0)


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
        ("no names here", "names no agent"),
        ("b_0 (after c_0): x\nc_0 (after b_0): y", "dependency has a cycle: .*"),
        ("b_0 (after z_0): x", "names 'z_0'"),
    ):
        game = FlexMG(Anything(), team(Orchestrated("a_0", fallback="none")))
        seen = play(game, {**TEXTS, "a_0": reply})
        assert seen == [("a_0", ()), ("b_0", (reply,)), ("c_0", (reply,))]
        assert __import__("re").search(why, game.infos["a_0"]["plan_malformed"])


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


def test_readers():
    assert names_next("b_0 or rather c_0", ABC).agents == ("c_0",)
    assert names_next("b_01 and xb_0", ABC) is None
    plan = names_plan("1. a_0: do\n2) b_0 (after a_0): do\n* c_0 (after a_0, b_0): do\nnobody: x", ABC)
    assert plan.edges == (("a_0", "b_0"), ("a_0", "c_0"), ("b_0", "c_0"))
    with pytest.raises(CycleError):
        names_plan("a_0 (after a_0): x", ABC)


def test_generation_is_an_antichain_whose_parents_have_spoken():
    edges = [("a_0", "c_0")]
    game = FlexMG(Anything(), team(edges))
    game.reset(seed=0)
    assert game.generation == ("a_0", "b_0")
    game.step("x")
    assert game.generation == ("b_0", "c_0")
    before = game.observe("c_0")
    game.step("y")
    assert game.observe("c_0") == before  # b_0 spoke in between, and is no parent
    assert game.generation == ("c_0",)
    game.step("z")
    assert game.generation == ()


def test_dynamic_games_can_be_forked():
    game = FlexMG(Anything(), team(Orchestrated("a_0")), rounds=2)
    game.reset(seed=0)
    game.step("b_0: go\nc_0 (after b_0): go")
    for twin in (copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        assert twin.agent_selection == "b_0"
        twin.step("said")
        assert twin.agent_selection == "c_0" and game.agent_selection == "b_0"


def test_drawings():
    d = Dependency.from_edges(ABC, [("a_0", "b_0")])
    assert d.to_mermaid().splitlines() == ["flowchart LR", "    c_0", "    a_0 --> b_0"]
    assert d.to_graphviz().splitlines()[2:] == ['    "c_0"', '    "a_0" -> "b_0"', "}"]
