"""Detection of losses and gradients that are not finite, and the error that stops a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from baselines.errors import RunError
from baselines.trajectory import AgentTurns, Batch, Views


class NonFiniteLoss(RunError):
    """Too many updates in a row had a loss or a gradient that is NaN or infinite.

    Attributes:
        path: File with the batch of the last update, for ``torch.load(path, weights_only=True)``; None if it was not
            saved.
    """

    def __init__(self, updates: int, path: Path | None) -> None:
        saved = f"the last batch is in {path}" if path else "the batch was not saved, because no folder was given"
        super().__init__(f"{updates} updates in a row had a loss or a gradient that is not finite; {saved}")
        self.path = path


class NonFiniteMonitor:
    """Counts updates with steps that were not finite, and stops the run after too many in a row.

    Args:
        limit: Number of consecutive updates that stops the run.
        folder: Where the batch of the last update is saved then; None to save nothing.
    """

    def __init__(self, limit: int, folder: Path | None) -> None:
        self.limit, self.folder = limit, folder
        self.in_a_row = self.total = 0

    def observe(self, bad: bool, batch: Batch) -> None:
        """Count one update.

        Args:
            bad: Whether a step of the update was skipped because its loss or gradient was not finite.
            batch: The batch of the update.

        Raises:
            NonFiniteLoss: If this was one too many in a row.
        """
        self.in_a_row = self.in_a_row + 1 if bad else 0
        self.total += bad
        if self.in_a_row >= self.limit:
            raise NonFiniteLoss(self.in_a_row, save_batch(batch, self.folder) if self.folder else None)


def save_batch(batch: Batch, folder: Path) -> Path:
    """Write a batch's tensors to ``folder/nonfinite_batch.pt`` and return the path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "nonfinite_batch.pt"
    torch.save(_plain(batch), path)
    return path


def _plain(value: Any) -> Any:
    """Return records as dicts, which ``torch.load(weights_only=True)`` accepts."""
    if isinstance(value, Batch | Views | AgentTurns):
        return {name: _plain(getattr(value, name)) for name in value.__slots__}
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value
