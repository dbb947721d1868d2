"""Tables of the roles of a team, and of the variance of the advantages by position in the round."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.analysis.pairs import Summary
from benchmarks.analysis.stability import TEAM
from benchmarks.tables.layout import NOTHING, Block, Table, percent, points, short

_MODE = "sampled"
HEADINGS = ["arm", "role", "gradient share", "advantage variance", "influence", "ignored", "empty", "repeated",
            "all tokens", "cliff"]  # fmt: skip


def drop(found: Summary | None) -> str:
    """Format a drop in points with its interval."""
    if found is None:
        return NOTHING
    low, high = points(found["low"]), points(found["high"])
    return points(found["mean"]) + ("" if found["low"] is None else f" [{low}, {high}]")


def _roles(figures: Summary) -> list[Block]:
    """Return the diagnostics of each role, and the cliff of each team."""
    rows = []
    for arm, found in figures["roles"].items():
        rows += [[arm, role, *_role(each), NOTHING] for role, each in found.items()]
        rows += [[arm, TEAM, *[NOTHING] * 7, cliff] for cliff in _cliff(figures, arm)]
    title = "Roles: shares in %, influence and cliff in points; glossary below"
    return [Table(title, HEADINGS, rows, keys=2)] if rows else []


def _role(found: Summary) -> list[str]:
    variance, tokens = found["advantage_variance"], found["tokens"]
    return [
        percent(found["gradient_share"]),
        NOTHING if variance is None else short(variance),
        drop(found["drop"]),
        *(percent(found[name]) for name in ("ignored", "empty", "repeated")),
        NOTHING if tokens is None else f"{tokens:,.0f} ({percent(found['token_share'])}%)",
    ]


def _cliff(figures: Summary, arm: str) -> list[str]:
    """Return the cliff of an arm, mean over seeds; nothing without a sampled evaluation."""
    block = figures["modes"].get(_MODE, {"arms": {}})["arms"].get(arm)
    return [points(sum(block["final_fall"]) / len(block["final_fall"]))] if block else []


def _positions(figures: Summary) -> list[Block]:
    """Return the variance of the advantages by position in the round."""
    found = {arm: by_position for arm, by_position in figures["advantage_variance"].items() if by_position}
    positions = list(dict.fromkeys(position for block in found.values() for position in block))
    rows = [[arm, *(short(block[position]) if position in block else NOTHING for position in positions)]
            for arm, block in found.items()]  # fmt: skip
    title = "Advantage variance by position in the round: before whitening, mean over the last quarter of updates"
    return [Table(title, ["arm", *positions], rows)] if rows else []


PARTS: tuple[Callable[[Summary], list[Block]], ...] = (_roles, _positions)
