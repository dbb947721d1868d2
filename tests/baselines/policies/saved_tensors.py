"""The memory that a forward pass keeps for its backward pass."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from baselines.policies.policy import SharedBasePolicy


class SavedTensors:
    """The tensors that autograd has saved, one for each storage."""

    def __init__(self) -> None:
        self._by_address: dict[int, Tensor] = {}

    def add(self, tensor: Tensor) -> None:
        self._by_address[tensor.untyped_storage().data_ptr()] = tensor

    @property
    def bytes(self) -> int:
        """Size of their storages."""
        return sum(tensor.untyped_storage().nbytes() for tensor in self._by_address.values())


@contextlib.contextmanager
def saved_tensors(policy: SharedBasePolicy) -> Iterator[SavedTensors]:
    """Collect what autograd saves within the block, without the policy's own parameters."""
    weights = {p.untyped_storage().data_ptr() for p in policy.parameters()}
    saved = SavedTensors()

    def pack(tensor: Tensor) -> Tensor:
        if tensor.untyped_storage().data_ptr() not in weights:
            saved.add(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield saved
