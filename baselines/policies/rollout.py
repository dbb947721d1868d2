"""The models that generate actions.

For one agent it is the policy's own model, or a copy of the base with the agent's adapter merged in; for several agents
at a time, a model whose rows have adapters of their own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from baselines.policies.merged_copy import MergedCopy, can_merge
from baselines.policies.mixed_adapters import MixedAdapters, can_mix
from baselines.policies.policy import SharedBasePolicy
from baselines.policies.prompt_states import takes_positions
from baselines.policies.weights import LoraWeights

MIXED_ROWS = 16
"""Largest mean number of rows of an adapter with which agents share a batch, if adapters are merged otherwise.

Measured with SmolLM2-135M in float32 on one core, as CPU time: a step of all rows with merged adapters one after
another, divided by a step of a mixed batch, is 1.1 and 3.3 with 1 row for each of 2 and 8 adapters, 1.6 and 3.5 with 4,
2.7 with 8 for each of 8 adapters, and 1.35 with 16 for each of 2. The more rows, the less of a step is reading weights.
"""


class ActiveModel(NamedTuple):
    """A model that generates for one agent, or for several.

    Attributes:
        name: Name of the model's class.
        config: Configuration of the model.
        device: Its device.
        trunk: The model below the output head, which returns the last hidden states and the cache.
        logits: Function from last hidden states [n, H] to logits [n, V].
        takes_positions: Whether the trunk takes positions; a model without position embeddings does not.
        policy: The policies on the base, which reads the part of a prompt that is the base's alone.
        assign: Function that takes the adapter of each row of the next pass of the trunk.
    """

    name: str
    config: Any
    device: torch.device
    trunk: nn.Module
    logits: Callable[[Tensor], Tensor]
    takes_positions: bool
    policy: SharedBasePolicy
    assign: Callable[[Sequence[str | None]], None]


def _one_adapter(adapters: Sequence[str | None]) -> None:
    """Do nothing: all rows have the adapter of the model."""


class RolloutModels:
    """Gives the model that generates for an agent, or for several.

    Args:
        policy: The policies on one base.
        merge: Whether adapters are merged into a copy of the base. The copy is made at the first use. Adapters on a
            quantized base and full copies of the base are used as they are.
    """

    def __init__(self, policy: SharedBasePolicy, *, merge: bool) -> None:
        self._policy = policy
        self._merges = merge and can_merge(policy.weights)
        self._copy: MergedCopy | None = None
        self._mixed: MixedAdapters | None = None
        self._can_mix: bool | None = None

    def mixes(self, rows: Mapping[str | None, int]) -> bool:
        """Return whether agents are served in one batch rather than one adapter after another, which is slower then.

        Args:
            rows: Number of rows by adapter; None is the base alone.
        """
        if len(rows) < 2 or (self._merges and sum(rows.values()) > MIXED_ROWS * len(rows)):
            return False
        if self._can_mix is None:
            self._can_mix = can_mix(self._policy.weights)
        return self._can_mix

    @contextlib.contextmanager
    def mixed(self, adapters: Sequence[str | None]) -> Iterator[ActiveModel]:
        """Yield a model whose rows have some adapters, as ``ActiveModel.assign`` says, for use within the block."""
        if self._mixed is None:
            assert isinstance(self._policy.weights, LoraWeights)
            self._mixed = MixedAdapters(self._policy.weights, self._policy.head.weight.dtype)
        self._mixed.load([adapter for adapter in adapters if adapter is not None])
        try:
            yield self._model(self._mixed.causal_lm, self._mixed.assign)
        finally:
            self._mixed.load([])

    @contextlib.contextmanager
    def active(self, agent: str | None) -> Iterator[ActiveModel]:
        """Yield the model of an agent, for use within the block; of the reference policy if the agent is None."""
        adapter = None if agent is None else self._policy.adapter_of.get(agent)
        if not self._merges or adapter is None:
            with self._policy.use(agent):
                yield self._model(self._policy.causal_lm)
            return
        if self._copy is None:
            assert isinstance(self._policy.weights, LoraWeights)
            self._copy = MergedCopy(self._policy.weights)
        self._copy.load(adapter)
        yield self._model(self._copy.causal_lm)

    def _model(self, causal_lm: Any, assign: Callable[[Sequence[str | None]], None] = _one_adapter) -> ActiveModel:
        trunk, policy = causal_lm.get_decoder(), self._policy
        logits, positions = policy.head_of(causal_lm), takes_positions(trunk)
        name, config = type(causal_lm).__name__, causal_lm.config
        return ActiveModel(name, config, policy.device, trunk, logits, positions, policy, assign)
