"""Gradient checkpointing: the layers of a model save their inputs only, and the backward pass computes the rest again.

Source: Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost, https://arxiv.org/abs/1604.06174.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from baselines.policies.replaced_forward import replaced_forward


def checkpointed_layers(model: nn.Module) -> list[nn.Module]:
    """Return the outermost layers of a model that can be computed again in the backward pass.

    Raises:
        ValueError: The model has no layer that transformers marks as such.
    """
    found: list[nn.Module] = []
    inside: set[nn.Module] = set()
    for module in model.modules():
        if isinstance(module, GradientCheckpointingLayer) and module not in inside:
            found.append(module)
            inside |= set(module.modules())
    if not found:
        raise ValueError(
            f"gradient_checkpointing: {type(model).__name__} has no GradientCheckpointingLayer of transformers; "
            'expected gradient_checkpointing = "off" for this model'
        )
    return found


@contextlib.contextmanager
def checkpointed(model: nn.Module, *, on: bool = True) -> Iterator[None]:
    """Compute the layers of a model with gradient checkpointing within the block, which includes the backward pass.

    transformers checkpoints layers in training mode only, in which dropout is active. Here the forward method of each
    layer is wrapped, so the model stays in eval mode, and loss and gradients are those without checkpointing.

    Args:
        model: A model of transformers. Its cache must be off (``use_cache=False``) where a gradient is needed.
        on: False changes nothing, so that callers need no condition of their own.
    """
    if not on:
        yield
        return
    with contextlib.ExitStack() as stack:
        for layer in checkpointed_layers(model):
            stack.enter_context(replaced_forward(layer, _recomputed(layer.forward)))
        yield


def _recomputed(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a forward method that the backward pass computes again."""

    @wraps(forward)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        # Not reentrant: the inputs of the first layers need no gradient, the adapters inside them do. Without dropout
        # there is no random state to restore.
        return checkpoint(partial(forward, **kwargs), *args, use_reentrant=False, preserve_rng_state=False)

    return wrapper
