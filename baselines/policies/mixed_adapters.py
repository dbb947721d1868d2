"""A model whose rows have LoRA adapters of their own, for agents that act at the same time.

A layer multiplies all rows by the base's weight once. The adapters are stacked to one pair of matrices, and the gates
of a row keep the part of its own adapter: W x + B (g * (A x)), where A and B hold the matrices of all m adapters, and g
is 1 for the r entries of the row's adapter, else 0.

Source of the idea: Sheng et al. 2024, S-LoRA, https://arxiv.org/abs/2311.03285.

Axes: n rows, t tokens, m adapters of rank r, I and O the width of a layer's input and output.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from peft.tuners.lora import Linear
from torch import Tensor, nn

from baselines.policies.merged_copy import can_merge
from baselines.policies.weights import LoraWeights

_ROWS, _TOKENS = 2, 3  # of the pass in ``can_mix``


class _Gates:
    """The gates of the rows of the next pass, which all layers read.

    Attributes:
        of_rows: [n, 1, m r], 1 or 0 in the dtype of the stacked adapters.
    """

    of_rows: Tensor


class _MixedLinear(nn.Module):
    """A linear layer of the base with stacked adapters.

    Args:
        layer: The layer with its adapters, whose parameters this module does not own.
        gates: The gates of the rows.
    """

    def __init__(self, layer: Any, gates: _Gates) -> None:
        super().__init__()
        self._layer, self._gates = (layer,), gates
        self.down = self.up = torch.empty(0, device="cpu")

    def load(self, names: Sequence[str], dtype: torch.dtype) -> None:
        """Stack the matrices of some adapters, [I, m r] and [m r, O]; none frees the memory."""
        (layer,) = self._layer
        if not names:
            self.down = self.up = torch.empty(0, device="cpu")
            return
        self.down = torch.cat([layer.lora_A[name].weight for name in names]).T.to(dtype)
        self.up = torch.cat([layer.lora_B[name].weight.T * layer.scaling[name] for name in names]).to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output [n, t, O] for an input [n, t, I]."""
        out = self._layer[0].get_base_layer()(x)
        own = torch.matmul(x, self.down) * self._gates.of_rows
        out.view(-1, out.shape[-1]).addmm_(own.view(-1, own.shape[-1]), self.up)
        return out


class MixedAdapters:
    """A model in which each row of a batch has an adapter of its own, or none. It shares the weights of its base.

    Args:
        weights: The adapters and their base model, see ``can_mix``.
        dtype: Type of the base's activations.

    Attributes:
        causal_lm: The model, with the adapters of the last ``load``.
    """

    def __init__(self, weights: LoraWeights, dtype: torch.dtype) -> None:
        base = weights.causal_lm
        self._dtype, self._gates = dtype, _Gates()
        self._names: list[str] = []
        self.causal_lm: Any = copy.deepcopy(base, {id(t): t for t in (*base.parameters(), *base.buffers())})
        self._layers = []
        for name, layer in base.named_modules():
            if isinstance(layer, Linear):
                mixed = _MixedLinear(layer, self._gates)
                self.causal_lm.set_submodule(name, mixed)
                self._layers.append(mixed)

    @torch.no_grad()
    def load(self, names: Sequence[str]) -> None:
        """Stack copies of some adapters in place of those before; none frees the memory."""
        self._names = list(names)
        for layer in self._layers:
            layer.load(names, self._dtype)

    def assign(self, adapters: Sequence[str | None]) -> None:
        """Set the adapter of each row of the next pass; None is the base alone."""
        down, names = self._layers[0].down, self._names
        of_row = torch.tensor([-1 if a is None else names.index(a) for a in adapters], device="cpu")
        of_entry = torch.arange(len(names), device="cpu").repeat_interleave(down.shape[-1] // len(names))
        self._gates.of_rows = (of_row.unsqueeze(-1) == of_entry).unsqueeze(1).to(down)


@torch.no_grad()
def can_mix(weights: Any) -> bool:
    """Return whether the rows of a batch can have adapters of their own: LoRA on linear layers that get [n, t, I].

    A layer of experts gets the tokens that were routed to it, which do not tell their rows. A pass over a few tokens
    shows what the layers get.
    """
    if not can_merge(weights):
        return False
    shapes: list[tuple[int, ...]] = []
    layers = [layer for layer in weights.causal_lm.modules() if isinstance(layer, Linear)]
    hooks = [layer.register_forward_pre_hook(lambda _, given: shapes.append(given[0].shape[:-1])) for layer in layers]
    try:
        trunk = weights.causal_lm.get_decoder()
        with weights.active(None):
            trunk(input_ids=torch.zeros(_ROWS, _TOKENS, dtype=torch.long, device=next(trunk.parameters()).device))
    finally:
        for hook in hooks:
            hook.remove()
    return bool(shapes) and all(shape == (_ROWS, _TOKENS) for shape in shapes)
