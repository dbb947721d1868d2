"""What happens when a loss or a gradient is not finite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from baselines.trajectory import AgentTurns, Batch, Views


class NonFiniteLoss(RuntimeError):
    """Too many updates in a row had a loss or a gradient that was NaN or infinite. path: the batch of the last one
    (``torch.load(path, weights_only=True)``), None if there was no folder to save it in."""

    def __init__(self, updates: int, path: Path | None) -> None:
        saved = f"the last batch is in {path}" if path else "no folder was given to save the batch in"
        super().__init__(f"{updates} updates in a row had a loss that is not finite; {saved}")
        self.path = path


class NonFiniteMonitor:
    """Counts updates with a step that was skipped because it was not finite, and stops the run after ``limit`` in a
    row. folder: where the offending batch is saved then."""

    def __init__(self, limit: int, folder: Path | None) -> None:
        self.limit, self.folder = limit, folder
        self.in_a_row = self.total = 0

    def observe(self, bad: bool, batch: Batch) -> None:
        """After each update. Raises NonFiniteLoss."""
        self.in_a_row = self.in_a_row + 1 if bad else 0
        self.total += bad
        if self.in_a_row >= self.limit:
            raise NonFiniteLoss(self.in_a_row, save_batch(batch, self.folder) if self.folder else None)


def save_batch(batch: Batch, folder: Path) -> Path:
    """Write a batch's tensors to ``folder/nonfinite_batch.pt``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "nonfinite_batch.pt"
    torch.save(_plain(batch), path)
    return path


def _plain(value: Any) -> Any:
    """Records as dicts, so that ``torch.load(weights_only=True)`` reads them."""
    if isinstance(value, Batch | Views | AgentTurns):
        return {name: _plain(getattr(value, name)) for name in value.__slots__}
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value
