"""Out-of-memory errors of the CPU and of accelerators."""

from __future__ import annotations

import errno

import torch

_NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error reports that the memory of the CPU or of an accelerator is exhausted."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _NO_MEMORY)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def free_cache(device: str) -> None:
    """Return the memory that torch keeps for later to the device.

    Args:
        device: Type of the device, such as "cpu" or "cuda".
    """
    if device in ("cuda", "mps"):
        getattr(torch, device).empty_cache()
