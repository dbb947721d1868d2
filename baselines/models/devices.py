"""The choice of a device and a floating-point type for a base model, each with the reason that a run prints."""

from __future__ import annotations

import re
from typing import NamedTuple

import torch

from baselines.models.out_of_memory import first_line

AUTO = "auto"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_DEVICE = re.compile(r"cpu|cuda(:\d+)?|mps")
_BFLOAT16_ON_MPS_SINCE = 14  # the version of macOS


class DeviceChoice(NamedTuple):
    """A device and why it was chosen.

    Attributes:
        device: The device; a GPU has its index.
        reason: A sentence such as "device cuda:0 (NVIDIA H200): auto takes the first GPU".
    """

    device: torch.device
    reason: str


class DtypeChoice(NamedTuple):
    """A floating-point type and why it was chosen.

    Attributes:
        dtype: One of the values of DTYPES.
        reason: A sentence such as "dtype bfloat16: the type of the model's files".
    """

    dtype: torch.dtype
    reason: str


def check_names(device: str, dtype: str) -> None:
    """Raise ValueError for the name of a device or of a floating-point type that no machine has.

    Args:
        device: A name that ``choose_device`` takes on some machine.
        dtype: "auto" or a name in DTYPES.
    """
    if not isinstance(device, str) or (device != AUTO and not _DEVICE.fullmatch(device)):
        raise ValueError(f"device={device!r}: expected auto, cpu, cuda, cuda:N or mps")
    if dtype != AUTO and dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r}: expected one of {AUTO}, {', '.join(DTYPES)}")


# --- device -----------------------------------------------------------------------------------------------------------


def choose_device(name: str = AUTO) -> DeviceChoice:
    """Return the device that ``name`` stands for.

    Args:
        name: "auto" (the first usable CUDA device, else MPS, else the CPU), "cpu", "cuda" (the first), "cuda:1" and so
            on, or "mps". ROCm's devices are called "cuda" too.

    Raises:
        ValueError: The name is invalid, or this machine has no such device. The message says what it has.
    """
    check_names(name, AUTO)
    if name == AUTO:
        return _automatic_device()
    device = torch.device("cuda:0" if name == "cuda" else name)
    fault = _fault(device)
    if fault:
        raise ValueError(f"device={name!r}: {fault}")
    return _choice(device, f"chosen by device={name!r}")


def _automatic_device() -> DeviceChoice:
    faults = []
    for device, reason in (
        (torch.device("cuda:0"), "auto takes the first GPU"),
        (torch.device("mps"), "auto takes it"),
    ):
        fault = _fault(device)
        if not fault:
            return _choice(device, reason)
        faults.append(fault)
    cause = faults[0].partition(";")[0]  # without the advice: a machine without a GPU needs no other torch
    return _choice(torch.device("cpu"), f"auto found no GPU ({cause})")


def _choice(device: torch.device, reason: str) -> DeviceChoice:
    if device.type == "cuda":
        what = torch.cuda.get_device_name(device)
    elif device.type == "mps":
        what = "Apple silicon"
    else:
        threads = torch.get_num_threads()
        what = f"{threads} thread{'s' if threads > 1 else ''}"
    return DeviceChoice(device, f"device {device} ({what}): {reason}")


def _fault(device: torch.device) -> str:
    """Return why the device cannot be used; an empty string if it can."""
    if device.type == "cpu":
        return ""
    if device.type == "mps":
        return "" if torch.backends.mps.is_available() else "torch has no MPS here (it needs macOS on Apple silicon)"
    if torch.version.cuda is None and torch.version.hip is None:
        return f"torch {torch.__version__} is a CPU build; install a CUDA build (docs/install.md)"
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        return "torch sees no CUDA device (check the driver and CUDA_VISIBLE_DEVICES)"
    if device.index >= count:
        names = ", ".join(f"cuda:{index}" for index in range(count))
        return f"this machine has {count} CUDA device{'s' if count > 1 else ''}, {names}"
    try:
        torch.ones(1, device=device).add_(1)
    except RuntimeError as error:  # a GPU that is too old for this build, or that another process holds exclusively
        return f"{device} cannot run this torch build: {first_line(error)}"
    return ""


# --- dtype ------------------------------------------------------------------------------------------------------------


def choose_dtype(name: str | torch.dtype, device: torch.device, stored: torch.dtype) -> DtypeChoice:
    """Return the floating-point type of a base model's weights.

    "auto" takes the type of the model's files, with these exceptions. float16 on a CPU becomes float32: a CPU has few
    fast float16 kernels. bfloat16 on a device without fast bfloat16 becomes float32, not float16, whose largest number,
    65,504, is too small for the activations of models that were trained in bfloat16, such as Gemma's. Files of another
    type are loaded as float32.

    Args:
        name: "auto", a name in DTYPES, or a value of DTYPES.
        device: The model's device.
        stored: The type in the model's files.

    Raises:
        ValueError: The name is invalid.
    """
    if name != AUTO:
        return _explicit_dtype(name, device)
    if stored not in DTYPES.values():
        return _dtype(torch.float32, f"the model's files hold {_name(stored)}, which nothing here computes in")
    if stored == torch.float16 and device.type == "cpu":
        return _dtype(
            torch.float32, "the model's files hold float16, which is slow on a CPU; bfloat16 halves the memory"
        )
    if stored == torch.bfloat16 and not has_bfloat16(device):
        where = "this CPU computes in slowly" if device.type == "cpu" else f"{device} does not compute in"
        return _dtype(torch.float32, f"the model's files hold bfloat16, which {where}")
    return _dtype(stored, "the type of the model's files")


def has_bfloat16(device: torch.device) -> bool:
    """Return whether the device has fast matrix products in bfloat16.

    Without the kernels of oneDNN (on x86 they need AVX-512) a CPU is more than ten times slower in bfloat16 than in
    float32.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0) or torch.version.hip is not None
    if device.type == "mps":
        return torch.backends.mps.is_macos_or_newer(_BFLOAT16_ON_MPS_SINCE, 0)
    if device.type == "cpu":
        return bool(torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return True


def _explicit_dtype(name: str | torch.dtype, device: torch.device) -> DtypeChoice:
    dtype = DTYPES.get(name) if isinstance(name, str) else name
    if dtype is None or dtype not in DTYPES.values():
        raise ValueError(f"dtype={name!r}: expected one of {AUTO}, {', '.join(DTYPES)}")
    reason = f"chosen by dtype={_name(dtype)!r}"
    if dtype == torch.float16 and device.type == "cpu":
        reason += ", though it is slow on a CPU (auto takes float32)"
    elif dtype == torch.bfloat16 and not has_bfloat16(device):
        reason += f", though it is slow on {device} (auto takes float32)"
    return _dtype(dtype, reason)


def _dtype(dtype: torch.dtype, reason: str) -> DtypeChoice:
    return DtypeChoice(dtype, f"dtype {_name(dtype)}: {reason}")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
