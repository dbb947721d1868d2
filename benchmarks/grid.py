"""Arms x tasks x seeds: which runs a comparison is made of, and running them side by side, one thread each.

A results folder holds ``grid.json`` (the resolved configuration), ``cells/`` (the rows of each run, ``.part`` while it
is not finished) and ``rows.jsonl`` (all of them). A run that was stopped is begun again; finished ones are kept.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import platform
import queue
import threading
import time
import tomllib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from baselines.engine.torch_engine import Decoding
from baselines.policy import LoraSettings
from baselines.train import RunConfig, train

PRESETS = Path(__file__).parent / "presets"
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_PACKAGES = ("torch", "transformers", "peft", "pettingzoo", "gymnasium", "numpy", "scipy")


class GridError(ValueError):
    """A preset, an option or a results folder that cannot be used; the message is one line for the user."""


@dataclass(frozen=True)
class Grid:
    """What a comparison compares. tasks: name to {"environment": ..., "arguments": {...}}. The rest are RunConfig's
    fields, the same for every run; ``seeds`` runs 0 .. seeds - 1."""

    arms: tuple[str, ...]
    tasks: Mapping[str, Mapping[str, Any]]
    seeds: int = 5
    model: str = "tiny"
    allow_wheel: bool = False
    updates: int = 30
    episodes: int = 128
    evaluate_every: int = 5
    evaluation_items: int = 512
    transfer: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    decoding: Mapping[str, Any] = field(default_factory=dict)
    lora: Mapping[str, Any] = field(default_factory=dict)
    training_rows: int = 128

    def __post_init__(self) -> None:
        if self.seeds < 1 or not self.arms or not self.tasks:
            raise GridError(
                f"seeds={self.seeds}, arms={list(self.arms)}, tasks={list(self.tasks)}: expected at least one of each"
            )

    def runs(self) -> list[RunConfig]:
        """All runs, seed by seed, so that a stopped comparison has whole pairs."""
        return [self._run(arm, task, seed) for seed in range(self.seeds) for task in self.tasks for arm in self.arms]

    def _run(self, arm: str, task: str, seed: int) -> RunConfig:
        spec = self.tasks[task]
        try:
            return RunConfig(
                arm=arm,
                task=task,
                environment=spec.get("environment", "math_v0"),
                environment_arguments=dict(spec.get("arguments", {})),
                model=self.model,
                allow_wheel=self.allow_wheel,
                seed=seed,
                updates=self.updates,
                episodes=self.episodes,
                evaluate_every=self.evaluate_every,
                evaluation_items=self.evaluation_items,
                transfer=self.transfer,
                settings={**self.settings, **spec.get("settings", {})},
                lora=LoraSettings(**self.lora),
                decoding=Decoding(**self.decoding),
                training_rows=self.training_rows,
            )
        except (ValueError, TypeError) as fault:
            raise GridError(f"task {task}, arm {arm}: {fault}") from fault

    def resolved(self) -> dict[str, Any]:
        """The whole grid as JSON-able values; ``allow_wheel`` apart, which decides no number."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "allow_wheel"}
        plain |= {"arms": list(self.arms), "seeds": list(range(self.seeds))}
        learners = {run.arm: run.resolved()["learner"] for run in self.runs()}
        return {**plain, "learners": learners, "decoding": self.runs()[0].resolved()["decoding"]}


def load_preset(name: str) -> Grid:
    """A grid from ``presets/<name>.toml`` or from a file of your own. GridError for anything it cannot read."""
    path = Path(name) if name.endswith(".toml") else PRESETS / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in PRESETS.glob("*.toml")))
        raise GridError(f"preset {name!r}: expected one of {known}, or the path of a .toml file")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise GridError(f"preset {path}: {fault}") from fault
    names = [f.name for f in fields(Grid)]
    unknown = sorted(set(table) - set(names))
    if unknown or "arms" not in table or "tasks" not in table:
        raise GridError(f"preset {path}: unknown keys {unknown}; expected arms, tasks and some of {', '.join(names)}")
    return Grid(**{**table, "arms": tuple(table["arms"])})


def with_options(grid: Grid, options: Mapping[str, Any]) -> Grid:
    """The grid with those options that are not None."""
    return replace(grid, **{name: value for name, value in options.items() if value is not None})


def config_hash(resolved: Mapping[str, Any]) -> str:
    """Twelve hexadecimal digits of SHA-256 over the sorted JSON."""
    return hashlib.sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Results:
    """A results folder."""

    folder: Path

    def open(self, grid: Grid, *, resume: bool) -> None:
        """Begin, or go on. GridError if the folder exists and is not to be resumed, or holds another comparison."""
        resolved = grid.resolved()
        head = self.folder / "grid.json"
        if self.folder.exists() and any(self.folder.iterdir()):
            if not resume:
                raise GridError(f"results folder {self.folder} exists: expected --resume, or another folder with --out")
            if not head.is_file():
                raise GridError(f"results folder {self.folder} holds no grid.json: expected a folder of compare.py")
            found = json.loads(head.read_text(encoding="utf-8"))["config_hash"]
            if found != config_hash(resolved):
                raise GridError(
                    f"results folder {self.folder} holds another configuration ({found}, not {config_hash(resolved)}): "
                    "expected the same options, or another folder with --out"
                )
            return
        (self.folder / "cells").mkdir(parents=True, exist_ok=True)
        row = {
            "kind": "run",
            "config": resolved,
            "config_hash": config_hash(resolved),
            "versions": {name: metadata.version(name) for name in _PACKAGES} | {"python": platform.python_version()},
            "hardware": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        }
        head.write_text(json.dumps(row), encoding="utf-8")

    def cell(self, run: RunConfig) -> Path:
        """Where the rows of a finished run lie."""
        return self.folder / "cells" / f"{run.task}-{run.arm}-{run.seed}.jsonl"

    def merge(self) -> Path:
        """Write rows.jsonl anew from the head and all cells, unfinished ones too; atomically."""
        target, temporary = self.folder / "rows.jsonl", self.folder / "rows.jsonl.tmp"
        cells = sorted((self.folder / "cells").glob("*.jsonl")) + sorted((self.folder / "cells").glob("*.part"))
        with temporary.open("w", encoding="utf-8") as out:
            out.write((self.folder / "grid.json").read_text(encoding="utf-8").strip() + "\n")
            for cell in cells:
                out.writelines(line for line in cell.open(encoding="utf-8") if line.endswith("\n"))
        temporary.replace(target)
        return target


@dataclass(frozen=True)
class Event:
    """News of a run. kind: "row", "done" or "failed"; row: the row, or {"error": traceback}."""

    kind: str
    run: RunConfig
    row: Mapping[str, Any]


def execute(runs: Sequence[RunConfig], results: Results, workers: int) -> Iterator[Event]:
    """Run them in ``workers`` processes of one thread each, and tell what happens. Closing the generator stops them."""
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = "1"
    context = multiprocessing.get_context("spawn")
    jobs, news = context.Queue(), context.Queue()
    for run in runs:
        jobs.put((run, str(results.cell(run))))
    processes = [context.Process(target=_work, args=(jobs, news), daemon=True) for _ in range(min(workers, len(runs)))]
    for process in processes:
        jobs.put(None)
        process.start()
    left = len(runs)
    try:
        while left:
            try:
                event = news.get(timeout=1.0)
            except queue.Empty:
                if not any(p.is_alive() for p in processes):
                    raise GridError(f"all workers died with {left} runs left (out of memory?); use --resume") from None
                continue
            left -= event.kind != "row"
            yield event
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _die_with_the_parent() -> None:
    """A killed parent must not leave workers behind that train for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(jobs: Any, news: Any) -> None:
    """One worker: runs from the queue until None comes. Rows go to a .part file, which is renamed at the end."""
    import signal

    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops its workers itself
    threading.Thread(target=_die_with_the_parent, daemon=True).start()
    torch.set_num_threads(1)
    while (job := jobs.get()) is not None:
        run, path = job
        part = Path(path).with_suffix(".part")
        try:
            with part.open("w", encoding="utf-8") as out:

                def keep(row: dict[str, Any], run: RunConfig = run, out: Any = out) -> None:
                    out.write(json.dumps(row) + "\n")
                    out.flush()
                    news.put(Event("row", run, {k: v for k, v in row.items() if not k.startswith("item_")}))

                train(run, keep)
            part.replace(path)
            news.put(Event("done", run, {}))
        except Exception:  # the boundary of a run: told, and the other runs go on
            news.put(Event("failed", run, {"error": traceback.format_exc()}))
