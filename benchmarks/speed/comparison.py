"""A comparison of sides that do the same work: alternating measurements, ratios, shares of a limit, and the table."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Seconds = dict[str, float]
"""Seconds of one repetition: "total", and the parts of it that a side reports."""
REFERENCE, PRODUCTS, BANDWIDTH = "reference style", "limit: matrix products", "limit: memory bandwidth"
LIMITS = (PRODUCTS, BANDWIDTH)
GENERATION_SIDES = {"merged", "unmerged", "together", "activated", "reference", "continuous"}
UPDATE_SIDES = {"ippo", "marft", "activated-update", "reference-update"}
ACTIVATED_SIDES = {"activated", "activated-update"}
"""The sides that need a model with activated adapters."""
REFERENCE_SIDES = {"reference", "continuous", "reference-update"}
"""The sides that need the model of the reference style."""
LONG_S = 20.0
"""A first repetition that takes as many seconds counts: what it costs to warm up disappears in them."""


@dataclass(frozen=True)
class Cell:
    """The size of the work that the sides of a comparison do.

    Attributes:
        episodes: Episodes E, which are also the rows that one agent generates at a time.
        agents: Agents N of the team; each acts once in an episode.
        prompts: "short", the prompts as the environment makes them, or "long".
        new_tokens: Tokens T of an action.
    """

    episodes: int
    agents: int
    prompts: str
    new_tokens: int

    @property
    def tokens(self) -> int:
        """Generated tokens of all actions."""
        return self.episodes * self.agents * self.new_tokens


@dataclass
class Side:
    """One way to do the work of a cell.

    Attributes:
        name: Label in the table.
        run: Does the work once and returns its seconds.
        rival: Whether the side is other software.
        seconds: The seconds of every repetition.
        failure: Why the side did not run; empty if it did.
    """

    name: str
    run: Callable[[], Seconds]
    rival: bool = False
    seconds: list[Seconds] = field(default_factory=list)
    failure: str = ""

    @property
    def totals(self) -> list[float]:
        """Seconds of every repetition."""
        return [found["total"] for found in self.seconds]

    @property
    def best(self) -> float:
        """Smallest number of seconds of a repetition."""
        return min(self.totals)

    @property
    def parts(self) -> Seconds:
        """The parts of the best repetition, in seconds; empty for a side that reports none."""
        best = min(self.seconds, key=lambda found: found["total"])
        return {name: seconds for name, seconds in best.items() if name != "total"}


def measure(sides: Sequence[Side], repetitions: int) -> None:
    """Time every side ``repetitions`` times, alternating between sides.

    The first repetition of a side warms up and does not count, unless it takes LONG_S seconds. A side that raises keeps
    the reason in ``failure`` and is not run again.

    Args:
        sides: The sides, which are changed.
        repetitions: At least 1.
    """
    for repetition in range(repetitions + 1):
        for side in sides:
            if side.failure or len(side.seconds) == repetitions:
                continue
            gc.collect()
            try:
                found = side.run()
            except Exception as error:
                side.failure = first_line(error)
                side.seconds.clear()
                continue
            if repetition or found["total"] >= LONG_S:
                side.seconds.append(found)


def first_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[0]}"


def named(sides: Sequence[Side], *names: str) -> list[Side]:
    """Return the sides with these names that were measured."""
    return [side for side in sides if side.name in names and side.seconds]


def limit_seconds(sides: Sequence[Side]) -> float | None:
    """Return the seconds that the machine needs at least: the largest of the limits; None if none was measured."""
    return max((side.best for side in named(sides, *LIMITS)), default=None)


def share(side: Side, sides: Sequence[Side]) -> float | None:
    """Return the share of the machine's limit that a side reaches, 1 at the limit; None if none was measured."""
    limit = limit_seconds(sides)
    return None if limit is None or not side.seconds else limit / side.best


def speedup(side: Side, sides: Sequence[Side]) -> tuple[float, float] | None:
    """Return how many times as fast as the reference style a side is; None if one of them was not measured.

    Returns:
        The ratio of the best repetitions, and the median of the ratios within each repetition.
    """
    found = named(sides, REFERENCE)
    if not found or not side.seconds:
        return None
    pairs = zip(found[0].totals, side.totals, strict=True)
    return found[0].best / side.best, statistics.median(theirs / own for theirs, own in pairs)


HEAD = (
    f"{'episodes':>8} {'agents':>6} {'prompts':>7}  {'work':9} {'side':33} {'best':>18} {'median':>10} {'of limit':>8} "
    f"{'x ref.':>7} {'paired':>7}  parts of the best, s"
)


def table_lines(cell: Cell, work: str, sides: Sequence[Side]) -> list[str]:
    """Return a line of the table for each side of a cell.

    Args:
        cell: The cell.
        work: "generate", in generated tokens per second, "update", in seconds per update, or "step", in seconds per
            generation and update together.
        sides: The sides, after ``measure``.
    """
    return [_line(cell, work, side, sides) for side in sides]


def _line(cell: Cell, work: str, side: Side, sides: Sequence[Side]) -> str:
    label = f"{cell.episodes:8} {cell.agents:6} {cell.prompts:>7}  {work:9} {side.name:33}"
    if side.failure:
        return f"{label} did not run: {side.failure}"

    def write(seconds: float) -> str:
        return f"{cell.tokens / seconds:,.1f}" if work == "generate" else f"{seconds:,.3f}"

    unit = "tokens/s" if work == "generate" else f"s/{work}"
    reached, ratios = share(side, sides), speedup(side, sides)
    cells = [
        f"{write(side.best):>9} {unit:8}",
        f"{write(statistics.median(side.totals)):>10}",
        f"{'' if reached is None else f'{reached:.1%}':>8}",
        *(f"{'' if ratios is None else f'{ratio:.2f}':>7}" for ratio in ratios or (0.0, 0.0)),
    ]
    parts = ", ".join(f"{name} {seconds:.3f}" for name, seconds in side.parts.items())
    return f"{' '.join([label, *cells])}  {parts}".rstrip()


def memory_line(peaks: dict[str, int | str]) -> str:
    """Return the peak memory by number of agents, and the ratio of the largest team's to the smallest's.

    Args:
        peaks: Number of agents -> bytes, or why they were not measured.
    """
    parts = [
        f"{agents} agent{'s' * (agents != '1')} " + (peak if isinstance(peak, str) else f"{peak / 2**20:,.0f} MiB")
        for agents, peak in peaks.items()
    ]
    few, many = peaks[min(peaks, key=int)], peaks[max(peaks, key=int)]
    if isinstance(few, int) and isinstance(many, int) and few > 0:
        parts.append(f"ratio {many / few:.2f}")
    return ", ".join(parts)


def as_json(sides: Sequence[Side]) -> dict[str, Any]:
    """Return all measurements by side, as values that JSON can hold."""
    return {side.name: {"seconds": side.seconds, "failure": side.failure} for side in sides}


def from_json(found: dict[str, Any]) -> list[Side]:
    """Return the sides whose measurements ``as_json`` returned, for ``table_lines``."""
    return [Side(name, dict, seconds=of_side["seconds"], failure=of_side["failure"]) for name, of_side in found.items()]
