"""D, the dependency function of the Flexible Markov Game: who is conditioned on whose action.

D : A x A -> {0, 1}, D(a_i, a_j) = 1 iff agent j's decision is conditioned on agent i's action (MARFT, arXiv 2504.16129,
section 3). Here it is a boolean matrix ``D[i, j]`` over the agents in listed order. It must be acyclic; from it follow
the execution order, the parents whose texts an agent sees, and the generations whose agents may act concurrently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from marft_envs.arguments import check_nonempty, did_you_mean, expected_one_of
from marft_envs.dependency import diagram

PRESETS = ("none", "chain", "star", "tree", "layers", "full")


class CycleError(ValueError):
    """D has a cycle, so no agent of it could act first. ``cycle`` lists its agents; the last depends into the first."""

    def __init__(self, cycle: Sequence[str]) -> None:
        self.cycle = tuple(cycle)
        super().__init__(f"dependency has a cycle: {' -> '.join([*cycle, cycle[0]])}; expected an acyclic graph")


class Dependency:
    """An acyclic D over named agents. Immutable; equal by agents and matrix.

    agents: names in listed order. matrix: [n, n] boolean, ``matrix[i, j]`` True iff agent j sees agent i's action.
    Raises CycleError naming a cycle, ValueError for a wrong shape, a repeated agent or entries other than 0 and 1.
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
        if not np.isin(array, (0, 1)).all():
            entries = list(dict.fromkeys(array.ravel().tolist()))
            raise ValueError(f"dependency matrix has entries {entries}: expected only 0 and 1")
        self.matrix = array.astype(bool)
        self.matrix.setflags(write=False)
        self.generations = self._generations()

    def _generations(self) -> tuple[tuple[str, ...], ...]:
        """Antichains by longest path: every parent of a generation's agents is in an earlier generation."""
        remaining = list(range(len(self.agents)))
        generations = []
        while remaining:
            ready = [j for j in remaining if not any(self.matrix[i, j] for i in remaining)]
            if not ready:
                raise CycleError(self._find_cycle(remaining))
            generations.append(tuple(self.agents[j] for j in ready))
            remaining = [j for j in remaining if j not in ready]
        return tuple(generations)

    def _find_cycle(self, candidates: list[int]) -> list[str]:
        """A cycle among ``candidates``, each of which has a parent among them: walk back until an agent repeats."""
        walk = [candidates[0]]
        while True:
            parent = next(i for i in candidates if self.matrix[i, walk[-1]])
            if parent in walk:
                return [self.agents[i] for i in reversed(walk[walk.index(parent) :])]
            walk.append(parent)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The stable execution order: generation by generation, each in listed order."""
        return tuple(agent for generation in self.generations for agent in generation)

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """For each agent the agents it sees, in stable execution order."""
        index = {agent: i for i, agent in enumerate(self.agents)}
        return {
            agent: tuple(other for other in self.order if self.matrix[index[other], index[agent]])
            for agent in self.agents
        }

    def random_order(self, rng: np.random.Generator) -> tuple[str, ...]:
        """A random linear extension of D: at each place one of the agents whose parents have all acted."""
        waiting, order = list(self.agents), []
        while waiting:
            ready = [a for a in waiting if not any(p in waiting for p in self.parents[a])]
            agent = ready[int(rng.integers(len(ready)))]
            order.append(agent)
            waiting.remove(agent)
        return tuple(order)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All (seen, seeing) pairs."""
        return tuple((self.agents[i], self.agents[j]) for i, j in np.argwhere(self.matrix))

    @classmethod
    def from_edges(cls, agents: Sequence[str], edges: Iterable[tuple[str, str]]) -> Dependency:
        """D with an edge (i, j) for each pair "j sees i". ValueError for an unknown agent or a malformed edge."""
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
        """A named shape over the agents in listed order.

        none: nobody sees anybody. chain: each sees the one before. full: each sees all before. star: the first is seen
        by all. tree: a binary tree from the first. layers: two halves, the second sees all of the first.
        """
        n = len(agents)
        if name not in PRESETS:
            raise ValueError(expected_one_of("dependency", name, PRESETS))
        i, j = np.indices((n, n))
        half = (n + 1) // 2
        shapes = {
            "none": np.zeros((n, n), bool),
            "chain": j == i + 1,
            "full": j > i,
            "star": (i == 0) & (j > 0),
            "tree": (j > 0) & ((j - 1) // 2 == i),
            "layers": (i < half) & (j >= half),
        }
        return cls(agents, shapes[name])

    def to_mermaid(self) -> str:
        """A Mermaid flowchart, for Markdown pages."""
        return diagram.mermaid([diagram.Part(self.agents, self.edges)])

    def to_graphviz(self) -> str:
        """A Graphviz digraph, for ``dot``."""
        return diagram.graphviz([diagram.Part(self.agents, self.edges)])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Dependency)
            and self.agents == other.agents
            and bool(np.array_equal(self.matrix, other.matrix))
        )

    def __hash__(self) -> int:
        return hash((self.agents, self.matrix.tobytes()))

    def __str__(self) -> str:
        """Who sees whom, a line for each agent in execution order."""
        return "\n".join(f"{agent} sees {', '.join(self.parents[agent]) or 'nobody'}" for agent in self.order)

    def __repr__(self) -> str:
        return f"Dependency.from_edges({list(self.agents)!r}, {list(self.edges)!r})"


def as_dependency(spec: Any, agents: Sequence[str]) -> Dependency:
    """A Dependency over exactly ``agents`` from any way of writing it: a Dependency, a preset's name, a matrix, edges.

    Edges are pairs of names; anything array-like with numbers is a matrix. An empty list means no edges.
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
    if rows and all(map(_is_row, rows)):
        return Dependency(agents, rows)
    return Dependency.from_edges(agents, rows)


def _is_row(entry: Any) -> bool:
    """Whether an entry of a list is a matrix's row: several values without a name among them."""
    several = isinstance(entry, Iterable) and not isinstance(entry, str)
    return several and not any(isinstance(value, str) for value in entry)
