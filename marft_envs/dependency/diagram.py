"""Graphs of who sees whom, as Mermaid (for Markdown pages) and Graphviz (for ``dot``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One graph. edges: (seen, seeing). title: of a part among others, "" for the only one. possible: edges that a
    reply may bring about, drawn dashed."""

    agents: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    title: str = ""
    possible: bool = False

    @property
    def alone(self) -> tuple[str, ...]:
        """Agents without an edge."""
        connected = {agent for edge in self.edges for agent in edge}
        return tuple(agent for agent in self.agents if agent not in connected)


def mermaid(parts: Sequence[Part]) -> str:
    """A Mermaid flowchart; parts with a title are subgraphs."""
    lines = ["flowchart LR"]
    for number, part in enumerate(parts):
        if not part.title:
            lines += [f"    {text}" for text in _mermaid(part, "{}")]
            continue
        node = f'p{number}_{{0}}["{{0}}"]'
        lines += [f'    subgraph p{number}["{part.title}"]', *(f"        {t}" for t in _mermaid(part, node)), "    end"]
    return "\n".join(lines)


def _mermaid(part: Part, node: str) -> list[str]:
    arrow = "-.->" if part.possible else "-->"
    edges = [f"{node.format(seen)} {arrow} {node.format(seeing)}" for seen, seeing in part.edges]
    return [node.format(agent) for agent in part.alone] + edges


def graphviz(parts: Sequence[Part]) -> str:
    """A Graphviz digraph; parts with a title are clusters."""
    lines = ["digraph D {", "    rankdir=LR"]
    for number, part in enumerate(parts):
        if not part.title:
            lines += [f"    {text}" for text in _graphviz(part, "")]
            continue
        names = [f'"{number} {agent}" [label="{agent}"]' for agent in part.agents]
        lines += [f"    subgraph cluster_{number} {{", f'        label="{part.title}"']
        lines += [f"        {text}" for text in (*names, *_graphviz(part, f"{number} "))]
        lines.append("    }")
    return "\n".join([*lines, "}"])


def _graphviz(part: Part, prefix: str) -> list[str]:
    style = " [style=dashed]" if part.possible else ""
    edges = [f'"{prefix}{seen}" -> "{prefix}{seeing}"{style}' for seen, seeing in part.edges]
    return ([] if prefix else [f'"{agent}"' for agent in part.alone]) + edges
