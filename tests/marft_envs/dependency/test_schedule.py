"""Schedules that list or compute D for each round: their effect on the game, their text and their diagrams."""

import functools

import numpy as np
import pytest

from marft_envs import Dependency, FlexMG
from marft_envs.dependency.graph import CycleError
from marft_envs.dependency.orchestration import Orchestrated, read_next
from marft_envs.dependency.schedule import PerRound, Schedule, as_schedule
from tests.marft_envs.three_agents import ABC, TEXTS, Anything, play, team


def test_a_list_has_one_d_per_round():
    game = FlexMG(Anything(), team(["chain", "none"]), rounds=2, memory="none")
    assert play(game, TEXTS) == [
        ("a_0", ()), ("b_0", ("A_0",)), ("c_0", ("B_0",)), ("a_0", ()), ("b_0", ()), ("c_0", ()),
    ]  # fmt: skip
    assert game.metadata["is_parallelizable"] is False


@pytest.mark.parametrize(
    "spec",
    [["chain", "none"], {"rounds": ["chain", []]}, [Dependency.preset("chain", ABC), np.zeros((3, 3))]],
)
def test_lists_of_presets_matrices_and_dependencies(spec):
    schedule = as_schedule(spec, ABC)
    assert isinstance(schedule, PerRound)
    assert [len(d.edges) for d in schedule.dependencies] == [2, 0]


def test_edges_and_rows_of_a_matrix_are_not_rounds():
    assert as_schedule([("a_0", "b_0"), ("b_0", "c_0")], ABC).static == Dependency.preset("chain", ABC)
    assert as_schedule([[0, 1, 0], [0, 0, 1], [0, 0, 0]], ABC).static == Dependency.preset("chain", ABC)


def test_the_number_of_rounds_must_match_the_list():
    with pytest.raises(ValueError, match="rounds=3: expected 2, one for each D of the list"):
        FlexMG(Anything(), team(["chain", "none"]), rounds=3)
    with pytest.raises(ValueError, match="expected only 'rounds'"):
        team({"round": ["chain"]})


@pytest.mark.parametrize(
    ("rounds", "got"),
    [
        (3, "3: got int"),
        ("chain", "'chain': got str"),
        (None, "None: got NoneType"),
        ({"a": 1}, r"\{'a': 1\}: got dict"),
        (Dependency.preset("none", ["a_0"]), ".*: got Dependency"),
    ],
)
def test_rounds_that_are_not_a_list_are_named_in_the_error(rounds, got):
    with pytest.raises(TypeError, match=rf"dependency rounds={got}, expected a list of one D for each round"):
        as_schedule({"rounds": rounds}, ABC)


def test_a_three_dimensional_array_has_one_matrix_per_round():
    assert len(as_schedule({"rounds": np.zeros((2, 3, 3))}, ABC).dependencies) == 2


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


@pytest.mark.parametrize(
    ("late", "error", "message", "cause"),
    [
        (lambda: 3, ValueError, "dependency function decide, round 1: dependency", (TypeError, ValueError)),
        (lambda: "chian", ValueError, "dependency function decide, round 1: .*'chian'", ValueError),
        (lambda: [("a_0", "b_0"), ("b_0", "a_0")], ValueError, "decide, round 1: dependency has a cycle", CycleError),
        (lambda: Dependency.preset("none", ["z_0"]), ValueError, r"decide, round 1: .* over \['z_0'\]", ValueError),
        (lambda: {}["x"], RuntimeError, "dependency function decide, round 1: raised KeyError: 'x'", KeyError),
    ],
)
def test_errors_of_a_function_name_it_and_the_round(late, error, message, cause):
    def decide(problem, transcript, round):
        return late() if round else "chain"

    game = FlexMG(Anything(), team(decide), rounds=2)
    with pytest.raises(error, match=message) as fault:
        play(game, TEXTS)
    assert len(game.transcript) == 3 and isinstance(fault.value.__cause__, cause)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda problem, round: "chain", r"dependency=<lambda>: takes \(problem, round\), expected a function of "),
        (lambda problem, transcript, round, more: "chain", r"expected a function of \(problem, transcript, round\)"),
        (
            lambda problem, transcript, *, round: "chain",
            r"dependency=<lambda>: takes \(problem, transcript, \*, round\)",
        ),
        (functools.partial(max, 1), None),  # a built-in function has no signature
        (lambda *any: "chain", None),
        (lambda problem, transcript, round, more="chain": more, None),
        (Orchestrated, "dependency=Orchestrated: got the class, expected an instance of it or a function of "),
    ],
)
def test_a_function_with_the_wrong_arguments_is_an_error_at_construction(function, message):
    if message is None:
        assert as_schedule(function, ABC).function is function
        return
    with pytest.raises(TypeError, match=message):
        team(function)


def test_the_generation_has_the_agents_whose_parents_have_acted():
    edges = [("a_0", "c_0")]
    game = FlexMG(Anything(), team(edges))
    game.reset(seed=0)
    assert game.generation == ("a_0", "b_0")
    game.step("x")
    assert game.generation == ("b_0", "c_0")
    before = game.observe("c_0")
    game.step("y")
    assert game.observe("c_0") == before  # b_0 acted in between, and is not a parent
    assert game.generation == ("c_0",)
    game.step("z")
    assert game.generation == ()


def always_star(problem, transcript, round):
    """Every agent sees the first.

    The second paragraph is not printed.
    """
    return "star"


@pytest.mark.parametrize(
    ("dependency", "line"),
    [
        ([("a_0", "b_0")], "Static(Dependency.from_edges(['a_0', 'b_0', 'c_0'], [('a_0', 'b_0')]))"),
        (
            {"rounds": [[("a_0", "b_0")]]},
            "PerRound([Dependency.from_edges(['a_0', 'b_0', 'c_0'], [('a_0', 'b_0')])], ['a_0', 'b_0', 'c_0'])",
        ),
        (always_star, "FunctionSchedule(always_star, ['a_0', 'b_0', 'c_0'])"),
        (Orchestrated("b_0"), "Orchestrated('b_0', read=read_plan, agents=['a_0', 'b_0', 'c_0'])"),
    ],
)
def test_repr_is_one_line(dependency, line):
    one = team(dependency)
    assert repr(one.schedule) == line
    assert " at 0x" not in repr(one)


def test_a_custom_schedule_has_a_repr():
    class Own(Schedule):
        agents = ("a_0", "b_0")

        def begin(self, problem, transcript, round):
            return Dependency.preset("chain", self.agents)

        def graphs(self):
            return []

    assert repr(Own()) == "<Own over a_0, b_0>"


@pytest.mark.parametrize(
    ("dependency", "printed"),
    [
        ("chain", ["a_0 sees nobody", "b_0 sees a_0", "c_0 sees b_0"]),
        (
            ["star", "none"],
            [
                *("round 0:", "  a_0 sees nobody", "  b_0 sees a_0", "  c_0 sees a_0"),
                *("round 1:", "  a_0 sees nobody", "  b_0 sees nobody", "  c_0 sees nobody"),
            ],
        ),
        (
            always_star,
            [
                "decided at the beginning of each round by the function always_star(problem, transcript, round): "
                "Every agent sees the first.",
                "over a_0, b_0, c_0",
            ],
        ),
        (
            Orchestrated("b_0", read=read_next, finish="DONE"),
            [
                "b_0 acts first in each round; every agent that acts after it sees its reply",
                "the reply, read by read_next, decides which of a_0, c_0 act, and which messages each of them sees",
                "DONE in the reply ends the episode with the round",
                "if the reply cannot be read:",
                "  a_0 sees nobody",
                "  c_0 sees a_0",
            ],
        ),
    ],
)
def test_every_schedule_prints_what_each_agent_sees(dependency, printed):
    made = team(dependency)
    assert str(made.dependency).splitlines() == printed
    assert made == team(dependency) == made.with_stop(None)
    assert made != team("full")


def test_the_games_dependency_is_that_of_the_round_being_played():
    game = FlexMG(Anything(), team(["chain", "star"]), rounds=2)
    game.reset(seed=0)
    assert game.dependency == Dependency.preset("chain", ABC)
    for text in "xyz":
        game.step(text)
    assert game.dependency == Dependency.preset("star", ABC)


def test_each_round_of_a_list_is_drawn_as_a_subgraph():
    schedule = as_schedule({"rounds": [[("a_0", "b_0")], []]}, ABC)
    assert schedule.to_mermaid().splitlines() == [
        "flowchart LR",
        '    subgraph p0["round 0"]',
        '        p0_c_0["c_0"]',
        '        p0_a_0["a_0"] --> p0_b_0["b_0"]',
        "    end",
        '    subgraph p1["round 1"]',
        *(f'        p1_{agent}["{agent}"]' for agent in ABC),
        "    end",
    ]
    drawn = schedule.to_graphviz().splitlines()
    assert drawn[2:4] == ["    subgraph cluster_0 {", '        label="round 0"']
    assert '        "0 a_0" -> "0 b_0"' in drawn and '        "1 a_0" [label="a_0"]' in drawn


def test_a_function_cannot_be_drawn_before_the_round():
    with pytest.raises(ValueError, match=r"decided by the function always_star .* env\.unwrapped\.dependency"):
        team(always_star).dependency.to_mermaid()
    assert as_schedule("chain", ABC).to_mermaid() == Dependency.preset("chain", ABC).to_mermaid()
