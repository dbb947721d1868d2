"""Keys and values of prompts, which one model computes and another one continues.

An activated adapter acts from a position in the prompt on, see ``LoraSettings.activated``. Before it, the frozen base
reads; its keys and values do not depend on the adapter, so all agents, all epochs and pi_0 have them in common.

Axes: n prompts, h heads of keys and values, P tokens of the longest prompt, d the size of a head, S tokens after a
prompt, L = P + S, H the width of the hidden states.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache, DynamicLayer

from baselines.policies.shared_prefix import LEAST_SAVED
from baselines.trajectory import AgentTurns


class KeyValues(NamedTuple):
    """Keys and values of some prompts in one layer.

    Attributes:
        keys: [n, h, P, d].
        values: [n, h, P, d']; in some architectures, heads of values have a size of their own.
    """

    keys: Tensor
    values: Tensor


class PromptBlock(NamedTuple):
    """Keys and values of prompts that were read together. Every prompt ends in the last column.

    Attributes:
        layers: Keys and values of each layer. What is in the columns before a prompt has no meaning.
        lengths: [n] tokens of each prompt.
    """

    layers: list[KeyValues]
    lengths: Tensor

    @property
    def bytes(self) -> int:
        """Size of the keys and values."""
        return sum(t.numel() * t.element_size() for layer in self.layers for t in layer)


class Place(NamedTuple):
    """Where the keys and values of the first tokens of a prompt are.

    Attributes:
        block: The block.
        row: The row of the block.
        tokens: Number of the first tokens.
        after: Number of tokens that follow them in the row.
    """

    block: PromptBlock
    row: int
    tokens: int
    after: int = 0


class PromptStates:
    """Keys and values of n prompts, which may come from several blocks. Every prompt ends in the last column.

    Args:
        places: Where each prompt is.

    Attributes:
        lengths: [n] tokens of each prompt.
        columns: P, the tokens of the longest one.
        layers: Number of layers.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        device = places[0].block.lengths.device
        pieces: dict[tuple[int, int], list[int]] = {}
        for i, place in enumerate(places):
            pieces.setdefault((id(place.block), place.after), []).append(i)
        self._pieces = [
            (
                places[targets[0]].block,
                after,
                torch.tensor([places[i].row for i in targets], device=device),
                torch.tensor(targets, device=device),
            )
            for (_, after), targets in pieces.items()
        ]
        self.lengths = torch.tensor([place.tokens for place in places], device=device)
        self.columns = max(place.tokens for place in places)
        self.layers = len(places[0].block.layers)
        whole = list(range(len(places[0].block.lengths)))
        self._whole = list(pieces) == [(id(places[0].block), 0)] and [p.row for p in places] == whole

    def layer(self, index: int) -> KeyValues:
        """Return the keys and values of a layer, which are put together at every call."""
        first = self._pieces[0][0].layers[index]
        if self._whole:
            return KeyValues(*(states[:, :, states.shape[2] - self.columns :] for states in first))
        return KeyValues(*(self._joined(index, part) for part in range(2)))

    def _joined(self, index: int, part: int) -> Tensor:
        like = self._pieces[0][0].layers[index][part]
        joined = like.new_zeros(len(self.lengths), like.shape[1], self.columns, like.shape[3])
        for block, after, source, target in self._pieces:
            states = block.layers[index][part]
            end = states.shape[2] - after
            common = min(self.columns, end)
            joined[target, :, self.columns - common :] = states[source, :, end - common : end]
        return joined


class _ContinuedLayer(DynamicLayer):
    """The keys and values of prompts in one layer, to which every ``update`` appends others.

    It does not store them, so that the backward pass of gradient checkpointing can compute the layer again.
    """

    def __init__(self, prompts: PromptStates, index: int) -> None:
        super().__init__()
        self._prompts, self._index = prompts, index

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Return the keys and values of the prompts, followed by those of the new tokens."""
        keys, values = self._prompts.layer(self._index)
        return torch.cat([keys, key_states], 2), torch.cat([values, value_states], 2)

    def get_seq_length(self) -> int:
        """Return the number of columns of the prompts."""
        return self._prompts.columns


def takes_positions(trunk: nn.Module) -> bool:
    """Return whether a trunk takes positions; a model without position embeddings does not."""
    return "position_ids" in inspect.signature(trunk.forward).parameters


@torch.no_grad()
def read_prompts(
    trunk: nn.Module, ids: Tensor, lengths: Tensor, layers: int, before: PromptStates | None = None
) -> PromptBlock:
    """Return the keys and values of prompts. A prefix that all of them begin with is read once.

    Args:
        trunk: The model below the output head.
        ids: [n, P] token ids, padded on the right.
        lengths: [n] tokens of each prompt; the largest is P.
        layers: Number of the trunk's layers, each of which keeps keys and values only.
        before: Keys and values of the first tokens of each prompt, but not of all its tokens; None if there are none.

    Raises:
        ValueError: The model returns no cache.
    """
    columns = torch.arange(ids.shape[1], device=ids.device)
    cache = Cache(layers=[DynamicLayer() for _ in range(layers)])  # also with sliding windows, all tokens are stored
    if before is not None:
        first = before.lengths.unsqueeze(-1)
        rest = columns[: int((lengths - before.lengths).max())]
        mask = rest < lengths.unsqueeze(-1) - first
        for index, layer in enumerate(cache.layers):
            layer.update(*before.layer(index))
        _continued(trunk, before, cache, ids.gather(1, (first + rest).clamp(max=ids.shape[1] - 1)), mask)
        read = before.columns + mask.shape[1]
        missing = mask.shape[1] - mask.sum(-1)
    else:
        shared = _shared(ids, lengths)
        if shared:
            trunk(input_ids=ids[:1, :shared], cache=cache, use_cache=True)
            for layer in cache.layers:
                layer.keys, layer.values = (t.expand(len(ids), -1, -1, -1) for t in (layer.keys, layer.values))
        mask = (columns < lengths.unsqueeze(-1)).long()
        trunk(input_ids=ids[:, shared:], attention_mask=mask, cache=cache, use_cache=True)
        read, missing = ids.shape[1], ids.shape[1] - lengths
    if cache.get_seq_length() != read:
        raise ValueError(f"model class {type(trunk).__name__} fills no cache: expected a decoder with keys and values")
    return PromptBlock(_ending_together(cache, missing, ids.shape[1]), lengths)


def _ending_together(cache: Cache, missing: Tensor, width: int) -> list[KeyValues]:
    """Return the last columns of each layer, [n, h, width, d], with each row moved right by its missing tokens [n]."""
    found, moved = [], bool(missing.any())
    for layer in cache.layers:
        states = KeyValues(layer.keys, layer.values)
        layer.keys = layer.values = None
        if moved:
            states = KeyValues(*(_right_aligned(t, missing) for t in states))
        found.append(KeyValues(*(t[:, :, t.shape[2] - width :].contiguous() for t in states)))
    return found


def _shared(ids: Tensor, lengths: Tensor) -> int:
    """Return how many first tokens of all prompts are read only once; 0 if that would save too little."""
    common = min(int((ids == ids[:1]).all(0).long().cumprod(0).sum()), int(lengths.min()) - 1)
    return common if common * (len(ids) - 1) >= LEAST_SAVED else 0


def _right_aligned(states: Tensor, missing: Tensor) -> Tensor:
    """Return states [n, h, P, d] with each row moved to the right by its number of missing tokens [n]."""
    n, heads, length, size = states.shape
    source = (torch.arange(length, device=states.device) - missing.unsqueeze(-1)).clamp(min=0)
    return states.gather(2, source.view(n, 1, length, 1).expand(-1, heads, -1, size))


def read_after(trunk: nn.Module, prompts: PromptStates, turns: AgentTurns) -> Tensor:
    """Return the last hidden states [n, L, H] of turns whose prompts have been read up to ``base_tokens``.

    They are 0 before that position.

    Args:
        trunk: The model below the output head. It need not be the one that read the prompts.
        prompts: Keys and values of the first ``base_tokens`` of each turn.
        turns: n turns.
    """
    first = turns.base_tokens.unsqueeze(-1)
    counts = turns.token_mask.sum(-1, keepdim=True) - first
    steps = torch.arange(int(counts.max()), device=counts.device)
    mask, length = steps < counts, int((first + counts).max())
    at = (first + steps).clamp(max=length - 1)
    cache = Cache(layers=[_ContinuedLayer(prompts, index) for index in range(prompts.layers)])
    states = _continued(trunk, prompts, cache, turns.tokens.gather(1, at), mask)
    row, step = mask.nonzero(as_tuple=True)
    blank = states.new_zeros(len(turns), length, states.shape[-1])
    return blank.index_put((row, at[row, step]), states[row, step])


def _continued(trunk: nn.Module, prompts: PromptStates, cache: Cache, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the last hidden states [n, S, H] of the tokens that follow prompts.

    Args:
        trunk: The model below the output head.
        prompts: Keys and values of the prompts.
        cache: The cache that the trunk reads, which holds those keys and values.
        ids: [n, S] token ids, padded on the right.
        mask: [n, S] bool.
    """
    columns = torch.arange(prompts.columns, device=ids.device)
    before = columns >= (prompts.columns - prompts.lengths).unsqueeze(-1)
    arguments: dict[str, Any] = {"attention_mask": torch.cat([before, mask], 1).long()}
    if takes_positions(trunk):
        arguments["position_ids"] = prompts.lengths.unsqueeze(-1) + (mask.long().cumsum(-1) - 1).clamp(min=0)
    return trunk(input_ids=ids, cache=cache, use_cache=True, **arguments).last_hidden_state
