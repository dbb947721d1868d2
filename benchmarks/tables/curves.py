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

from benchmarks.analysis.intervals import FEW_SEEDS

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
    """Write `curve_<task>.png`, and `rates_<task>.png` where rates were swept, into `folder`; return the paths."""
    paths = []
    for task, figures in summary["tasks"].items():
        drawn = [(curve_name(task), curve_figure(task, figures))]
        if figures["rates"]["trials"]:
            drawn.append((rates_name(task), _rates_figure(task, figures)))
        for name, figure in drawn:
            paths.append(Path(folder) / name)
            figure.savefig(paths[-1], dpi=150)
    return paths


def curve_name(task: str) -> str:
    """File name of a task's figure; anything but letters, digits, dot, dash and underscore becomes a dash."""
    return f"curve_{re.sub(r'[^A-Za-z0-9._-]+', '-', task)}.png"


def rates_name(task: str) -> str:
    """File name of the figure of its learning rates."""
    return curve_name(task).replace("curve_", "rates_", 1)


def _new_figure(panels: int) -> tuple[Figure, Any]:
    figure = Figure(figsize=(1.6 + 4.4 * panels, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, panels, sharey=True, squeeze=False)[0]


def curve_figure(task: str, figures: dict[str, Any]) -> Figure:
    """A task's learning curves. figures: its part of the summary."""
    modes = figures["modes"]
    figure, panels = _new_figure(len(modes))
    figure.suptitle(f"{task}: team accuracy on held-out problems, {_seed_words(figures)}", fontsize=12)
    for panel, (mode, block) in zip(panels, modes.items(), strict=True):
        for place, arm in enumerate(figures["arms"]):
            label = _arm_name(arm, figures["rates"]["chosen"].get(arm))
            _draw_arm(panel, arm, label, place, block["curves"][arm], faint=len(figures["arms"]) > 3)
        _dress(panel, f"{mode} decoding", "update")
        if mode == "sampled":
            _greedy_start(panel, modes)
    panels[0].set_ylim(*limits(figures))
    panels[0].set_ylabel("accuracy (%)")
    seeds = max(curve["finished"] for curve in next(iter(modes.values()))["curves"].values())
    band = "band: its 95 % t interval; " if seeds >= FEW_SEEDS else ""
    _legend(figure, panels[0], f"thick: mean of finished seeds; {band}thin: each seed")
    return figure


def _legend(figure: Figure, panel: Axes, explained: str) -> None:
    handles, labels = panel.get_legend_handles_labels()
    columns = max(1, min(3, len(labels)))
    figure.legend(handles, labels, title=explained, title_fontsize=9, loc="outside lower center", ncols=columns,
                  frameon=False)  # fmt: skip


def _greedy_start(panel: Axes, modes: dict[str, Any]) -> None:
    """How high greedy decoding was before training: below it, sampling only becomes surer (sharpening)."""
    starts = [block["before"]["mean"] for block in modes.get("greedy", {"arms": {}})["arms"].values()]
    if starts:
        level = 100 * sum(starts) / len(starts)
        panel.axhline(level, color="#444444", linestyle=(0, (1, 2)), linewidth=1.2, label=f"greedy start {level:.1f} %")


def _arm_name(arm: str, rate: float | None) -> str:
    return arm if rate is None else f"{arm}, lr {rate:g}"


def _draw_arm(panel: Axes, arm: str, label: str, place: int, curve: dict[str, Any], faint: bool) -> None:
    """Thin lines: each seed. Thick line: mean of the finished seeds. Band: 95 % t interval of that mean, from FEW_SEEDS
    on."""
    colour, dash = COLOURS.get(arm, UNKNOWN_ARM), DASHES[place % len(DASHES)]
    alpha = 0.2 if faint else 0.5
    for seed in curve["seeds"].values():
        panel.plot(seed["updates"], _percent(seed["accuracy"]), color=colour, linewidth=0.7, alpha=alpha)
    label = f"{label} ({curve['finished']} of {_count(len(curve['seeds']))})"
    if not curve["updates"]:
        panel.plot([], [], color=colour, linewidth=0.7, label=label)
        return
    if len(curve["updates"]) == 1:  # never trained: a level to compare with
        panel.axhline(100 * curve["mean"][0], color=colour, linestyle=":", linewidth=1.5, label=label)
        return
    panel.plot(curve["updates"], _percent(curve["mean"]), color=colour, linestyle=dash, linewidth=2.2, label=label,
               zorder=3)  # fmt: skip
    if curve["finished"] >= FEW_SEEDS:
        low, high = (_percent(min(1.0, max(0.0, edge)) for edge in curve[name]) for name in ("low", "high"))
        panel.fill_between(curve["updates"], low, high, color=colour, alpha=0.16, linewidth=0)


def _rates_figure(task: str, figures: dict[str, Any]) -> Figure:
    """Final accuracy over the learning rate: every run a dot, the mean a line, the chosen rate a ring."""
    trials, modes = figures["rates"]["trials"], list(figures["modes"])
    figure, panels = _new_figure(len(modes))
    figure.suptitle(f"{task}: final team accuracy by learning rate", fontsize=12)
    for panel, mode in zip(panels, modes, strict=True):
        for place, arm in enumerate(figures["arms"]):
            own = [t for t in trials if t["arm"] == arm and t["rate"] is not None and t["after"][mode]]
            _draw_rates(panel, arm, place, len(figures["arms"]), mode, own)
        _dress(panel, f"{mode} decoding", "learning rate (log scale)")
        panel.set_xscale("log")
        ticks = sorted({trial["rate"] for trial in trials if trial["rate"] is not None})
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
    panels[0].set_ylabel("accuracy after the last update (%)")
    _legend(figure, panels[0], "dots: each seed; line: mean; ring: the rate chosen by training reward")
    return figure


def _draw_rates(panel: Axes, arm: str, place: int, arms: int, mode: str, own: list[dict[str, Any]]) -> None:
    colour = COLOURS.get(arm, UNKNOWN_ARM)
    aside = 1.03 ** (place - (arms - 1) / 2)  # arms at one rate stand side by side
    rates = [trial["rate"] * aside for trial in own]
    means = [100 * trial["after"][mode]["mean"] for trial in own]
    panel.plot(rates, means, color=colour, linestyle=DASHES[place % len(DASHES)], linewidth=1.8, label=arm)
    for rate, mean, trial in zip(rates, means, own, strict=True):
        finals = _percent(trial["finals"][mode])
        panel.plot([rate] * len(finals), finals, ".", color=colour, alpha=0.6, markersize=5)
        if trial["chosen"]:
            panel.plot([rate], [mean], "o", color=colour, markerfacecolor="none", markersize=11, markeredgewidth=1.6)


def _dress(panel: Axes, title: str, along: str) -> None:
    panel.set_title(title, fontsize=10)
    panel.set_xlabel(along)
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
