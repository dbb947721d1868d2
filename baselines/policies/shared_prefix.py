"""A prefix that all turns of a pass begin with, such as the instructions of a role, is read once for all of them.

The turns of an agent begin with the same system prompt, which is often most of what they consist of. A pass reads it
once, and continues every turn from its keys and values. States, log-probabilities and gradients are those of whole
turns up to rounding: the gradients of all turns are added at the prefix.

Axes: n turns of a pass, L tokens of the longest, P tokens of the prefix, H the width of the hidden states.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from baselines.trajectory import AgentTurns

LEAST_SAVED = 256
"""Tokens that a shared prefix has to save, to be worth a pass of its own."""


def attention_layers(config: Any) -> list[DynamicLayer] | None:
    """Return the empty cache layers of a model that keeps keys and values only; None if it keeps something else.

    Convolutions and recurrent states cannot be continued from a shared prefix by several rows.

    Args:
        config: Configuration of the model.
    """
    layers = DynamicCache(config=config).layers
    plain = all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)
    return layers if layers and plain else None


def longest_shareable(config: Any) -> int:
    """Return the largest number of tokens of turns whose prefix can be shared: those within every sliding window.

    0 for a model that keeps something else than keys and values.
    """
    layers = attention_layers(config)
    if layers is None:
        return 0
    windows = [layer.sliding_window for layer in layers if isinstance(layer, DynamicSlidingWindowLayer)]
    return min(windows, default=2**31) - 1


def shared_tokens(turns: AgentTurns, longest: int) -> int:
    """Return the number P of first tokens that turns have in common and that a pass reads once; 0 if none.

    At least the last token of every prompt is read with its turn, because it predicts the first token of the action.

    Args:
        turns: n turns.
        longest: Most tokens of a turn that may share a prefix, see ``longest_shareable``.
    """
    if turns.tokens.is_meta or len(turns) < 2 or int(turns.token_mask.sum(-1).max()) > longest:
        return 0
    same = (turns.tokens == turns.tokens[:1]).all(0).long().cumprod(0).sum()
    common = min(int(same), int(turns.prompt_length.min()) - 1)
    return common if common * (len(turns) - 1) >= LEAST_SAVED else 0


def read_with_prefix(trunk: nn.Module, config: Any, ids: Tensor, mask: Tensor, shared: int) -> Tensor:
    """Return the last hidden states [n, L, H] of turns that begin with the same tokens.

    Args:
        trunk: The model below the output head.
        config: Its configuration.
        ids: [n, L] token ids, padded on the right.
        mask: [n, L] 1 for a token, 0 for padding.
        shared: P, at least 1.
    """
    cache = DynamicCache(config=config)
    start = trunk(input_ids=ids[:1, :shared], cache=cache, use_cache=True).last_hidden_state
    for layer in cache.layers:
        layer.keys = layer.keys.expand(len(ids), -1, -1, -1)
        layer.values = layer.values.expand(len(ids), -1, -1, -1)
    rest = trunk(input_ids=ids[:, shared:], attention_mask=mask, cache=cache, use_cache=True).last_hidden_state
    return torch.cat([start.expand(len(ids), -1, -1), rest], 1)
