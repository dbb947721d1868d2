"""Dependency graphs as Mermaid flowcharts (for Markdown pages) and Graphviz digraphs (for ``dot``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Graph:
    """One graph of a diagram.

    Attributes:
        agents: The nodes.
        edges: Pairs (seen agent, seeing agent).
        title: The heading of one graph among several; "" for the only one.
        dashed: Whether the edges are drawn dashed, because they depend on a reply.
    """

    agents: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    title: str = ""
    dashed: bool = False

    @property
    def isolated(self) -> tuple[str, ...]:
        """Agents without an edge."""
        connected = {agent for edge in self.edges for agent in edge}
        return tuple(agent for agent in self.agents if agent not in connected)


def mermaid(graphs: Sequence[Graph]) -> str:
    """Return a Mermaid flowchart, with a subgraph for each graph that has a title."""
    lines = ["flowchart LR"]
    for number, graph in enumerate(graphs):
        if not graph.title:
            lines += [f"    {line}" for line in _mermaid_lines(graph, "{}")]
            continue
        # Node ids are global in Mermaid: the number keeps the same agent of two graphs apart.
        node = f'p{number}_{{0}}["{{0}}"]'
        body = [f"        {line}" for line in _mermaid_lines(graph, node)]
        lines += [f'    subgraph p{number}["{graph.title}"]', *body, "    end"]
    return "\n".join(lines)


def _mermaid_lines(graph: Graph, node: str) -> list[str]:
    arrow = "-.->" if graph.dashed else "-->"
    edges = [f"{node.format(seen)} {arrow} {node.format(seeing)}" for seen, seeing in graph.edges]
    return [node.format(agent) for agent in graph.isolated] + edges


def graphviz(graphs: Sequence[Graph]) -> str:
    """Return a Graphviz digraph, with a cluster for each graph that has a title."""
    lines = ["digraph D {", "    rankdir=LR"]
    for number, graph in enumerate(graphs):
        if not graph.title:
            lines += [f"    {line}" for line in _graphviz_lines(graph, "")]
            continue
        names = [f'"{number} {agent}" [label="{agent}"]' for agent in graph.agents]
        lines += [f"    subgraph cluster_{number} {{", f'        label="{graph.title}"']
        lines += [f"        {line}" for line in (*names, *_graphviz_lines(graph, f"{number} "))]
        lines.append("    }")
    return "\n".join([*lines, "}"])


def _graphviz_lines(graph: Graph, prefix: str) -> list[str]:
    style = " [style=dashed]" if graph.dashed else ""
    edges = [f'"{prefix}{seen}" -> "{prefix}{seeing}"{style}' for seen, seeing in graph.edges]
    return ([] if prefix else [f'"{agent}"' for agent in graph.isolated]) + edges
