"""A copy of the base model into which one LoRA adapter at a time is merged, for generation.

An adapter beside its layer costs two more matrix products and several small operations per layer and token. Merged into
the weight, W + (alpha / rank) B A, it costs nothing. The base itself stays as it is: merging in place and subtracting
again would drift in 16 bits.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from peft.tuners.lora import Linear
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn
from transformers.pytorch_utils import Conv1D

from baselines.policies.weights import LoraWeights, weights_state


class MergedCopy:
    """A copy of a base model, of which only the weights of the adapted layers need memory of their own.

    Args:
        weights: The adapters and their base model.

    Attributes:
        causal_lm: The copy, with the adapter of the last ``load``.

    Raises:
        ValueError: The adapters of this base cannot be merged, see ``can_merge``.
    """

    def __init__(self, weights: LoraWeights) -> None:
        if not can_merge(weights):
            raise ValueError("adapters on a quantized base cannot be merged: expected 16-bit or fp32 weights")
        base = weights.causal_lm
        self._weights = weights
        self._loaded: tuple[str, int] | None = None
        adapted = {name: layer for name, layer in base.named_modules() if isinstance(layer, Linear)}
        own = {id(layer.get_base_layer().weight) for layer in adapted.values()}
        shared = [t for t in (*base.parameters(), *base.buffers()) if id(t) not in own]
        self.causal_lm: Any = copy.deepcopy(base, {id(t): t for t in shared})
        self._layers: list[tuple[Any, Any]] = []  # an adapted layer of the base, and its plain counterpart in the copy
        for name, layer in adapted.items():
            plain = self.causal_lm.get_submodule(name).get_base_layer()
            self.causal_lm.set_submodule(name, plain)
            self._layers.append((layer, plain))

    @torch.no_grad()
    def load(self, name: str) -> None:
        """Merge an adapter into the copy. Nothing is done if it was merged last and has not changed since."""
        version = weights_state(self._weights, name)
        if self._loaded == (name, version):
            return
        for layer, plain in self._layers:
            plain.weight.copy_(layer.get_base_layer().weight.float() + layer.get_delta_weight(name).float())
        self._loaded = name, version


def can_merge(weights: Any) -> bool:
    """Return whether the adapters of a policy can be merged into a copy of its base: LoRA on plain linear layers."""
    if not isinstance(weights, LoraWeights):
        return False
    adapted = [layer for layer in weights.causal_lm.modules() if isinstance(layer, BaseTunerLayer)]
    return all(
        isinstance(layer, Linear)
        and type(layer.get_base_layer()) in (nn.Linear, Conv1D)
        and layer.get_base_layer().weight.is_floating_point()
        for layer in adapted
    )
