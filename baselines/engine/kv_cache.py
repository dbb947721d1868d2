"""A cache of keys and values that is written in place, and whose rows enter and leave a running batch.

transformers' own cache copies all keys and values of a layer in every step, to append those of one token, and once more
whenever a row of the batch has ended. Here a layer has buffers with room for further tokens and rows, and the model
reads views of them.

All rows end in the same column. So a row with fewer tokens than columns begins with unused columns, which the attention
mask has to hide; ``RunningBatch`` knows where each row starts.

Axes: n rows, h heads of keys and values, C columns, d the size of a head, P tokens of a prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

from baselines.policies.prompt_states import KeyValues


class _Placement(NamedTuple):
    """Prefixes, the number of unused columns before the prefix of each row, and the row of ``prefix`` that has it."""

    prefix: Callable[[], KeyValues]
    gaps: Tensor
    source: Tensor


class InPlaceLayer(DynamicLayer):
    """Keys and values of one layer. It holds all tokens, also in layers whose attention has a sliding window.

    Args:
        spare: Columns that a full buffer grows by.
    """

    keys: Tensor
    values: Tensor

    def __init__(self, spare: int) -> None:
        super().__init__()
        self._spare = spare
        self._buffers: list[Tensor] = []  # keys and values, [rows with room, h, columns with room, d]
        self.columns = 0
        self._placement: _Placement | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens, [n, h, t, d], and return those of all columns."""
        rows, start = key_states.shape[0], self.columns
        self.columns += key_states.shape[2]
        new = (key_states, value_states)
        if not self._buffers:
            self.device, self.is_initialized = key_states.device, True
            self._buffers = [_empty(states, rows, self.columns + self._spare) for states in new]
        self._reserve(rows, self.columns)
        for buffer, states in zip(self._buffers, new, strict=True):
            buffer[:rows, :, start : self.columns] = states
        if self._placement is not None:
            prefix, gaps, source = self._placement
            self._placement = None
            self._place(prefix(), gaps, source)
        self._show(rows)
        return self.keys, self.values

    def share(self, prefix: Callable[[], KeyValues], columns: int, gaps: Tensor, source: Tensor) -> None:
        """Let every row begin with a prefix. The first ``update`` appends what follows it.

        Args:
            prefix: Function that returns the keys and values of some prefixes; the first ``update`` calls it.
            columns: P, the columns of the prefixes.
            gaps: [n] unused columns before the prefix in each row. As many of the first tokens that ``update`` appends
                are padding.
            source: [n] the prefix of each row.
        """
        self.columns = columns
        self._placement = _Placement(prefix, gaps, source)

    def _place(self, prefix: KeyValues, gaps: Tensor, source: Tensor) -> None:
        """Write the prefix into every row, over the keys and values of the padding that follows it."""
        length = prefix.keys.shape[2]
        for gap in gaps.unique().tolist():
            rows = (gaps == gap).nonzero().squeeze(-1)
            to, of = rows.to(self.device), source[rows].to(self.device)
            for buffer, states in zip(self._buffers, prefix, strict=True):
                buffer[to, :, gap : gap + length] = states if len(states) == 1 else states[of]

    def get_seq_length(self) -> int:
        """Return the number of columns."""
        return self.columns

    def move_rows(self, sources: Tensor, targets: Tensor, rows: int) -> None:
        """Copy some rows over others, and keep the first ``rows`` rows."""
        if len(sources):
            for buffer in self._buffers:
                buffer[targets, :, : self.columns] = buffer[sources, :, : self.columns]
        self._show(rows)

    def append_rows(self, other: InPlaceLayer, rows: int) -> None:
        """Append the rows of another layer after the first ``rows`` rows. The last columns of both become the same."""
        added = other.keys.shape[0]
        if other.columns > self.columns:
            self._shift_right(other.columns - self.columns, rows)
        self._reserve(rows + added, self.columns)
        for mine, states in zip(self._buffers, (other.keys, other.values), strict=True):
            mine[rows : rows + added, :, self.columns - other.columns : self.columns] = states
        self._show(rows + added)

    def _shift_right(self, by: int, rows: int) -> None:
        old, self.columns = self.columns, self.columns + by
        self._reserve(rows, self.columns)
        for buffer in self._buffers:
            buffer[:rows, :, by : self.columns] = buffer[:rows, :, :old].clone()

    def empty(self) -> None:
        """Free the keys and values."""
        self._buffers, self.columns = [], 0
        self.keys = self.values = self.keys.new_empty(0)

    def drop_columns(self, count: int) -> None:
        """Drop the first columns, which no row uses."""
        rows = self.keys.shape[0]
        self.columns -= count
        for buffer in self._buffers:
            buffer[:rows, :, : self.columns] = buffer[:rows, :, count : count + self.columns].clone()
        self._show(rows)

    def _reserve(self, rows: int, columns: int) -> None:
        """Make room for rows and columns."""
        have = self._buffers[0].shape
        if rows <= have[0] and columns <= have[2]:
            return
        room = max(rows, have[0]), have[2] if columns <= have[2] else columns + self._spare
        larger = [_empty(buffer, *room) for buffer in self._buffers]
        for new, old in zip(larger, self._buffers, strict=True):
            new[: have[0], :, : have[2]] = old
        self._buffers = larger

    def _show(self, rows: int) -> None:
        self.keys, self.values = (buffer[:rows, :, : self.columns] for buffer in self._buffers)


def _empty(like: Tensor, rows: int, columns: int) -> Tensor:
    # Zeros: a masked column is multiplied by an attention weight of 0, which makes NaN of what is not a number.
    return like.new_zeros(rows, like.shape[1], columns, like.shape[3])


class InPlaceCache(Cache):
    """A transformers cache of ``InPlaceLayer``.

    Args:
        layers: Number of layers.
        spare: Columns that a full buffer grows by: large for few copies, small for little memory that is not used.
    """

    layers: list[InPlaceLayer]

    def __init__(self, layers: int, spare: int = 64) -> None:
        super().__init__(layers=[InPlaceLayer(spare) for _ in range(layers)])

    @property
    def columns(self) -> int:
        """Number of columns."""
        return self.layers[0].columns

    def share(self, prefix: Sequence[Callable[[], KeyValues]], columns: int, gaps: Tensor, source: Tensor) -> None:
        """Let every row begin with a prefix, see ``InPlaceLayer.share``. ``prefix`` has one function per layer."""
        for layer, states in zip(self.layers, prefix, strict=True):
            layer.share(states, columns, gaps, source)

    def layer_states(self) -> list[KeyValues]:
        """Return the keys and values of each layer, without a copy."""
        return [KeyValues(layer.keys, layer.values) for layer in self.layers]

    def keep(self, kept: Sequence[int], rows: int) -> list[int]:
        """Drop all other rows. Rows from the end fill the gaps, so that few are copied.

        Args:
            kept: The rows to keep, ascending.
            rows: Number of rows before.

        Returns:
            The rows in their new order.
        """
        count, wanted = len(kept), set(kept)
        order = list(range(count))
        free = [row for row in order if row not in wanted]
        movers = [row for row in kept if row >= count]
        for target, source in zip(free, movers, strict=True):
            order[target] = source
        device = self.layers[0].keys.device
        sources, targets = torch.tensor(movers, device=device), torch.tensor(free, device=device)
        for layer in self.layers:
            layer.move_rows(sources, targets, count)
        return order

    def append(self, other: InPlaceCache, rows: int) -> None:
        """Append all rows of another cache, which is empty afterwards, after the first ``rows`` rows."""
        for mine, layer in zip(self.layers, other.layers, strict=True):
            mine.append_rows(layer, rows)
            layer.empty()

    def drop_columns(self, count: int) -> None:
        """Drop the first columns, which no row uses."""
        for layer in self.layers:
            layer.drop_columns(count)
