"""A store of the keys and values of prompts, so that the frozen base reads each of them once in an update."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

from baselines.policies.prompt_states import Place, PromptBlock, PromptStates

STORE_SHARE = 1 / 2
"""Largest share of the budget of a pass that the stored keys and values take in an update."""


class PromptStore:
    """Stores the keys and values of prompts under frozen bases, within a limit.

    A prompt is found by its base and its token ids. So the same prompt in several episodes is read and stored once, and
    a prompt never gets the keys and values of another one. Prompts beyond the limit are read again whenever they are
    needed.

    Args:
        limit: Largest number of bytes.

    Attributes:
        bytes: Size of the stored keys and values.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._places: dict[tuple[Hashable, bytes], Place] = {}
        self.bytes = 0

    def states(
        self, base: Hashable, ids: Tensor, lengths: Tensor, read: Callable[[Tensor, Tensor], PromptBlock]
    ) -> PromptStates:
        """Return the keys and values of prompts, and store those that are new.

        Args:
            base: The base.
            ids: [n, P] token ids, padded on the right.
            lengths: [n] tokens of each prompt.
            read: Function that reads prompts with the base, from ``ids`` and ``lengths`` of some of them.
        """
        rows = zip(ids.cpu().numpy(), lengths.tolist(), strict=True)
        keys = [(base, row[:length].tobytes()) for row, length in rows]
        places = {key: self._places[key] for key in keys if key in self._places}
        new: dict[tuple[Hashable, bytes], int] = {}
        for i, key in enumerate(keys):
            if key not in places:
                new.setdefault(key, i)
        if new:
            chosen = torch.tensor(list(new.values()), device=ids.device)
            block = read(ids[chosen, : int(lengths[chosen].max())], lengths[chosen])
            places |= {key: Place(block, row) for row, key in enumerate(new)}
            if self.bytes + block.bytes <= self._limit:
                self.bytes += block.bytes
                self._places |= {key: places[key] for key in new}
        return PromptStates([places[key] for key in keys])

    def close(self) -> None:
        """Delete everything and store nothing more, after an out-of-memory error."""
        self._limit = self.bytes = 0
        self._places.clear()
