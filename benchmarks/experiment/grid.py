"""Grid of a comparison: its runs are tasks x arms x learning rates x seeds, from a preset and the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from baselines.engine.chat_template import ChatSettings
from baselines.engine.torch_engine import Decoding
from baselines.ladder import ARMS, LearnerConfig
from baselines.policies.policy import LoraSettings
from baselines.runs.config_files import set_keys
from baselines.runs.run_config import RunConfig, check_keys, config_hash, decisive
from benchmarks.experiment.presets import GridError, check_arms, preset_path, read_preset
from marft_envs.arguments import expected_one_of

_RECORDS = {"settings": LearnerConfig, "decoding": Decoding, "lora": LoraSettings, "chat": ChatSettings}
_MERGED = tuple(_RECORDS)  # here a task overrides the grid key by key
_RUN_KEYS = ("model", "dtype", "quantization", "updates", "episodes", "evaluate_every", "evaluation_items",
             "memory_gib", "gradient_checkpointing", "training_rows", "cooperation", "transfer", "checkpoint_every",
             "tuning", "bases", "scripted", "sharing", "frozen")  # fmt: skip
TASK_KEYS = ("environment", "arguments", "learning_rates", *_RUN_KEYS, *_MERGED)
# Environment arguments that define the team; a transfer data set gets those of the task.
TEAM_ARGUMENTS = ("team", "dependency", "stop", "rounds", "memory", "order")
_TASK_NAME = re.compile(r"[A-Za-z0-9._]+")


@dataclass(frozen=True)
class Grid:
    """Settings of a comparison. Fields that are not listed here are those of RunConfig, for every run.

    Attributes:
        arms: Names of ``baselines.ARMS``, each once.
        tasks: Name -> mapping with some of TASK_KEYS, which override the fields of the grid for this task.
        seeds: Number of training seeds; they are 0 .. seeds - 1.
        learning_rates: Sweep: a list of rates for every arm, or a mapping from arm to its rates, of the same number
            for each arm. Empty: the one rate of ``settings``.
        reference: Name of the task that the report compares every other task with; empty: no such comparison.

    Raises:
        GridError: Names the field, the value and what was expected.
    """

    arms: tuple[str, ...]
    tasks: Mapping[str, Mapping[str, Any]]
    reference: str = ""
    seeds: int = 5
    model: str = "tiny"
    allow_wheel: bool = False
    device: str = "auto"
    dtype: str = "auto"
    quantization: str = "none"
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
    memory_gib: float | None = None
    gradient_checkpointing: str = "auto"
    chat: Mapping[str, Any] = field(default_factory=dict)
    training_rows: int = 128
    checkpoint_every: int = 5
    tuning: str = "lora"
    bases: Mapping[str, str] = field(default_factory=dict)
    scripted: Mapping[str, str] = field(default_factory=dict)
    sharing: Mapping[str, str] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tasks", "transfer", "bases", "scripted", "sharing", *_MERGED):
            if not isinstance(getattr(self, name), Mapping):
                raise GridError(f"{name}={getattr(self, name)!r}: expected a mapping")
        _check_records("", {name: getattr(self, name) for name in _MERGED})
        if not isinstance(self.seeds, int) or self.seeds < 1 or not self.arms or not self.tasks:
            raise GridError(
                f"seeds={self.seeds}, arms={list(self.arms)}, tasks={list(self.tasks)}: expected at least one of each"
            )
        check_arms(self.arms)
        if len(set(self.arms)) < len(self.arms):
            raise GridError(f"arms={list(self.arms)}: expected each name once")
        if self.reference and self.reference not in self.tasks:
            raise GridError(expected_one_of("reference", self.reference, self.tasks))
        for task, spec in self.tasks.items():
            if not _TASK_NAME.fullmatch(task):
                raise GridError(
                    f"task {task!r}: expected letters, digits, dots and underscores (files are named after it)"
                )
            _check_mapping(f"tasks.{task}", spec, TASK_KEYS)
            _check_records(f"tasks.{task}.", spec)
            self._rates(task)

    def runs(self) -> list[RunConfig]:
        """Return all runs, seed by seed, so that a stopped comparison has complete pairs."""
        return [
            self._run(task, arm, rate, seed)
            for seed in range(self.seeds)
            for task in self.tasks
            for arm, rates in self._rates(task).items()
            for rate in rates or (None,)
        ]

    def _rates(self, task: str) -> dict[str, tuple[float, ...]]:
        """Return each arm's learning rates on a task. Raise GridError if arms that learn have different numbers."""
        value = self.tasks[task].get("learning_rates", self.learning_rates)
        where = f"task {task}: learning_rates"
        if isinstance(value, Mapping):
            _check_mapping(where, value, tuple(ARMS))
            rates = {arm: _positive_rates(f"{where}.{arm}", value.get(arm, ())) for arm in self.arms}
        else:
            rates = dict.fromkeys(self.arms, _positive_rates(where, value))
        rates = {arm: () if _never_learns(arm) else own for arm, own in rates.items()}
        counts = {arm: len(own) for arm, own in rates.items() if not _never_learns(arm)}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{arm} has {count}" for arm, count in counts.items())
            raise GridError(f"{where}: {listed}; expected the same number of rates for every arm")
        return rates

    def _run(self, task: str, arm: str, rate: float | None, seed: int) -> RunConfig:
        spec = self.tasks[task]
        merged = {name: {**getattr(self, name), **spec.get(name, {})} for name in _MERGED}
        if rate is not None:
            merged["settings"]["learning_rate"] = rate
        try:
            return RunConfig(
                arm=arm,
                task=task,
                environment=spec.get("environment", "math_v0"),
                environment_arguments=dict(spec.get("arguments", {})),
                allow_wheel=self.allow_wheel,
                device=self.device,
                seed=seed,
                settings=merged["settings"],
                lora=LoraSettings(**merged["lora"]),
                decoding=Decoding(**merged["decoding"]),
                chat=ChatSettings(**merged["chat"]),
                keep_checkpoints=1,
                **{name: spec.get(name, getattr(self, name)) for name in _RUN_KEYS},
            )
        except (ValueError, TypeError) as error:
            raise GridError(f"task {task}, arm {arm}: {error}") from error

    def resolved(self) -> dict[str, Any]:
        """Return the settings of all runs as JSON values, without those that affect no number.

        Returns:
            "arms", "seeds", "reference" if there is one, and "tasks": for each task what its runs share, every arm's
            learner and learning rates.
        """
        runs = self.runs()
        tasks: dict[str, dict[str, Any]] = {}
        for run in runs:
            plain = run.resolved()
            learner = plain.pop("learner")
            for name in ("arm", "task", "seed", "allow_wheel", "device", "checkpoint_every", "keep_checkpoints"):
                del plain[name]
            entry = tasks.setdefault(run.task, {**plain, "learners": {}, "learning_rates": {}})
            rate = learner.pop("learning_rate")
            entry["learners"][run.arm] = learner
            if not _never_learns(run.arm) and run.seed == 0:
                entry["learning_rates"].setdefault(run.arm, []).append(rate)
        named = {"reference": self.reference} if self.reference else {}
        return {"arms": list(self.arms), "seeds": list(range(self.seeds)), **named, "tasks": tasks}

    def hash(self) -> str:
        """Return the hash of the settings that a resumed comparison must have (``decisive_settings``)."""
        return config_hash(decisive_settings(self.resolved()))


def decisive_settings(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of ``Grid.resolved`` that a resumed comparison must have.

    Of each task these are the settings that a resumed run must have, and ``updates``: all runs of a comparison are
    evaluated at the same updates. The reference is a setting of the report alone.
    """
    tasks = {task: {**decisive(entry), "updates": entry["updates"]} for task, entry in resolved["tasks"].items()}
    return {**{name: value for name, value in resolved.items() if name != "reference"}, "tasks": tasks}


def _never_learns(arm: str) -> bool:
    return arm in ARMS and ARMS[arm].update == "none"


def _positive_rates(where: str, value: Any) -> tuple[float, ...]:
    """Return the learning rates. Raise GridError unless they are positive and different."""
    valid = isinstance(value, list | tuple) and all(
        isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0 for rate in value
    )
    if not valid or len(set(value)) < len(value):
        raise GridError(f"{where}={value!r}: expected a list of different positive numbers")
    return tuple(float(rate) for rate in value)


def _check_mapping(where: str, value: Any, known: tuple[str, ...]) -> None:
    """Raise GridError unless the value is a mapping of known keys; suggest the nearest key."""
    if not isinstance(value, Mapping):
        raise GridError(f"{where}={value!r}: expected a mapping")
    try:
        check_keys(where, value, known)
    except ValueError as error:
        raise GridError(str(error)) from error


def _check_records(where: str, settings: Mapping[str, Any]) -> None:
    """Raise GridError for an unknown key of the mappings ``settings``, ``decoding``, ``lora`` and ``chat``."""
    for name, record in _RECORDS.items():
        if name in settings:
            _check_mapping(f"{where}{name}", settings[name], tuple(f.name for f in fields(record)))


def load_preset(name: str) -> Grid:
    """Read a grid.

    Args:
        name: Name of a file in benchmarks/presets without its ending, or the path of a .toml file.

    Raises:
        GridError: There is no such file, it is not TOML, or its contents are wrong.
    """
    path, settings = preset_path(name), read_preset(name)
    where = f"preset {path}"
    _check_mapping(where, settings, tuple(f.name for f in fields(Grid)))
    try:
        return Grid(**{**settings, "arms": tuple(settings["arms"])})
    except TypeError as error:  # for example a number instead of a list
        raise GridError(f"{where}: {error}") from error


def with_options(grid: Grid, options: Mapping[str, Any]) -> Grid:
    """Return the grid with other values, which also replace those of its tasks.

    Args:
        grid: A grid.
        options: Field -> value; None leaves the field unchanged.
    """
    changes = {name: value for name, value in options.items() if value is not None}
    tasks = {task: {k: v for k, v in spec.items() if k not in changes} for task, spec in grid.tasks.items()}
    return replace(grid, **{"tasks": tasks, **changes})


def with_settings(grid: Grid, settings: Mapping[str, Any]) -> Grid:
    """Return the grid with settings changed in all of its tasks.

    Args:
        grid: A grid.
        settings: A key of a task, or a dotted key inside one of its mappings, such as ``episodes``,
            ``decoding.max_new_tokens`` or ``arguments.dataset`` -> value.

    Raises:
        GridError: A key is unknown, or a value is invalid.
    """
    tasks = {task: dict(spec) for task, spec in grid.tasks.items()}
    for dotted, value in settings.items():
        name = dotted.partition(".")[0]
        _check_mapping("--set", {name: value}, TASK_KEYS)
        for spec in tasks.values():
            value_now = spec.get(name, getattr(grid, name, {}))
            if name in _MERGED:
                value_now = {**getattr(grid, name), **spec.get(name, {})}
            try:
                spec.update(set_keys({name: value_now}, {dotted: value}))
            except ValueError as error:
                raise GridError(str(error)) from error
    return replace(grid, tasks=tasks)


def with_transfer(grid: Grid, datasets: Sequence[str], path: str | None) -> Grid:
    """Return the grid with an evaluation of every task's team on further data sets.

    Args:
        grid: A grid.
        datasets: Names of the data sets.
        path: Their file or folder; None: where the environment looks by default.
    """
    location = {} if path is None else {"path": path}
    tasks = {}
    for task, spec in grid.tasks.items():
        team = {name: value for name, value in spec.get("arguments", {}).items() if name in TEAM_ARGUMENTS}
        tasks[task] = {**spec, "transfer": {name: {"dataset": name, **team, **location} for name in datasets}}
    return replace(grid, tasks=tasks)
