"""The cost of a turn: the raw game, ``OrderEnforcing``, PettingZoo's wrappers and the batch runner.

A *turn* is one ``agent_iter`` + ``last`` (with the observation) + ``step`` of a live agent. The time covers all live
turns of an episode and its end. It does not cover ``reset``, the problem (made once), grading (deferred), the steps of
terminated agents and the garbage collector (off, as in ``timeit``). The lines of the batch runner do include resets, a
trivial grader and the rewards, on both sides of the comparison.

Repetitions alternate between the subjects, so that other load on the machine affects all of them. ``best`` is the
minimum, which is disturbed least. Ratios are between bests; ``paired`` is the median of the ratios within each
repetition. Ratios hold on other machines, microseconds do not.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pettingzoo
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper

from marft_envs import FlexMG, Problem, Role, Task, Team, Verdict
from marft_envs.batch import BatchRunner
from marft_envs.game.order_enforcing import OrderEnforcing
from marft_envs.mathematics.teams import TEAMS

SHORT = "hello"
LONG = "a" * 4_000
LONG_UNICODE = "\u00e9\u65e5" * 2_000
EPISODES = 128
BATCHES = (1, 16, 256)


class Fixed(Task):
    """One problem, made once, and a grader that does nothing, so that only the game is timed."""

    name = "fixed"
    size = 1
    _problem = Problem(0, "Ann has 3 apples and buys 4 more. How many apples has she now?", "7")
    _verdict = Verdict.correct()

    def problem(self, index: int) -> Problem:
        return self._problem

    def grade(self, answer: str, problem: Problem) -> Verdict:
        return self._verdict


@dataclass
class Subject:
    """Something whose turns are timed.

    Attributes:
        name: Label in the table.
        turns: Number of turns in a repetition.
        run: Does one repetition and returns its seconds.
        micros: Microseconds per turn of each repetition.
    """

    name: str
    turns: int
    run: Callable[[], float]
    micros: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        """Smallest time per turn, in microseconds."""
        return min(self.micros)

    @property
    def median(self) -> float:
        """Median time per turn, in microseconds."""
        return statistics.median(self.micros)


@dataclass(frozen=True)
class Goal:
    """A measured number and its bound.

    Attributes:
        name: Label in the table.
        value: Measured number.
        bound: Largest acceptable value; None: for information only.
        unit: Unit of the value, "us" or "x".
        paired: The same from the median over repetitions.
    """

    name: str
    value: float
    bound: float | None
    unit: str = ""
    paired: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the value is within the bound; None without a bound."""
        return None if self.bound is None else self.value <= self.bound


def raw(team: Team) -> FlexMG:
    """Return the raw game on the fixed problem."""
    return FlexMG(Fixed(), team, defer_grading=True)


def stock(team: Team) -> Any:
    """Return the same game in the wrappers of PettingZoo's environment template."""
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(raw(team)))


def connected(n: int, shape: str) -> Team:
    """Return a team of n agents with one line of instructions each, under a preset dependency function."""
    return Team({f"agent_{i}": Role(f"You are agent {i} of a team.") for i in range(n)}, shape)


def turns_of(name: str, make: Callable[[], Any], text: str = SHORT) -> Subject:
    """Return a subject that times the live turns of EPISODES environments, which are reset before."""
    envs = [make() for _ in range(EPISODES)]
    live = len(envs[0].possible_agents)

    def run() -> float:
        for env in envs:
            env.reset(seed=0)
        start = time.perf_counter()
        for env in envs:
            for _ in env.agent_iter(live):
                env.last()
                env.step(text)
        return time.perf_counter() - start

    return Subject(name, live * EPISODES, run)


def whole(name: str, make: Callable[[], Any]) -> Subject:
    """Return a subject that times whole episodes, with reset and the steps of terminated agents, per live turn."""
    env = make()
    live = len(env.possible_agents)

    def run() -> float:
        start = time.perf_counter()
        for _ in range(EPISODES):
            env.reset(options={"index": 0})
            for agent in env.agent_iter():
                env.last()
                env.step(None if env.terminations[agent] else SHORT)
        return time.perf_counter() - start

    return Subject(name, live * EPISODES, run)


def by_hand(size: int, repeats: int) -> Subject:
    """Return a subject that plays a batch of raw environments in a plain loop: reset, turns, grading, rewards."""
    envs = [raw(TEAMS["duo"]()) for _ in range(size)]

    def run() -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            for env in envs:
                env.reset(options={"index": 0})
                for _ in env.agent_iter(2):
                    env.last()
                    env.step(SHORT)
                env.settle(env.grade())
        return time.perf_counter() - start

    return Subject(f"by hand, {size} environments", 2 * size * repeats, run)


def by_runner(size: int, repeats: int) -> Subject:
    """Return a subject that plays the same batch with the batch runner and a constant policy."""
    runner = BatchRunner(raw(TEAMS["duo"]()), size)
    indices = [0] * size

    def run() -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            runner.play(lambda requests: [SHORT] * len(requests), indices=indices)
        return time.perf_counter() - start

    return Subject(f"batch runner, {size} environments", 2 * size * repeats, run)


def subjects() -> dict[str, Subject]:
    """Return everything that is timed, by a short key."""
    made = {
        "raw": turns_of("raw FlexMG, duo", lambda: raw(TEAMS["duo"]())),
        "env": turns_of("env(): with OrderEnforcing", lambda: OrderEnforcing(raw(TEAMS["duo"]()))),
        "stock": turns_of("in PettingZoo's wrappers", lambda: stock(TEAMS["duo"]())),
        "raw_whole": whole("raw, whole episodes", lambda: raw(TEAMS["duo"]())),
        "env_whole": whole("env(), whole episodes", lambda: OrderEnforcing(raw(TEAMS["duo"]()))),
        "stock_whole": whole("PettingZoo's, whole episodes", lambda: stock(TEAMS["duo"]())),
        "long": turns_of("raw, duo, 4,000 ASCII characters", lambda: raw(TEAMS["duo"]()), LONG),
        "unicode": turns_of("raw, duo, 4,000 non-ASCII characters", lambda: raw(TEAMS["duo"]()), LONG_UNICODE),
    }
    for shape in ("chain", "full"):
        for n in (1, 2, 4, 8):
            make = partial(raw, connected(n, shape))
            made[f"{shape}{n}"] = turns_of(f"raw, {n} agent{'s' * (n > 1)}, {shape}", make)
    for size in BATCHES:
        made[f"hand{size}"] = by_hand(size, repeats=max(1, BATCHES[-1] // size))
        made[f"batch{size}"] = by_runner(size, repeats=max(1, BATCHES[-1] // size))
    return made


def measure(timed: dict[str, Subject], repetitions: int) -> None:
    """Time every subject ``repetitions`` times, alternating between subjects, after one repetition to warm up."""
    for repetition in range(repetitions + 1):
        gc.collect()
        gc.disable()
        try:
            for subject in timed.values():
                micros = subject.run() / subject.turns * 1e6
                if repetition:
                    subject.micros.append(micros)
        finally:
            gc.enable()


def goals(timed: dict[str, Subject]) -> list[Goal]:
    """Return the measured numbers: those with a bound that the project promises, and others for information."""

    def ratio(name: str, above: str, below: str, bound: float | None) -> Goal:
        a, b = timed[above], timed[below]
        paired = statistics.median(x / y for x, y in zip(a.micros, b.micros, strict=True))
        return Goal(name, a.best / b.best, bound, "x", paired)

    def difference(name: str, above: str, below: str, bound: float | None) -> Goal:
        a, b = timed[above], timed[below]
        paired = statistics.median(x - y for x, y in zip(a.micros, b.micros, strict=True))
        return Goal(name, a.best - b.best, bound, "us", paired)

    own, wrappers = timed["env"].best - timed["raw"].best, timed["stock"].best - timed["raw"].best
    return [
        Goal("raw, us per turn", timed["raw"].best, 1.5, "us", timed["raw"].median),
        Goal("env(), us per turn", timed["env"].best, 3.0, "us", timed["env"].median),
        ratio("raw / stock", "raw", "stock", 0.142),
        ratio("env() / stock", "env", "stock", 0.283),
        Goal("OrderEnforcing / overhead of stock", own / wrappers, 0.2, "x"),
        ratio("raw / stock, whole episodes", "raw_whole", "stock_whole", None),
        ratio("env() / stock, whole episodes", "env_whole", "stock_whole", None),
        ratio("8 agents / 2, chain", "chain8", "chain2", 2.0),
        ratio("8 agents / 2, full", "full8", "full2", 2.0),
        ratio("4,000 ASCII characters / 5", "long", "raw", 2.0),
        ratio("4,000 non-ASCII characters / 5", "unicode", "raw", None),
        *(
            difference(f"batch runner adds per turn, N = {n}", f"batch{n}", f"hand{n}", 10.0 if n == 256 else None)
            for n in BATCHES
        ),
        *(ratio(f"batch runner / by hand, N = {n}", f"batch{n}", f"hand{n}", None) for n in BATCHES),
    ]


def table(timed: dict[str, Subject], results: Sequence[Goal]) -> str:
    """Return both tables as text."""
    lines = [f"{'us per turn':40} {'best':>8} {'median':>8} {'/ stock':>8}"]
    base = timed["stock"].best
    for s in timed.values():
        lines.append(f"{s.name:40} {s.best:8.3f} {s.median:8.3f} {s.best / base:8.3f}")
    lines += ["", f"{'goal':40} {'measured':>11} {'paired':>8} {'at most':>8}"]
    for g in results:
        paired = "" if g.paired is None else f"{g.paired:.3f}"
        bound = "" if g.bound is None else f"{g.bound:g}"
        verdict = {True: "met", False: "MISSED", None: ""}[g.met]
        lines.append(f"{g.name:40} {g.value:8.3f} {g.unit:2} {paired:>8} {bound:>8} {verdict}")
    return "\n".join(lines)


def record(timed: dict[str, Subject], results: Sequence[Goal], repetitions: int) -> dict[str, Any]:
    """Return all measurements as JSON-able values."""
    return {
        "repetitions": repetitions,
        "python": platform.python_version(),
        "pettingzoo": pettingzoo.__version__,
        "machine": platform.machine(),
        "subjects": {k: {"name": s.name, "turns": s.turns, "micros": s.micros} for k, s in timed.items()},
        "goals": [
            {"name": g.name, "value": g.value, "unit": g.unit, "paired": g.paired, "bound": g.bound, "met": g.met}
            for g in results
        ],
    }


def run(options: argparse.Namespace) -> None:
    """Measure all subjects, print both tables, and write the file that the command line names."""
    timed = subjects()
    measure(timed, options.repetitions)
    results = goals(timed)
    print(table(timed, results))
    if options.json:
        options.json.write_text(json.dumps(record(timed, results, options.repetitions), indent=1) + "\n")
        print(f"written to {options.json}")
