"""Rows to a tracker: TensorBoard, Weights & Biases or trackio. Each is imported when it is asked for, not before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from baselines.runs.run_config import RunConfig
from marft_envs.arguments import expected_one_of

TRACKERS = ("tensorboard", "wandb", "trackio", "none")
_LABELS = ("kind", "arm", "task", "seed", "update", "mode", "item_index", "item_score")


class TrackerError(RuntimeError):
    """A tracker that is not installed or does not begin; the message says what would help."""


class Tracker(Protocol):
    """Takes rows."""

    def row(self, row: Mapping[str, Any]) -> None:
        """Send the numbers of a row."""

    def close(self) -> None:
        """Send what is left."""


class Nowhere:
    """The tracker "none"."""

    def row(self, row: Mapping[str, Any]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def choose_tracker(name: str | None) -> str:
    """``name``, once it is sure that its package is there; None is TensorBoard where it is installed, else "none".

    TrackerError names the extra where the package is missing.
    """
    if name is None:
        return "tensorboard" if find_spec("tensorboard") else "none"
    if name not in TRACKERS:
        raise ValueError(expected_one_of("track", name, TRACKERS))
    if name != "none" and find_spec(name) is None:
        extra = "tracking" if name == "tensorboard" else name
        raise TrackerError(f"track={name!r} needs the package {name}: pip install 'marft-envs[{extra}]'")
    return name


def make_tracker(name: str, config: RunConfig, folder: Path, *, resumed: bool) -> Tracker:
    """The tracker that ``choose_tracker`` gave, for the run in ``folder``. TrackerError where it does not begin."""
    if name == "none":
        return Nowhere()
    return TensorBoard(folder) if name == "tensorboard" else Service(name, config, folder, resumed)


def scalars(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """(name, number) of everything in the row that is a number: ``train/reward``, ``train/agents/actor_0/entropy``,
    ``eval/relay/sampled/accuracy``."""
    prefix = f"eval/{row['task']}/{row['mode']}" if row["kind"] == "eval" else "train"
    yield from _flat(prefix, {k: v for k, v in row.items() if k not in _LABELS})


def _flat(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}/{name}", value)
        elif isinstance(value, (int, float)):
            yield f"{prefix}/{name}", float(value)


class TensorBoard:
    """Event files in ``folder/tensorboard``; the updates of a killed run that come again hide the old ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tensorboard"
        self._writer: Any = None

    def row(self, row: Mapping[str, Any]) -> None:
        """The row's numbers at its update."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            again = self.folder.is_dir()
            self._writer = SummaryWriter(str(self.folder), purge_step=row["update"] if again else None)
        for name, value in scalars(row):
            self._writer.add_scalar(name, value, row["update"])

    def close(self) -> None:
        """Flush."""
        if self._writer is not None:
            self._writer.close()


class Service:
    """wandb and trackio share ``init``, ``log`` and ``finish``. The run is called by its folder; ``update`` is logged
    with every row, as the axis to plot over, because a resumed run says some updates again."""

    def __init__(self, name: str, config: RunConfig, folder: Path, resumed: bool) -> None:
        service = import_module(name)
        title = f"{config.task}-{config.arm}-{config.seed}"
        keywords: dict[str, Any] = {"project": "marft-envs", "name": f"{folder.resolve().name}-{title}"}
        if name == "wandb":
            place = hashlib.sha256(f"{config.hash()} {folder.resolve()}".encode()).hexdigest()[:12]
            keywords |= {"dir": str(folder), "id": f"{title}-{place}", "resume": "allow" if resumed else None}
        else:
            keywords |= {"resume": "allow" if resumed else "never"}
        try:
            self.run = service.init(config=config.resolved(), **keywords)
        except Exception as fault:  # the service's boundary: its own errors, and those of its network
            raise TrackerError(f"track={name!r} did not begin ({type(fault).__name__}: {fault})") from fault

    def row(self, row: Mapping[str, Any]) -> None:
        """The row's numbers."""
        self.run.log({**dict(scalars(row)), "update": row["update"]})

    def close(self) -> None:
        """Wait until all is sent."""
        self.run.finish()
