"""Dependency: execution order, generations, cycles, and every form in which D can be written."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marft_envs.dependency.graph import PRESETS, CycleError, Dependency, as_dependency

ABC = ("a_0", "b_0", "c_0")
ABCD = (*ABC, "d_0")


@st.composite
def dags(draw):
    """A random DAG over 1 to 6 agents, in a listed order that is not its execution order."""
    n = draw(st.integers(1, 6))
    upper = np.triu(np.array(draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n))).reshape(n, n), 1)
    shuffle = draw(st.permutations(range(n)))
    return Dependency([f"x_{i}" for i in range(n)], upper[np.ix_(shuffle, shuffle)])


@given(dags(), st.integers(0, 9))
def test_every_order_is_a_linear_extension(d, seed):
    for order in (d.order, d.random_order(np.random.default_rng(seed))):
        assert sorted(order) == sorted(d.agents)
        assert all(order.index(seen) < order.index(seeing) for seen, seeing in d.edges)


@given(dags())
def test_generations_have_no_edges_inside_and_follow_the_order(d):
    edges = set(d.edges)
    assert [a for g in d.generations for a in g] == list(d.order)
    for generation in d.generations:
        assert not any((a, b) in edges for a in generation for b in generation)


def test_the_error_names_a_cycle():
    with pytest.raises(CycleError, match=r"cycle: b_0 -> c_0 -> b_0|cycle: c_0 -> b_0 -> c_0"):
        Dependency.from_edges(ABC, [("a_0", "b_0"), ("b_0", "c_0"), ("c_0", "b_0")])
    with pytest.raises(CycleError, match="a_0 -> a_0"):
        Dependency(["a_0"], [[1]])


@given(st.integers(2, 6), st.data())
def test_the_named_cycle_is_a_cycle_and_none_is_missed(n, data):
    matrix = np.array(data.draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n))).reshape(n, n)
    agents = [f"x_{i}" for i in range(n)]
    try:
        Dependency(agents, matrix)
    except CycleError as error:
        walk = [*error.cycle, error.cycle[0]]
        assert all(matrix[agents.index(i), agents.index(j)] for i, j in pairwise(walk))
    else:
        reach = matrix.astype(int)
        for _ in range(n):
            reach = ((reach + reach @ matrix) > 0).astype(int)
        assert not reach.diagonal().any()


def test_presets():
    edges = {name: set(Dependency.preset(name, ABCD).edges) for name in PRESETS}
    assert edges["none"] == set()
    assert edges["chain"] == {("a_0", "b_0"), ("b_0", "c_0"), ("c_0", "d_0")}
    assert edges["star"] == {("a_0", x) for x in ABCD[1:]}
    assert edges["tree"] == {("a_0", "b_0"), ("a_0", "c_0"), ("b_0", "d_0")}
    assert edges["layers"] == {(x, y) for x in ABCD[:2] for y in ABCD[2:]}
    assert len(edges["full"]) == 6


def test_all_forms_of_a_spec_give_the_same_dependency():
    expected = Dependency.preset("chain", ABC)
    matrix = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    for spec in ("chain", matrix, np.array(matrix), expected.edges, [list(e) for e in expected.edges], expected):
        assert as_dependency(spec, ABC) == expected
    assert as_dependency([], ABC) == Dependency.preset("none", ABC)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("ring", ValueError, "dependency='ring': expected one of none, chain"),
        ([[0, 1], [0, 0]], ValueError, r"shape \(2, 2\): expected \(3, 3\)"),
        ([[0, 2, 0], [0, 0, 0], [0, 0, 0]], ValueError, r"entries \[0, 2\]: expected only 0 and 1"),
        ([[0, None, 0], [0, 0, 0], [0, 0, 0]], ValueError, r"entries \[0, None\]: expected only 0 and 1"),
        ([("a_0", "z_0")], ValueError, "names 'z_0': expected one of"),
        ([("a_0", "b_0", "c_0")], ValueError, "expected a pair"),
        (7, TypeError, "dependency=7: expected a preset"),
        ([1, 2, 3], ValueError, r"dependency edge 1: expected a pair \(seen agent, seeing agent\)"),
        ([[0, 1, 0], 2], ValueError, r"dependency edge \[0, 1, 0\]: expected a pair"),
        ([[0, 1, 0], [0, 0, 1], [0]], ValueError, r"dependency matrix=\[\[0, 1, 0\], .*: expected rows of one length"),
        (Dependency.preset("chain", ABCD), ValueError, r"is over agents .*: expected \['a_0', 'b_0', 'c_0'\]"),
    ],
)
def test_invalid_specs_are_named_in_the_error(spec, error, message):
    with pytest.raises(error, match=message):
        as_dependency(spec, ABC)


@pytest.mark.parametrize(
    ("agents", "error", "message"),
    [
        ([], ValueError, "expected at least one agent and no name twice"),
        (["a_0", "a_0"], ValueError, r"agents=\['a_0', 'a_0'\]: expected at least one agent and no name twice"),
        (["a_0", ""], ValueError, "agent='': expected a non-empty string"),
        (["a_0", 1], TypeError, "agent=1: got int, expected a non-empty string"),
    ],
)
def test_invalid_names_are_named_in_the_error(agents, error, message):
    with pytest.raises(error, match=message):
        Dependency.preset("none", agents)


def test_str_lists_what_each_agent_sees():
    assert str(Dependency.preset("chain", ABC)).splitlines() == [
        "a_0 sees nobody", "b_0 sees a_0", "c_0 sees b_0",
    ]  # fmt: skip
    assert str(Dependency.preset("full", ABC)).splitlines()[-1] == "c_0 sees a_0, b_0"


def test_diagrams():
    d = Dependency.from_edges(ABC, [("a_0", "b_0")])
    assert d.to_mermaid().splitlines() == ["flowchart LR", "    c_0", "    a_0 --> b_0"]
    assert d.to_graphviz().splitlines()[2:] == ['    "c_0"', '    "a_0" -> "b_0"', "}"]
