"""A second device for tests on a machine without one: its tensors compute on the CPU and refuse tensors of the CPU.

    with second_device() as device:
        model.to(device)
        model(torch.ones(2, 3, device=device)).sum().backward()  # an operand on the CPU raises StrayTensor

It is stricter than torch's "meta" device, which cannot run code that reads values (masks, lengths, sampled tokens):
here an operation gives the numbers of the CPU, and the same rules hold as between "cpu" and "cuda": scalars of the CPU
may be operands, CPU tensors may be indices, and everything else raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("mps:0")
"""The name that the tensors report: a device type that torch knows and that this machine does not have."""


class StrayTensor(RuntimeError):
    """An operation mixed tensors of the two devices."""


class SecondDeviceTensor(Tensor):
    """A tensor that reports ``DEVICE`` and holds its numbers in a CPU tensor.

    Attributes:
        inner: The numbers.
    """

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> SecondDeviceTensor:
        # torch's C++ code sees a tensor on "meta", for which it needs no driver; Python code that asks gets DEVICE.
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            device="meta", requires_grad=inner.requires_grad,
        )  # fmt: skip
        made.inner = inner
        return made

    def __repr__(self) -> str:
        return f"SecondDeviceTensor({self.inner!r})"

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return DEVICE

    @property
    def is_meta(self) -> bool:  # type: ignore[override]
        return False

    def tolist(self) -> Any:
        return self.inner.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        raise StrayTensor("numpy() of a tensor on the second device: call .cpu() first")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Mode(TorchDispatchMode):
    """Runs every operation within the block, so that constructors with ``device=DEVICE`` give tensors on it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _FromValues(TorchFunctionMode):
    """Makes ``torch.tensor(values, device=DEVICE)``, which torch builds without asking a dispatch mode."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        wanted = kwargs.get("device")
        if func in (torch.tensor, torch.as_tensor) and wanted is not None and _is_second(wanted):
            return SecondDeviceTensor(func(*args, **{**kwargs, "device": "cpu"}))
        return func(*args, **kwargs)


@contextlib.contextmanager
def second_device() -> Iterator[torch.device]:
    """Make ``DEVICE`` usable within the block."""
    with _FromValues(), _Mode():
        yield DEVICE


_MAY_MIX = ("aten::copy_", "aten::_to_copy", "aten::set_.source_Tensor")
_INDEXING = ("aten::index.", "aten::index_put", "aten::_index_put_impl_", "aten::_unsafe_index")


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation on the CPU and return its results on the device on which torch would have them."""
    name = func.name()
    _check(name, args, kwargs)
    wanted = kwargs.get("device")
    inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    on_second = any(isinstance(x, SecondDeviceTensor) for x in inputs) if wanted is None else _is_second(wanted)
    if name.startswith("aten::copy_"):
        on_second = isinstance(args[0], SecondDeviceTensor)
    plain_args, plain_kwargs = tree_map(_inner, (args, kwargs))
    if wanted is not None and _is_second(wanted):
        plain_kwargs["device"] = torch.device("cpu")
        plain_kwargs.pop("pin_memory", None)
    result = func(*plain_args, **plain_kwargs)
    # An operation that writes to one of its arguments returns that argument, not a new tensor.
    written = {id(_inner(x)): x for x in inputs}
    return tree_map(lambda x: written.get(id(x), _outer(x, on_second)), result)


def _check(name: str, args: Any, kwargs: Any) -> None:
    """Raise StrayTensor if the operands are on different devices and torch would refuse that for "cuda"."""
    if name.startswith(_MAY_MIX):
        return
    operands = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    if name.startswith(_INDEXING):  # CPU indices may select from a tensor on another device, but not the reverse
        indices = {id(x) for x in tree_leaves(args[1]) if isinstance(x, Tensor)}
        indexed_on_second = isinstance(args[0], SecondDeviceTensor)
        operands = [x for x in operands if id(x) not in indices or not indexed_on_second]
    second = [x for x in operands if isinstance(x, SecondDeviceTensor)]
    stray = [tuple(x.shape) for x in operands if not isinstance(x, SecondDeviceTensor) and x.dim() > 0]
    if second and stray:
        raise StrayTensor(f"{name}: operands of shape {stray} are on the CPU, the others on {DEVICE}")


def _is_second(device: Any) -> bool:
    return torch.device(device).type in (DEVICE.type, "meta")


def _inner(x: Any) -> Any:
    return x.inner if isinstance(x, SecondDeviceTensor) else x


def _outer(x: Any, on_second: bool) -> Any:
    return SecondDeviceTensor(x) if on_second and isinstance(x, Tensor) and not isinstance(x, SecondDeviceTensor) else x
