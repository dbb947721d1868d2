"""The dependency function D of the Flexible Markov Game, as an acyclic graph over the agents of one round.

D : A x A -> {0, 1}, with D(a_i, a_j) = 1 iff agent j's decision is conditioned on agent i's action (MARFT, arXiv
2504.16129, section 3; docs/reference/algorithms.md, section 1). Here D is a boolean matrix ``D[i, j]`` over the agents
in listed order: agent j sees agent i's action. D determines the execution order, the parents whose messages an agent
sees, and the generations of agents that may act at the same time.
"""

from __future__ import annotations

import graphlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from marft_envs.arguments import check_nonempty, did_you_mean, expected_one_of
from marft_envs.dependency import diagram

# Each preset maps (i, j, n), index arrays of shape [n, n] and the number of agents, to D[i, j].
_PRESETS: dict[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]] = {
    "none": lambda i, j, n: np.zeros((n, n), bool),
    "chain": lambda i, j, n: j == i + 1,
    "star": lambda i, j, n: (i == 0) & (j > 0),
    "tree": lambda i, j, n: (j > 0) & ((j - 1) // 2 == i),
    "layers": lambda i, j, n: (i < (n + 1) // 2) & (j >= (n + 1) // 2),
    "full": lambda i, j, n: j > i,
}
PRESETS = tuple(_PRESETS)
"""The names that ``Dependency.preset`` accepts."""


class CycleError(ValueError):
    """The dependency function has a cycle, so its agents have no execution order.

    Attributes:
        cycle: The agents of one cycle. Each is seen by the next, and the last is seen by the first.
    """

    def __init__(self, cycle: Sequence[str]) -> None:
        self.cycle = tuple(cycle)
        super().__init__(f"dependency has a cycle: {' -> '.join([*cycle, cycle[0]])}; expected an acyclic graph")


class Dependency:
    """An acyclic dependency function D over named agents.

    A Dependency is immutable. Two are equal if their agents and matrices are equal.

    Args:
        agents: Names in listed order.
        matrix: Boolean, [n, n]; ``matrix[i, j]`` is True iff agent j sees agent i's action.

    Attributes:
        agents: As passed.
        matrix: As passed, as a read-only boolean array.
        generations: Groups of agents that may act at the same time: the parents of an agent are in earlier groups, at
            least one of them in the group before. Each group is in listed order.

    Raises:
        CycleError: D has a cycle; the message names it.
        ValueError: The matrix has another shape or entries other than 0 and 1, or a name occurs twice.
    """

    def __init__(self, agents: Sequence[str], matrix: Any) -> None:
        self.agents = tuple(check_nonempty("agent", agent) for agent in agents)
        if len(set(self.agents)) != len(self.agents) or not self.agents:
            raise ValueError(f"agents={list(self.agents)!r}: expected at least one agent and no name twice")
        n = len(self.agents)
        try:
            array = np.asarray(matrix)
        except ValueError:
            raise ValueError(f"dependency matrix={matrix!r:.80}: expected rows of one length") from None
        if array.shape != (n, n):
            raise ValueError(f"dependency matrix has shape {array.shape}: expected {(n, n)}, one row per agent")
        if array.dtype != bool and not np.isin(array, (0, 1)).all():
            entries = list(dict.fromkeys(array.ravel().tolist()))
            raise ValueError(f"dependency matrix has entries {entries}: expected only 0 and 1")
        self.matrix = array.astype(bool)
        self.matrix.setflags(write=False)
        self.generations = self._generations()

    def _generations(self) -> tuple[tuple[str, ...], ...]:
        """Return the agents by the length of the longest path that ends at them, each group in listed order."""
        edges = self.edges
        sorter = _sorter(self.agents, ((seeing, seen) for seen, seeing in edges))
        try:
            sorter.prepare()
        except graphlib.CycleError:
            raise CycleError(_find_cycle(self.agents, edges)) from None
        generations = []
        while sorter.is_active():
            ready = set(sorter.get_ready())  # graphlib does not specify the order of these
            generations.append(tuple(agent for agent in self.agents if agent in ready))
            sorter.done(*ready)
        return tuple(generations)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The stable execution order: generation by generation, each in listed order."""
        return tuple(agent for generation in self.generations for agent in generation)

    @cached_property
    def reversed_order(self) -> tuple[str, ...]:
        """Another execution order: generation by generation, each in reversed listed order."""
        return tuple(agent for generation in self.generations for agent in reversed(generation))

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """For each agent the agents that it sees, in stable execution order."""
        index = {agent: i for i, agent in enumerate(self.agents)}
        rows = self.matrix.tolist()  # an entry of a list takes a fraction of the time of an entry of an array
        return {
            agent: tuple(other for other in self.order if rows[index[other]][index[agent]]) for agent in self.agents
        }

    def random_order(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Return a random linear extension of D.

        At each position one of the agents whose parents have all acted is drawn uniformly. The linear extensions
        themselves are not equally likely.
        """
        waiting, order = list(self.agents), []
        while waiting:
            ready = [a for a in waiting if not any(p in waiting for p in self.parents[a])]
            agent = ready[int(rng.integers(len(ready)))]
            order.append(agent)
            waiting.remove(agent)
        return tuple(order)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All pairs (seen agent, seeing agent), in listed order."""
        return tuple((self.agents[i], self.agents[j]) for i, j in np.argwhere(self.matrix).tolist())

    @classmethod
    def from_edges(cls, agents: Sequence[str], edges: Iterable[tuple[str, str]]) -> Dependency:
        """Return the D with exactly these edges.

        Args:
            agents: Names in listed order.
            edges: Pairs (seen agent, seeing agent).

        Raises:
            ValueError: An edge is not a pair, or names an agent that is not listed.
            CycleError: The edges form a cycle.
        """
        names = list(agents)
        matrix = np.zeros((len(names), len(names)), bool)
        for edge in edges:
            if isinstance(edge, str) or not isinstance(edge, (Sequence, np.ndarray)) or len(edge) != 2:
                raise ValueError(f"dependency edge {edge!r}: expected a pair (seen agent, seeing agent)")
            for agent in edge:
                if agent not in names:
                    raise ValueError(
                        f"dependency edge {tuple(edge)!r} names {agent!r}: expected one of {names}"
                        f"{did_you_mean(agent, names)}"
                    )
            matrix[names.index(edge[0]), names.index(edge[1])] = True
        return cls(names, matrix)

    @classmethod
    def preset(cls, name: str, agents: Sequence[str]) -> Dependency:
        """Return a D of a common shape.

        Args:
            name: One of
                "none": no agent sees another;
                "chain": each agent sees the one before it;
                "star": every agent sees the first;
                "tree": a binary tree, whose root is the first agent;
                "layers": each agent of the second half sees every agent of the first half;
                "full": each agent sees all agents before it.
            agents: Names in listed order.

        Raises:
            ValueError: There is no preset of that name.
        """
        if name not in _PRESETS:
            raise ValueError(expected_one_of("dependency", name, PRESETS))
        n = len(agents)
        i, j = np.indices((n, n))
        return cls(agents, _PRESETS[name](i, j, n))

    def to_mermaid(self) -> str:
        """Return a Mermaid flowchart, for Markdown pages."""
        return diagram.mermaid([diagram.Graph(self.agents, self.edges)])

    def to_graphviz(self) -> str:
        """Return a Graphviz digraph, for ``dot``."""
        return diagram.graphviz([diagram.Graph(self.agents, self.edges)])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Dependency)
            and self.agents == other.agents
            and bool(np.array_equal(self.matrix, other.matrix))
        )

    def __hash__(self) -> int:
        return hash((self.agents, self.matrix.tobytes()))

    def __str__(self) -> str:
        """Return one line per agent, in execution order: ``actor_0 sees reasoner_0``."""
        return "\n".join(f"{agent} sees {', '.join(self.parents[agent]) or 'nobody'}" for agent in self.order)

    def __repr__(self) -> str:
        return f"Dependency.from_edges({list(self.agents)!r}, {list(self.edges)!r})"


def _sorter(agents: Sequence[str], successions: Iterable[tuple[str, str]]) -> graphlib.TopologicalSorter[str]:
    """Return a sorter of ``agents`` from pairs (later agent, earlier agent)."""
    predecessors: dict[str, list[str]] = {agent: [] for agent in agents}
    for later, earlier in successions:
        predecessors[later].append(earlier)
    sorter = graphlib.TopologicalSorter(dict.fromkeys(agents, ()))  # fixes the order of its search
    for later, several in predecessors.items():
        sorter.add(later, *several)
    return sorter


def _find_cycle(agents: Sequence[str], edges: Iterable[tuple[str, str]]) -> list[str]:
    """Return the agents of a cycle of ``edges``, pairs (seen agent, seeing agent); empty if they have none.

    graphlib searches in the direction of the edges. It gets them reversed here, so that the search begins at the first
    listed agent and follows the first listed parent; the reported path is then reversed.
    """
    try:
        _sorter(agents, edges).prepare()
    except graphlib.CycleError as error:
        *path, _ = error.args[1]  # the last agent repeats the first
        return path[::-1]
    return []


def as_dependency(spec: Any, agents: Sequence[str]) -> Dependency:
    """Return the Dependency over exactly ``agents`` that ``spec`` describes.

    Args:
        spec: A Dependency, the name of a preset, an [n, n] matrix of 0 and 1 (``matrix[i, j]``: agent j sees agent i),
            or a list of pairs (seen agent, seeing agent). An empty list has no edges.
        agents: Names in listed order.

    Raises:
        TypeError: ``spec`` is none of these.
        ValueError: ``spec`` does not fit the agents, or has a cycle (CycleError).
    """
    if isinstance(spec, Dependency):
        if spec.agents != tuple(agents):
            raise ValueError(f"dependency is over agents {list(spec.agents)}: expected {list(agents)}")
        return spec
    if isinstance(spec, str):
        return Dependency.preset(spec, agents)
    if isinstance(spec, np.ndarray):
        return Dependency(agents, spec)
    if not isinstance(spec, Iterable):
        raise TypeError(
            f"dependency={spec!r}: expected a preset ({', '.join(PRESETS)}), a Dependency, an {len(agents)} x "
            f"{len(agents)} matrix or a list of edges (seen agent, seeing agent)"
        )
    rows = list(spec)
    if rows and all(map(_is_matrix_row, rows)):
        return Dependency(agents, rows)
    return Dependency.from_edges(agents, rows)


def _is_matrix_row(entry: Any) -> bool:
    """Return whether an entry of a list is a row of a matrix: an iterable without strings."""
    iterable = isinstance(entry, Iterable) and not isinstance(entry, str)
    return iterable and not any(isinstance(value, str) for value in entry)
