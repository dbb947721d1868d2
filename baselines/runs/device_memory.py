"""Memory that a run may use on a device, memory that is free on this machine, and the error when it is exhausted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import torch

from baselines.models.out_of_memory import first_line, is_out_of_memory
from baselines.policies.micro_batches import MemoryExhausted

GPU_SHARE = 0.9
"""Share of an accelerator's memory that a run uses by default; the allocator's fragments need the rest."""


def default_memory(device: torch.device) -> int | None:
    """Return the bytes that a run may use by default; None on a CPU, and if the device is not on this machine.

    It is a function of the device, not of the memory that is free at the moment, so that a run can be repeated.
    """
    if device.type == "cuda" and torch.cuda.is_available():
        return int(GPU_SHARE * torch.cuda.get_device_properties(device).total_memory)
    if device.type == "mps" and torch.backends.mps.is_available():
        return int(GPU_SHARE * torch.mps.recommended_max_memory())
    return None


def free_memory(device: torch.device) -> int | None:
    """Return the bytes that are free on a device now; None if it is not on this machine.

    Of MPS, whose free memory torch does not report, it is the size that torch recommends for all processes together.
    """
    if device.type == "cpu":
        return available_memory()
    if device.type == "cuda" and torch.cuda.is_available():
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps" and torch.backends.mps.is_available():
        return int(torch.mps.recommended_max_memory())
    return None


def available_memory() -> int | None:
    """Return the bytes of main memory that further processes can use now; None if the system does not say.

    A container's limit (cgroup v2) counts if it is lower than what the machine has. Where the system does not report
    the available memory (macOS), all of the main memory counts as available.
    """
    found = [_system_available(), _cgroup_available()]
    known = [size for size in found if size is not None]
    return min(known) if known else None


def _system_available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _cgroup_available(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    try:
        limit, used = (int((folder / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        entries = (line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
        # Cached files count as used, although the kernel drops the inactive ones when a process needs the memory.
        cached = next(int(size) for name, size in entries if name == "inactive_file")
    except (OSError, StopIteration, ValueError):  # no cgroup v2, or the limit is "max"
        return None
    return max(limit - used + cached, 0)


@contextlib.contextmanager
def out_of_memory_is_reported() -> Iterator[None]:
    """Raise MemoryExhausted where the memory is exhausted outside the passes, such as in a step of the critic."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, MemoryExhausted) or not is_out_of_memory(error):
            raise
        raise MemoryExhausted(
            f"out of memory in an update, outside its passes ({first_line(error)}): expected more memory, fewer "
            "episodes, or a smaller learner.replay_batches"
        ) from error
