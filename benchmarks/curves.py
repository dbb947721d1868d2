"""Learning curves as PNG: one figure per task, a panel per decoding mode, every seed visible.

Matplotlib's object interface on the Agg canvas: no window, no global state.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

# Okabe and Ito's colours, told apart with any colour vision; an arm keeps its colour in every figure.
COLOURS = {
    "ippo": "#0072B2",
    "marft": "#D55E00",
    "mappo": "#009E73",
    "mappo_chained": "#CC79A7",
    "marft_nofactor": "#E69F00",
    "marft_token": "#56B4E9",
    "magrpo": "#8C6D00",
    "single": "#555555",
    "untrained": "#999999",
}
UNKNOWN_ARM = "#000000"
DASHES = ("-", "--", "-.", ":")
SMALLEST_SPAN = 10.0  # points of accuracy: a flat curve should look flat


def draw_curves(summary: dict[str, Any], folder: Path | str) -> list[Path]:
    """Write `curve_<task>.png` for each task into `folder` and return the paths."""
    paths = []
    for task, figures in summary["tasks"].items():
        path = Path(folder) / curve_name(task)
        figure = _figure(task, figures)
        figure.savefig(path, dpi=150)
        paths.append(path)
    return paths


def curve_name(task: str) -> str:
    """File name of a task's figure; anything but letters, digits, dot, dash and underscore becomes a dash."""
    return f"curve_{re.sub(r'[^A-Za-z0-9._-]+', '-', task)}.png"


def _figure(task: str, figures: dict[str, Any]) -> Figure:
    modes = figures["modes"]
    figure = Figure(figsize=(1.6 + 4.4 * len(modes), 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{task}: team accuracy on held-out problems, {_seed_words(figures)}", fontsize=12)
    panels = figure.subplots(1, len(modes), sharey=True, squeeze=False)[0]
    for panel, (mode, block) in zip(panels, modes.items(), strict=True):
        for place, arm in enumerate(figures["arms"]):
            _draw_arm(panel, arm, place, block["curves"][arm], faint=len(figures["arms"]) > 3)
        _dress(panel, mode)
    low, high = limits(figures)
    panels[0].set_ylim(low, high)
    panels[0].set_ylabel("accuracy (%)")
    handles, labels = panels[0].get_legend_handles_labels()
    legend = {"loc": "outside lower center", "ncols": max(1, min(4, len(labels))), "frameon": False}
    explained = "thick: mean of finished seeds; band: its 95 % t interval; thin: each seed"
    figure.legend(handles, labels, title=explained, title_fontsize=9, **legend)
    return figure


def _draw_arm(panel: Axes, arm: str, place: int, curve: dict[str, Any], faint: bool) -> None:
    """Thin lines: each seed. Thick line: mean of the finished seeds. Band: 95 % t interval of that mean."""
    colour, dash = COLOURS.get(arm, UNKNOWN_ARM), DASHES[place % len(DASHES)]
    alpha = 0.2 if faint else 0.5
    for seed in curve["seeds"].values():
        panel.plot(seed["updates"], _percent(seed["accuracy"]), color=colour, linewidth=0.7, alpha=alpha)
    label = f"{arm} ({curve['finished']} of {_count(len(curve['seeds']))})"
    if not curve["updates"]:
        panel.plot([], [], color=colour, linewidth=0.7, label=label)
        return
    if len(curve["updates"]) == 1:  # never trained: a level to compare with
        panel.axhline(100 * curve["mean"][0], color=colour, linestyle=":", linewidth=1.5, label=label)
        return
    panel.plot(curve["updates"], _percent(curve["mean"]), color=colour, linestyle=dash, linewidth=2.2, label=label,
               zorder=3)  # fmt: skip
    if curve["low"][0] is not None:
        low, high = (_percent(min(1.0, max(0.0, edge)) for edge in curve[name]) for name in ("low", "high"))
        panel.fill_between(curve["updates"], low, high, color=colour, alpha=0.16, linewidth=0)


def _dress(panel: Axes, mode: str) -> None:
    panel.set_title(f"{mode} decoding", fontsize=10)
    panel.set_xlabel("update")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    panel.margins(x=0.02)
    panel.grid(color="#DDDDDD", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def limits(figures: dict[str, Any]) -> tuple[float, float]:
    """Accuracy axis in percent: the seeds' range with a margin, at least 10 points wide, inside -1.5 to 101.5."""
    seen = [
        accuracy * 100
        for block in figures["modes"].values()
        for curve in block["curves"].values()
        for seed in curve["seeds"].values()
        for accuracy in seed["accuracy"]
    ] or [0.0, 100.0]
    low, high = min(seen), max(seen)
    pad = max(0.08 * (high - low), (SMALLEST_SPAN - (high - low)) / 2)
    return max(-1.5, low - pad), min(101.5, high + pad)


def _seed_words(figures: dict[str, Any]) -> str:
    """How many finished seeds stand behind the means: `5 seeds per arm`, or `8 to 10` where arms differ."""
    counts = [curve["finished"] for curve in next(iter(figures["modes"].values()))["curves"].values()]
    low, high = min(counts), max(counts)
    return f"{_count(low)} per arm" if low == high else f"{low} to {_count(high)} per arm"


def _count(seeds: int) -> str:
    return f"{seeds} seed{'' if seeds == 1 else 's'}"


def _percent(values: Any) -> list[float]:
    return [100 * value for value in values]
