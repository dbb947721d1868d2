"""Learning curves as PNG files: a figure for each task, with a panel for each decoding mode and a line for each seed.

Uses matplotlib's object interface on the Agg canvas, which opens no window and has no global state.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks.analysis.intervals import FEW_SEEDS

# Okabe and Ito's palette, distinguishable with any colour vision; an arm has the same colour in every figure.
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
SMALLEST_SPAN = 10.0  # smallest span of the accuracy axis in percent, so that noise does not fill the panel


def draw_curves(summary: dict[str, Any], folder: Path | str) -> list[Path]:
    """Draw the figures of all tasks.

    Args:
        summary: Result of ``summarise``.
        folder: Folder for ``curve_TASK.png`` and, for a learning-rate sweep, ``rates_TASK.png``.

    Returns:
        The paths of the files.
    """
    paths = []
    for task, figures in summary["tasks"].items():
        drawn = [(curve_name(task), curve_figure(task, figures))]
        if figures["rates"]["sweep"]:
            drawn.append((rates_name(task), _rates_figure(task, figures)))
        for name, figure in drawn:
            paths.append(Path(folder) / name)
            figure.savefig(paths[-1], dpi=150)
    return paths


def curve_name(task: str) -> str:
    """Return the file name of a task's curves; characters other than letters, digits and ``._-`` become a dash."""
    return f"curve_{re.sub(r'[^A-Za-z0-9._-]+', '-', task)}.png"


def rates_name(task: str) -> str:
    """Return the file name of the figure of a task's learning rates."""
    return curve_name(task).replace("curve_", "rates_", 1)


def _new_figure(panels: int) -> tuple[Figure, Any]:
    figure = Figure(figsize=(1.6 + 4.4 * panels, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, panels, sharey=True, squeeze=False)[0]


def curve_figure(task: str, figures: dict[str, Any]) -> Figure:
    """Return the figure of a task's learning curves.

    Args:
        task: Name of the task.
        figures: Its part of the summary.
    """
    modes = figures["modes"]
    figure, panels = _new_figure(len(modes))
    figure.suptitle(f"{task}: team accuracy on held-out problems, {_seed_words(figures)}", fontsize=12)
    for panel, (mode, block) in zip(panels, modes.items(), strict=True):
        for position, arm in enumerate(figures["arms"]):
            label = _arm_name(arm, figures["rates"]["selected"].get(arm))
            _draw_arm(panel, arm, label, position, block["curves"][arm], faint=len(figures["arms"]) > 3)
        _style(panel, f"{mode} decoding", "update")
        if mode == "sampled":
            _greedy_start(panel, modes)
    panels[0].set_ylim(*limits(figures))
    panels[0].set_ylabel("accuracy (%)")
    seeds = max(curve["finished"] for curve in next(iter(modes.values()))["curves"].values())
    band = "band: its 95 % t interval; " if seeds >= FEW_SEEDS else ""
    _legend(figure, panels[0], f"thick: mean of finished seeds; {band}thin: each seed")
    return figure


def _legend(figure: Figure, panel: Axes, title: str) -> None:
    handles, labels = panel.get_legend_handles_labels()
    columns = max(1, min(3, len(labels)))
    figure.legend(handles, labels, title=title, title_fontsize=9, loc="outside lower center", ncols=columns,
                  frameon=False)  # fmt: skip


def _greedy_start(panel: Axes, modes: dict[str, Any]) -> None:
    """Draw a line at the greedy accuracy before training: a rise of sampling below it is sharpening."""
    starts = [block["before"]["mean"] for block in modes.get("greedy", {"arms": {}})["arms"].values()]
    if starts:
        level = 100 * sum(starts) / len(starts)
        panel.axhline(level, color="#444444", linestyle=(0, (1, 2)), linewidth=1.2, label=f"greedy start {level:.1f} %")


def _arm_name(arm: str, rate: float | None) -> str:
    return arm if rate is None else f"{arm}, lr {rate:g}"


def _draw_arm(panel: Axes, arm: str, label: str, position: int, curve: dict[str, Any], faint: bool) -> None:
    """Draw a thin line for each seed, a thick line for the mean of the finished seeds, and its t interval as a band.

    The band is left out below FEW_SEEDS seeds, and at updates without an interval.
    """
    colour, dash = COLOURS.get(arm, UNKNOWN_ARM), DASHES[position % len(DASHES)]
    alpha = 0.2 if faint else 0.5
    for seed in curve["seeds"].values():
        panel.plot(seed["updates"], _percent(seed["accuracy"]), color=colour, linewidth=0.7, alpha=alpha)
    label = f"{label} ({curve['finished']} of {_count(len(curve['seeds']))})"
    if not curve["updates"]:
        panel.plot([], [], color=colour, linewidth=0.7, label=label)
        return
    if len(curve["updates"]) == 1:  # an untrained team: a level to compare with
        panel.axhline(100 * curve["mean"][0], color=colour, linestyle=":", linewidth=1.5, label=label)
        return
    panel.plot(curve["updates"], _percent(curve["mean"]), color=colour, linestyle=dash, linewidth=2.2, label=label,
               zorder=3)  # fmt: skip
    if curve["finished"] >= FEW_SEEDS:
        low, high = (_percent(map(_inside, curve[name])) for name in ("low", "high"))
        panel.fill_between(curve["updates"], low, high, color=colour, alpha=0.16, linewidth=0)


def _inside(edge: float | None) -> float:
    """Clip an end of an interval of accuracies to 0 to 1; NaN, which leaves a gap, if there is no interval."""
    return math.nan if edge is None else min(1.0, max(0.0, edge))


def _rates_figure(task: str, figures: dict[str, Any]) -> Figure:
    """Return the figure of final accuracy over learning rate: a dot for each run, a line for the mean, a ring for the
    selected rate."""
    sweep, modes = figures["rates"]["sweep"], list(figures["modes"])
    figure, panels = _new_figure(len(modes))
    figure.suptitle(f"{task}: final team accuracy by learning rate", fontsize=12)
    for panel, mode in zip(panels, modes, strict=True):
        for position, arm in enumerate(figures["arms"]):
            own = [s for s in sweep if s["arm"] == arm and s["rate"] is not None and s["after"][mode]]
            _draw_rates(panel, arm, position, len(figures["arms"]), mode, own)
        _style(panel, f"{mode} decoding", "learning rate (log scale)")
        panel.set_xscale("log")
        ticks = sorted({setting["rate"] for setting in sweep if setting["rate"] is not None})
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
    panels[0].set_ylabel("accuracy after the last update (%)")
    _legend(figure, panels[0], "dots: each seed; line: mean; ring: the rate selected by training reward")
    return figure


def _draw_rates(panel: Axes, arm: str, position: int, arms: int, mode: str, own: list[dict[str, Any]]) -> None:
    colour = COLOURS.get(arm, UNKNOWN_ARM)
    shift = 1.03 ** (position - (arms - 1) / 2)  # draws arms with the same rate side by side
    rates = [setting["rate"] * shift for setting in own]
    means = [100 * setting["after"][mode]["mean"] for setting in own]
    panel.plot(rates, means, color=colour, linestyle=DASHES[position % len(DASHES)], linewidth=1.8, label=arm)
    for rate, mean, setting in zip(rates, means, own, strict=True):
        finals = _percent(setting["finals"][mode])
        panel.plot([rate] * len(finals), finals, ".", color=colour, alpha=0.6, markersize=5)
        if setting["selected"]:
            panel.plot([rate], [mean], "o", color=colour, markerfacecolor="none", markersize=11, markeredgewidth=1.6)


def _style(panel: Axes, title: str, x_label: str) -> None:
    panel.set_title(title, fontsize=10)
    panel.set_xlabel(x_label)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    panel.margins(x=0.02)
    panel.grid(color="#DDDDDD", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def limits(figures: dict[str, Any]) -> tuple[float, float]:
    """Return the ends of the accuracy axis in percent.

    Args:
        figures: A task's part of the summary.

    Returns:
        The range of all seeds with a margin, at least SMALLEST_SPAN wide and inside [-1.5, 101.5].
    """
    values = [
        accuracy * 100
        for block in figures["modes"].values()
        for curve in block["curves"].values()
        for seed in curve["seeds"].values()
        for accuracy in seed["accuracy"]
    ] or [0.0, 100.0]
    low, high = min(values), max(values)
    pad = max(0.08 * (high - low), (SMALLEST_SPAN - (high - low)) / 2)
    return max(-1.5, low - pad), min(101.5, high + pad)


def _seed_words(figures: dict[str, Any]) -> str:
    """Return the number of finished seeds, as in ``5 seeds per arm`` or ``8 to 10 seeds per arm``."""
    counts = [curve["finished"] for curve in next(iter(figures["modes"].values()))["curves"].values()]
    low, high = min(counts), max(counts)
    return f"{_count(low)} per arm" if low == high else f"{low} to {_count(high)} per arm"


def _count(seeds: int) -> str:
    return f"{seeds} seed{'' if seeds == 1 else 's'}"


def _percent(values: Any) -> list[float]:
    return [100 * value for value in values]
