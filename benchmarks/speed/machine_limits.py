"""Limits of the machine: the matrix products of a model alone, and the bandwidth of its memory.

Generation reads every weight once for a step of all rows, so a step takes at least the time of one product with each
weight, and at least the time to read the weights. Attention, norms, sampling, prompts and the LoRA factors come on top.

The products of an update are those of all tokens of all turns. A side that reads a prefix of several turns only once
does fewer of them, so its share of the limit may exceed 1.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from peft.tuners.lora import Linear
from torch import Tensor
from torch.nn import functional

from baselines.policies.policy import SharedBasePolicy
from benchmarks.speed.comparison import Cell, Seconds

PASS_TOKENS = 2048
"""Largest number of tokens of a timed pass; longer work is extrapolated from it."""
COPY_BYTES = 2**28


@contextmanager
def stopwatch(device: torch.device) -> Iterator[Seconds]:
    """Yield a mapping whose "total" is the seconds of the block after it, until the device has done its work."""
    found: Seconds = {}
    synchronize(device)
    start = time.perf_counter()
    yield found
    synchronize(device)
    found["total"] = time.perf_counter() - start


def synchronize(device: torch.device) -> None:
    """Wait until an accelerator has done all work that it was given."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


@dataclass(frozen=True)
class TrainingWork:
    """The tokens of an update whose matrix products are timed.

    Attributes:
        tokens: Tokens of all prompts and actions.
        actions: Tokens of all actions, which alone go through the output head.
        epochs: Forward and backward passes; there is one more forward pass, of the reference model.
    """

    tokens: int
    actions: int
    epochs: int


class MatrixProducts:
    """The matrix products of a model's linear layers and output head.

    Args:
        policy: The policies on the model.

    Attributes:
        weights: The weight [out, in] of every linear layer below the head.
        head: That of the head.
        device: Their device.
    """

    def __init__(self, policy: SharedBasePolicy) -> None:
        layers = [layer for layer in policy.causal_lm.modules() if isinstance(layer, Linear)]
        self.weights: list[Tensor] = [
            layer.get_base_layer().weight.T if layer.fan_in_fan_out else layer.get_base_layer().weight
            for layer in layers
        ]
        self.head: Tensor = policy.head.weight
        self.device = policy.device

    @property
    def bytes(self) -> int:
        """Bytes of all weights."""
        return sum(w.numel() * w.element_size() for w in (*self.weights, self.head))

    @torch.no_grad()
    def generation(self, cell: Cell) -> Seconds:
        """Return the seconds of the products of all actions of a cell, from a measurement of one agent's."""
        with stopwatch(self.device) as found:
            for _ in range(cell.new_tokens):
                _forward([*self.weights, self.head], cell.episodes)
        return {"total": cell.agents * found["total"]}

    @torch.no_grad()
    def training(self, work: TrainingWork) -> Seconds:
        """Return the seconds of the products of an update: forward, and backward without gradients of the weights."""
        total = 0.0
        for weights, tokens in ((self.weights, work.tokens), ([self.head], work.actions)):
            size = min(tokens, PASS_TOKENS)
            with stopwatch(self.device) as forward:
                _forward(weights, size)
            with stopwatch(self.device) as backward:
                _backward(weights, size)
            seconds = (1 + work.epochs) * forward["total"] + work.epochs * backward["total"]
            total += tokens / size * seconds
        return {"total": total}

    @torch.no_grad()
    def reading(self, cell: Cell) -> Seconds:
        """Return the seconds in which the memory is read once per step for all actions of a cell."""
        steps = cell.agents * cell.new_tokens
        return {"total": steps * self.bytes / bandwidth(self.device)}


def bandwidth(device: torch.device) -> float:
    """Return the bytes per second that the device's memory reads in a sum, or reads and writes in a copy."""
    source = torch.ones(COPY_BYTES // 4, device=device)
    target = torch.ones_like(source)
    with stopwatch(device) as copied:
        target.copy_(source)
    with stopwatch(device) as summed:
        source.sum()
    return max(2 * COPY_BYTES / copied["total"], COPY_BYTES / summed["total"])


def _forward(weights: list[Tensor], rows: int) -> None:
    states = {w.shape[1]: w.new_ones(rows, w.shape[1]) for w in weights}
    for weight in weights:
        functional.linear(states[weight.shape[1]], weight)


def _backward(weights: list[Tensor], rows: int) -> None:
    gradients = {w.shape[0]: w.new_ones(rows, w.shape[0]) for w in weights}
    for weight in reversed(weights):
        gradients[weight.shape[0]] @ weight
