"""The temporary replacement of a module's forward method."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn


@contextlib.contextmanager
def replaced_forward(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Replace the forward method of one module within the block.

    Args:
        module: The module.
        forward: A function of the arguments that the module is called with, without the module itself.
    """
    before = module.__dict__.get("forward")  # set by libraries that wrap the forward method of an instance
    module.forward = forward
    try:
        yield
    finally:
        if before is None:
            del module.forward
        else:
            module.forward = before
