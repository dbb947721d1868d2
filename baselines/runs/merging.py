"""Whether the rollout merges adapters into a copy of the base model (``decoding.merge_adapters``)."""

from __future__ import annotations

import torch

from baselines.models.shape import ModelShape
from baselines.policies.micro_batches import GIB
from baselines.runs.device_memory import default_memory
from baselines.runs.run_config import RunConfig

AUTO_SHARE = 1 / 8
"""Largest share of the memory that a copy may take with ``merge_adapters = "auto"``."""


def merged_copy_bytes(config: RunConfig, shape: ModelShape, element: int, device: torch.device) -> int:
    """Return the bytes of the copy of a base model that the rollout merges adapters into; 0 if it merges none.

    Args:
        config: Configuration of the run.
        shape: Shape of the base model.
        element: Bytes of a weight in its dtype.
        device: Its device.
    """
    choice = config.decoding.merge_adapters
    if choice == "off" or config.tuning == "full" or config.quantization != "none":
        return 0
    size = shape.linear_parameters * element
    memory = default_memory(device) if config.memory_gib is None else int(config.memory_gib * GIB)
    if memory is None:  # no limit, or an accelerator that is not on this machine
        return size if choice == "on" or device.type == "cpu" else 0
    return size if choice == "on" or size <= AUTO_SHARE * memory else 0
