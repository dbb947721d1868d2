"""Trackers of a run: TensorBoard, Weights & Biases and trackio, each imported only when it is used.

A tracker gets the configuration, the numbers of every row, and a table of sampled episodes per evaluation.
"""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from baselines.errors import RunError

if TYPE_CHECKING:  # at run time it would load torch, and ``train --help`` needs TRACKERS only
    from baselines.runs.run_config import RunConfig
    from marft_envs.batch import Episode

TRACKERS = ("tensorboard", "wandb", "trackio", "none")
_LABELS = ("kind", "arm", "task", "seed", "update", "mode", "item_index", "item_score")


class TrackerError(RunError):
    """A tracker is not installed or cannot start. The message says what to install or check."""


class Tracker(Protocol):
    """A service that logs the configuration, the rows and the samples of a run."""

    def row(self, row: Mapping[str, Any]) -> None:
        """Log the numbers of a row."""

    def samples(self, update: int, episodes: Sequence[Episode]) -> None:
        """Log sampled episodes of the evaluation after an update as a table."""

    def close(self) -> None:
        """Send what is still buffered."""


class NoTracker:
    """The tracker "none": it logs nothing."""

    def row(self, row: Mapping[str, Any]) -> None:
        """Do nothing."""

    def samples(self, update: int, episodes: Sequence[Episode]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def choose_tracker(name: str | None) -> str:
    """Return the name of the tracker to use.

    Args:
        name: A name of TRACKERS. None selects "tensorboard" if it is installed, else "none".

    Raises:
        ValueError: The name is unknown.
        TrackerError: The tracker's package is not installed; the message names the extra to install.
    """
    from marft_envs.arguments import expected_one_of

    if name is None:
        return "tensorboard" if find_spec("tensorboard") else "none"
    if name not in TRACKERS:
        raise ValueError(expected_one_of("track", name, TRACKERS))
    if name != "none" and find_spec(name) is None:
        extra = "tracking" if name == "tensorboard" else name
        raise TrackerError(f"track={name!r} needs the package {name}: pip install '.[{extra}]' in the repository")
    return name


def make_tracker(name: str, config: RunConfig, folder: Path, *, resumed: bool) -> Tracker:
    """Return the tracker of a run.

    Args:
        name: The result of ``choose_tracker``.
        config: Configuration of the run, logged with it.
        folder: Folder of the run.
        resumed: Whether the run continues one that the tracker already has.

    Raises:
        TrackerError: The service cannot start.
    """
    if name == "none":
        return NoTracker()
    return TensorBoard(config, folder) if name == "tensorboard" else Service(name, config, folder, resumed)


def scalars(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield (name, value) for every number in a row.

    Names are paths, such as ``train/reward``, ``train/agents/actor_0/entropy`` or ``eval/relay/sampled/accuracy``.
    """
    prefix = f"eval/{row['task']}/{row['mode']}" if row["kind"] == "eval" else "train"
    yield from _flatten(prefix, {k: v for k, v in row.items() if k not in _LABELS})


def _flatten(prefix: str, mapping: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in mapping.items():
        if isinstance(value, Mapping):
            yield from _flatten(f"{prefix}/{name}", value)
        elif isinstance(value, (int, float)):
            yield f"{prefix}/{name}", float(value)


class TensorBoard:
    """Event files in ``folder/tensorboard``. A resumed run hides the updates that it repeats.

    Configuration and samples are under TEXT.
    """

    def __init__(self, config: RunConfig, folder: Path) -> None:
        self.config, self.folder = config, folder / "tensorboard"
        self._writer: Any = None

    def row(self, row: Mapping[str, Any]) -> None:
        """Log the numbers of a row at its update."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            resumed = self.folder.is_dir()
            self._writer = SummaryWriter(str(self.folder), purge_step=row["update"] if resumed else None)
            settings = json.dumps(self.config.resolved(), indent=1)
            self._writer.add_text("configuration", f"<pre>{html.escape(settings)}</pre>", row["update"])
        for name, value in scalars(row):
            self._writer.add_scalar(name, value, row["update"])

    def samples(self, update: int, episodes: Sequence[Episode]) -> None:
        """Log the episodes as a table in Markdown, after the first row."""
        from baselines.runs.episode_text import SAMPLE_COLUMNS, sample_row

        rows = [SAMPLE_COLUMNS, ("---",) * len(SAMPLE_COLUMNS), *(sample_row(update, e) for e in episodes)]
        self._writer.add_text("samples", "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows), update)

    def close(self) -> None:
        """Write what is still buffered."""
        if self._writer is not None:
            self._writer.close()


def _cell(value: Any) -> str:
    """Return a value as a cell of a Markdown table, in which a model's text has no markup."""
    text = "" if value is None else html.escape(str(value)).replace("|", "&#124;").replace("`", "&#96;")
    return text.replace("\n", "<br>")


class Service:
    """Weights & Biases or trackio, which share ``init``, ``log`` and ``finish``.

    The run is named after its folder. ``update`` is logged with every row, as the axis to plot over: the service's own
    step counter does not fit, because a resumed run repeats the updates after its checkpoint.
    """

    def __init__(self, name: str, config: RunConfig, folder: Path, resumed: bool) -> None:
        self.name, self.service = name, import_module(name)
        title = f"{config.task}-{config.arm}-{config.seed}"
        keywords: dict[str, Any] = {"project": "marft-envs", "name": f"{folder.resolve().name}-{title}"}
        if name == "wandb":
            digest = hashlib.sha256(f"{config.hash()} {folder.resolve()}".encode()).hexdigest()[:12]
            keywords |= {"dir": str(folder), "id": f"{title}-{digest}", "resume": "allow" if resumed else None}
        else:
            keywords |= {"resume": "allow" if resumed else "never"}
        try:
            self.run = self.service.init(config=config.resolved(), **keywords)
        except Exception as error:  # the service raises its own errors and those of several network libraries
            raise TrackerError(f"track={name!r} could not start ({type(error).__name__}: {error})") from error

    def row(self, row: Mapping[str, Any]) -> None:
        """Log the numbers of a row."""
        self.run.log({**dict(scalars(row)), "update": row["update"]})

    def samples(self, update: int, episodes: Sequence[Episode]) -> None:
        """Log the episodes as a table of the service."""
        from baselines.runs.episode_text import SAMPLE_COLUMNS, sample_row

        columns, data = list(SAMPLE_COLUMNS), [list(sample_row(update, episode)) for episode in episodes]
        if self.name == "trackio":  # it ignores ``columns``, and depends on pandas
            table = self.service.Table(dataframe=import_module("pandas").DataFrame(data, columns=columns))
        else:
            table = self.service.Table(columns=columns, data=data)
        self.run.log({"samples": table, "update": update})

    def close(self) -> None:
        """Wait until everything is sent."""
        self.run.finish()
