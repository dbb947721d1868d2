"""Arms x learning rates x tasks x seeds: which runs a comparison is made of, from a preset and the command line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from baselines.engine.torch_engine import Decoding
from baselines.ladder import ARMS
from baselines.policies.policy import LoraSettings
from baselines.runs.run_config import RunConfig, check_keys, config_hash
from marft_envs.arguments import expected_one_of

PRESETS = Path(__file__).parents[1] / "presets"
_TABLES = ("settings", "decoding", "lora")  # a task's are laid over the grid's
_OF_A_RUN = ("model", "updates", "episodes", "evaluate_every", "evaluation_items", "training_rows", "cooperation",
             "transfer", "checkpoint_every", "tuning", "bases", "scripted", "sharing", "frozen")  # fmt: skip
TASK_KEYS = ("environment", "arguments", "learning_rates", *_OF_A_RUN, *_TABLES)
_OF_A_TEAM = ("team", "dependency", "stop", "rounds", "memory", "order")  # arguments that say who plays, and how
_SAFE = re.compile(r"[A-Za-z0-9._]+")


class GridError(ValueError):
    """A preset, an option or a results folder that cannot be used; the message is one line for the user."""


@dataclass(frozen=True)
class Grid:
    """What a comparison compares. ``seeds`` runs 0 .. seeds - 1; the other fields are RunConfig's, the same for every
    run unless a task has its own.

    tasks: name to a table with some of TASK_KEYS. learning_rates: trials of every arm, or a table from arm to its
    trials, the same number for each arm; empty: the one rate of ``settings``.
    """

    arms: tuple[str, ...]
    tasks: Mapping[str, Mapping[str, Any]]
    seeds: int = 5
    model: str = "tiny"
    allow_wheel: bool = False
    updates: int = 30
    episodes: int = 128
    evaluate_every: int = 5
    evaluation_items: int = 512
    cooperation: bool = True
    transfer: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    learning_rates: Any = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    decoding: Mapping[str, Any] = field(default_factory=dict)
    lora: Mapping[str, Any] = field(default_factory=dict)
    training_rows: int = 128
    checkpoint_every: int = 5
    tuning: str = "lora"
    bases: Mapping[str, str] = field(default_factory=dict)
    scripted: Mapping[str, str] = field(default_factory=dict)
    sharing: Mapping[str, str] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tasks", "transfer", "bases", "scripted", "sharing", *_TABLES):
            if not isinstance(getattr(self, name), Mapping):
                raise GridError(f"{name}={getattr(self, name)!r}: expected a table")
        if not isinstance(self.seeds, int) or self.seeds < 1 or not self.arms or not self.tasks:
            raise GridError(
                f"seeds={self.seeds}, arms={list(self.arms)}, tasks={list(self.tasks)}: expected at least one of each"
            )
        for arm in self.arms:
            if arm not in ARMS:
                raise GridError(expected_one_of("arm", arm, ARMS))
        if len(set(self.arms)) < len(self.arms):
            raise GridError(f"arms={list(self.arms)}: expected each once")
        for task, spec in self.tasks.items():
            if not _SAFE.fullmatch(task):
                raise GridError(f"task {task!r}: expected letters, digits, dots and underscores (it names files)")
            _checked(f"tasks.{task}", spec, TASK_KEYS)
            self._rates(task)

    def runs(self) -> list[RunConfig]:
        """All runs, seed by seed, so that a stopped comparison has whole pairs."""
        return [
            self._run(task, arm, rate, seed)
            for seed in range(self.seeds)
            for task in self.tasks
            for arm, rates in self._rates(task).items()
            for rate in rates or (None,)
        ]

    def _rates(self, task: str) -> dict[str, tuple[float, ...]]:
        """Each arm's trials on a task. GridError unless every arm that learns has the same number of them."""
        given = self.tasks[task].get("learning_rates", self.learning_rates)
        where = f"task {task}: learning_rates"
        if isinstance(given, Mapping):
            _checked(where, given, tuple(ARMS))
            rates = {arm: _trials(f"{where}.{arm}", given.get(arm, ())) for arm in self.arms}
        else:
            rates = dict.fromkeys(self.arms, _trials(where, given))
        rates = {arm: () if _never_learns(arm) else trials for arm, trials in rates.items()}
        counts = {arm: len(trials) for arm, trials in rates.items() if not _never_learns(arm)}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{arm} {count}" for arm, count in counts.items())
            raise GridError(f"{where}: {told}; expected the same number of trials for every arm")
        return rates

    def _run(self, task: str, arm: str, rate: float | None, seed: int) -> RunConfig:
        spec = self.tasks[task]
        tables = {name: {**getattr(self, name), **spec.get(name, {})} for name in _TABLES}
        if rate is not None:
            tables["settings"]["learning_rate"] = rate
        try:
            return RunConfig(
                arm=arm,
                task=task,
                environment=spec.get("environment", "math_v0"),
                environment_arguments=dict(spec.get("arguments", {})),
                allow_wheel=self.allow_wheel,
                seed=seed,
                settings=tables["settings"],
                lora=LoraSettings(**tables["lora"]),
                decoding=Decoding(**tables["decoding"]),
                keep_checkpoints=1,
                **{name: spec.get(name, getattr(self, name)) for name in _OF_A_RUN},
            )
        except (ValueError, TypeError) as fault:
            raise GridError(f"task {task}, arm {arm}: {fault}") from fault

    def resolved(self) -> dict[str, Any]:
        """All that decides a number, as JSON-able values: for each task what its runs share, and every arm's learner
        and learning rates."""
        runs = self.runs()
        tasks: dict[str, dict[str, Any]] = {}
        for run in runs:
            plain = run.resolved()
            learner = plain.pop("learner")
            for name in ("arm", "task", "seed", "allow_wheel", "checkpoint_every", "keep_checkpoints"):
                del plain[name]
            entry = tasks.setdefault(run.task, {**plain, "learners": {}, "learning_rates": {}})
            rate = learner.pop("learning_rate")
            entry["learners"][run.arm] = learner
            if not _never_learns(run.arm) and run.seed == 0:
                entry["learning_rates"].setdefault(run.arm, []).append(rate)
        return {"arms": list(self.arms), "seeds": list(range(self.seeds)), "tasks": tasks}

    def hash(self) -> str:
        """Of ``resolved``."""
        return config_hash(self.resolved())


def _never_learns(arm: str) -> bool:
    return arm in ARMS and ARMS[arm].update == "none"


def _trials(where: str, given: Any) -> tuple[float, ...]:
    """Distinct positive rates."""
    good = isinstance(given, list | tuple) and all(
        isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0 for rate in given
    )
    if not good or len(set(given)) < len(given):
        raise GridError(f"{where}={given!r}: expected a list of different positive numbers")
    return tuple(float(rate) for rate in given)


def _checked(where: str, table: Any, known: tuple[str, ...]) -> None:
    """GridError unless it is a table of known keys; names the nearest one."""
    if not isinstance(table, Mapping):
        raise GridError(f"{where}={table!r}: expected a table")
    try:
        check_keys(where, table, known)
    except ValueError as fault:
        raise GridError(str(fault)) from fault


def load_preset(name: str) -> Grid:
    """A grid from ``presets/<name>.toml`` or from a file of your own. GridError for anything it cannot read."""
    path = Path(name) if name.endswith(".toml") else PRESETS / f"{name}.toml"
    if not path.is_file():
        known = sorted(p.stem for p in PRESETS.glob("*.toml"))
        raise GridError(expected_one_of("preset", name, known, ", or the path of a .toml file"))
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise GridError(f"preset {path}: {fault}") from fault
    where = f"preset {path}"
    _checked(where, table, tuple(f.name for f in fields(Grid)))
    if "arms" not in table or "tasks" not in table:
        raise GridError(f"{where}: expected arms and tasks")
    if not isinstance(table["arms"], list):
        raise GridError(f'{where}: arms={table["arms"]!r}: expected a list of names, as in ["ippo", "marft"]')
    try:
        return Grid(**{**table, "arms": tuple(table["arms"])})
    except TypeError as fault:  # a number where a list or a table belongs
        raise GridError(f"{where}: {fault}") from fault


def with_options(grid: Grid, options: Mapping[str, Any]) -> Grid:
    """The grid with those options that are not None, in place of its tasks' own values, too."""
    given = {name: value for name, value in options.items() if value is not None}
    tasks = {task: {k: v for k, v in spec.items() if k not in given} for task, spec in grid.tasks.items()}
    return replace(grid, **{"tasks": tasks, **given})


def with_transfer(grid: Grid, datasets: Sequence[str], path: str | None) -> Grid:
    """The grid, each of whose tasks is also evaluated on ``datasets``, played by the task's own team. path: where they
    lie; None: where the environment looks."""
    place = {} if path is None else {"path": path}
    tasks = {}
    for task, spec in grid.tasks.items():
        team = {name: value for name, value in spec.get("arguments", {}).items() if name in _OF_A_TEAM}
        tasks[task] = {**spec, "transfer": {name: {"dataset": name, **team, **place} for name in datasets}}
    return replace(grid, tasks=tasks)
