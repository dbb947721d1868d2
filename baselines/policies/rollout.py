"""The models that generate actions: a policy's own model, or a copy of the base with the agent's adapter merged in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from baselines.policies.merged_copy import MergedCopy, can_merge
from baselines.policies.policy import SharedBasePolicy
from baselines.policies.prompt_states import PromptBlock, takes_positions
from baselines.policies.weights import LoraWeights


class ActiveModel(NamedTuple):
    """A model that generates for one agent.

    Attributes:
        name: Name of the model's class.
        config: Configuration of the model.
        device: Its device.
        trunk: The model below the output head, which returns the last hidden states and the cache.
        logits: Function from last hidden states [n, H] to logits [n, V].
        takes_positions: Whether the trunk takes positions; a model without position embeddings does not.
        read_prompts: ``SharedBasePolicy.read_prompts``, which reads the part of a prompt that is the base's alone.
    """

    name: str
    config: Any
    device: torch.device
    trunk: nn.Module
    logits: Callable[[Tensor], Tensor]
    takes_positions: bool
    read_prompts: Callable[[Tensor, Tensor], PromptBlock]


class RolloutModels:
    """Gives the model that generates for an agent.

    Args:
        policy: The policies on one base.
        merge: Whether adapters are merged into a copy of the base. The copy is made at the first use. Adapters on a
            quantized base and full copies of the base are used as they are.
    """

    def __init__(self, policy: SharedBasePolicy, *, merge: bool) -> None:
        self._policy = policy
        self._merges = merge and can_merge(policy.weights)
        self._copy: MergedCopy | None = None

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

    def _model(self, causal_lm: Any) -> ActiveModel:
        trunk = causal_lm.get_decoder()
        device, logits = self._policy.device, self._policy.head_of(causal_lm)
        positions, read_prompts = takes_positions(trunk), self._policy.read_prompts
        return ActiveModel(type(causal_lm).__name__, causal_lm.config, device, trunk, logits, positions, read_prompts)
