"""Cost tables of the report: budget, seconds per update, stability and explained variance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.analysis.pairs import Summary
from benchmarks.analysis.stability import FEW_AGENTS, TEAM
from benchmarks.tables.layout import NOTHING, Block, Table, percent, short, wrapped

# Metric -> heading, and the extreme that indicates a problem; in the order of the columns.
STABILITY = {
    "clip_fraction": ("clipped", "max"),
    "kl_reference": ("KL pi_0", "max"),
    "kl_behaviour": ("KL behav.", "max"),
    "entropy": ("entropy", "min"),
    "mean_length": ("tokens", "max"),
    "grad_norm": ("gradient", "max"),
    "truncated": ("truncated", "max"),
    "empty": ("empty", "max"),
    "skipped": ("skipped", "max"),
    "factor_ess": ("ESS", "min"),
    "factor_clamp_rate": ("clamped", "max"),
    "explained_variance": ("expl. var.", "min"),
    "lam_in": ("lambda_in", "max"),
    "bad_updates": ("bad updates", "max"),
    "skipped_batches": ("skipped batches", "max"),
}
BUDGET = {
    "episodes": "episodes",
    "prompt_tokens": "prompt tokens",
    "generated_tokens": "generated tokens",
    "trained_tokens": "trained tokens",
    "optimiser_steps": "optimiser steps",
}


def _budget(figures: Summary) -> list[Block]:
    """Return the budget of one run for each arm, and which entries are equal in all arms."""
    used = {arm: block for arm, block in figures["budget"].items() if block}
    if not used:
        return []
    keys = [key for key in BUDGET if any(key in block for block in used.values())]
    rows = [
        [arm, *(f"{block[key]:,.0f}" if key in block else NOTHING for key in keys),
         f"{block['wall_s']:,.1f}" if "wall_s" in block else NOTHING]
        for arm, block in used.items()
    ]  # fmt: skip
    lines: list[str] = []
    gaps = {BUDGET[key]: _relative_gap([block[key] for block in used.values() if key in block]) for key in keys}
    equal = [name for name, gap in gaps.items() if gap == 0]
    unequal = [f"{name} (by {percent(gap) if gap >= 0.0005 else '<0.1'} %)" for name, gap in gaps.items() if gap > 0]
    if len(used) > 1:
        words = [f"equal in all arms: {', '.join(equal)}"] if equal else []
        words += [f"different: {', '.join(unequal)}"] if unequal else []
        lines += wrapped("; ".join(words).capitalize() + ".", "  ")
    for arm, block in used.items():
        if block["not_cumulative"]:
            lines.append(
                f"  NOTE: {arm}: {', '.join(block['not_cumulative'])} falls during a run; expected a cumulative count."
            )
    return [Table("Budget of one run (mean over its seeds)", ["arm", *(BUDGET[key] for key in keys), "wall s"], rows,
                  notes=lines)]  # fmt: skip


def _relative_gap(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / max(values) if max(values) > 0 else 0.0


def _machines(figures: Summary) -> list[Block]:
    """Return the hours of training and the hardware of each arm."""
    rows = [
        [arm, str(found["runs"]), f"{found['hours']:.2f}", "; ".join(found["devices"]), "; ".join(found["hardware"])]
        for arm, found in figures.get("machines", {}).items()
        if found["runs"]
    ]
    headings = ["arm", "runs", "hours", "device", "hardware"]
    return [Table("Hours of all updates, all runs together, and where they were run", headings, rows)] if rows else []


def _seconds(figures: Summary) -> list[Block]:
    """Return the seconds of one update by stage."""
    spent = {arm: block for arm, block in figures["seconds"].items() if block}
    stages = list(dict.fromkeys(stage for block in spent.values() for stage in block if stage != "wall_s"))
    rows = []
    for arm, block in spent.items():
        wall = block.get("wall_s", 0.0)
        known = sum(block.get(stage, 0.0) for stage in stages)
        shares = [(block.get(stage), wall or known) for stage in stages] + [(max(0.0, wall - known), wall)]
        rows.append([arm, f"{wall:.3f}" if wall else NOTHING, *(_share(part, whole) for part, whole in shares)])
    title = "Seconds of one update by stage (mean over updates and seeds)"
    return [Table(title, ["arm", "one update", *stages, "other"], rows)] if rows else []


def _share(part: float | None, whole: float) -> str:
    """Format seconds with their share, as in ``0.705 (19%)``; two decimals from one second on."""
    if part is None or whole <= 0:
        return NOTHING
    return f"{part:.{2 if whole >= 1 else 3}f} ({100 * part / whole:.0f}%)"


def _stability(figures: Summary) -> list[Block]:
    """Return the stability tables of the agents (one row for a large team) and of the team."""
    agents, team = [], []
    for arm, block in figures["stability"].items():
        members = [name for name in block if name != TEAM]
        if len(members) > FEW_AGENTS:
            agents.append((arm, f"all {len(members)}", figures["stability_over_agents"][arm]))
        else:
            agents += [(arm, name, block[name]) for name in members]
        team += [(arm, TEAM, block[TEAM])] if TEAM in block else []
    title = (
        "Stability per agent: mean over the last quarter of updates. In brackets, over all updates and seeds, the\n"
        "smallest entropy, ESS and explained variance, and the largest value of the other metrics"
    )
    if any(name.startswith("all ") for _, name, _ in agents):
        title += "; see summary.json for each agent"
    first = _stability_table(title, agents)
    return [*first, *_stability_table("" if first else title, team)]


def _stability_table(title: str, found: Sequence[tuple[str, str, Summary]]) -> list[Block]:
    metrics = [metric for metric in STABILITY if any(metric in figures for _, _, figures in found)]
    headings = ["arm", "agent", *(STABILITY[metric][0] for metric in metrics)]
    rows = [[arm, name, *(_late(figures.get(metric), STABILITY[metric][1]) for metric in metrics)]
            for arm, name, figures in found if set(figures) & set(metrics)]  # fmt: skip
    return [Table(title, headings, rows, keys=2)] if rows else []


def _late(found: Summary | None, extreme: str) -> str:
    """Format a metric as ``late mean (extreme)``."""
    return NOTHING if found is None or found["late"] is None else f"{short(found['late'])} ({short(found[extreme])})"


def _explained(figures: Summary) -> list[Block]:
    """Return the critic's explained variance by position, and its share of what the label alone would explain."""
    found = {arm: by_position for arm, by_position in figures["explained_variance"].items() if by_position}
    positions = list(dict.fromkeys(position for block in found.values() for position in block))
    rows = [[arm, *(_of_label(block.get(position)) for position in positions)] for arm, block in found.items()]
    title = "Explained variance of the critic by position in the round, mean over the last quarter of updates"
    if any(figures["ceiling"] is not None for block in found.values() for figures in block.values()):
        title += "\n(in brackets: % of what the label of Task.progress alone explains)"
    return [Table(title, ["arm", *positions], rows)] if rows else []


def _of_label(found: Summary | None) -> str:
    if found is None:
        return NOTHING
    share = "" if found["share"] is None else f" ({100 * found['share']:.0f}%)"
    return f"{found['explained']:.2f}{share}"


BUDGET_PARTS: tuple[Callable[[Summary], list[Block]], ...] = (_budget, _machines, _seconds)
STABILITY_PARTS: tuple[Callable[[Summary], list[Block]], ...] = (_stability, _explained)
PARTS = (*BUDGET_PARTS, *STABILITY_PARTS)
