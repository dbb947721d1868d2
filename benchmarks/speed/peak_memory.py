"""The largest memory that a process, or the allocator of a GPU, holds during some work."""

from __future__ import annotations

from pathlib import Path

import torch


def start_peak(device: torch.device) -> int:
    """Return the bytes in use, and start to record their maximum.

    Args:
        device: The CPU, for the resident memory of this process (under Linux), or a CUDA device, for what torch has
            allocated on it.

    Raises:
        OSError: The device is the CPU, and the system is not Linux.
    """
    if device.type != "cpu":
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # Linux: resets VmHWM
    return _status("VmRSS")


def peak(device: torch.device) -> int:
    """Return the largest number of bytes in use since ``start_peak``."""
    return _status("VmHWM") if device.type == "cpu" else torch.cuda.max_memory_allocated(device)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
