"""The choice of a device and a dtype on simulated machines: what torch reports is monkeypatched."""

from __future__ import annotations

import pytest
import torch

from baselines.models.devices import choose_device, choose_dtype, has_bfloat16

CPU, GPU, MPS = torch.device("cpu"), torch.device("cuda:0"), torch.device("mps")


def _machine(monkeypatch: pytest.MonkeyPatch, gpus: int = 0, mps: bool = False, build: str | None = "12.8") -> None:
    """Simulate a machine with some CUDA devices, or with MPS, and a torch build for a version of CUDA."""
    monkeypatch.setattr(torch.version, "cuda", build)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU number {device.index}")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    on_cpu = torch.ones
    monkeypatch.setattr(torch, "ones", lambda *shape, device: on_cpu(*shape))


# --- device -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "device", "reason"),
    [
        ({"gpus": 2}, "cuda:0", "device cuda:0 (GPU number 0): auto takes the first GPU"),
        ({"gpus": 1, "mps": True}, "cuda:0", "auto takes the first GPU"),
        ({"mps": True, "build": None}, "mps", "device mps (Apple silicon): auto takes it"),
        ({"build": None}, "cpu", "is a CPU build)"),
        ({}, "cpu", "auto found no GPU (torch sees no CUDA device"),
    ],
)
def test_auto_takes_the_first_gpu_else_mps_else_the_cpu(
    monkeypatch: pytest.MonkeyPatch, machine: dict, device: str, reason: str
) -> None:
    _machine(monkeypatch, **machine)
    chosen = choose_device("auto")
    assert chosen.device == torch.device(device) and reason in chosen.reason


def test_auto_skips_a_gpu_that_cannot_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, gpus=1)

    def no_kernel(*shape: int, device: torch.device) -> None:
        raise RuntimeError("CUDA error: no kernel image is available\nmore")

    monkeypatch.setattr(torch, "ones", no_kernel)
    chosen = choose_device("auto")
    assert chosen.device == CPU
    assert "cuda:0 cannot run this torch build: CUDA error: no kernel image is available)" in chosen.reason
    with pytest.raises(ValueError, match="device='cuda': cuda:0 cannot run this torch build"):
        choose_device("cuda")


def test_a_named_device(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, gpus=2)
    assert choose_device("cuda").device == GPU
    assert choose_device("cuda:1").reason == "device cuda:1 (GPU number 1): chosen by device='cuda:1'"
    assert choose_device("cpu").device == CPU


@pytest.mark.parametrize(
    ("name", "machine", "message"),
    [
        ("cuda:3", {"gpus": 1}, r"device='cuda:3': this machine has 1 CUDA device, cuda:0$"),
        ("cuda:3", {"gpus": 2}, r"device='cuda:3': this machine has 2 CUDA devices, cuda:0, cuda:1$"),
        ("cuda", {"build": None}, r"device='cuda': torch \S+ is a CPU build; install a CUDA build \(docs/install.md\)"),
        ("cuda", {}, "device='cuda': torch sees no CUDA device"),
        ("mps", {}, "device='mps': torch has no MPS here"),
        ("tpu", {}, "device='tpu': expected auto, cpu, cuda, cuda:N or mps"),
        ("cuda:-1", {"gpus": 1}, "device='cuda:-1': expected auto"),
        (None, {}, "device=None: expected auto"),
    ],
)
def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch, name: str, machine: dict, message: str) -> None:
    _machine(monkeypatch, **machine)
    with pytest.raises(ValueError, match=message):
        choose_device(name)


# --- dtype ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capability", "native"), [((7, 5), False), ((8, 0), True), ((9, 0), True), ((10, 0), True), ((6, 1), False)]
)
def test_bfloat16_needs_compute_capability_8(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], native: bool
) -> None:
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert has_bfloat16(GPU) == native
    chosen = choose_dtype("auto", GPU, torch.bfloat16)
    assert chosen.dtype == (torch.bfloat16 if native else torch.float32)
    assert native or chosen.reason == (
        "dtype float32: the model's files hold bfloat16, which cuda:0 does not compute in"
    )
    assert ("is slow on" in choose_dtype("bfloat16", GPU, torch.bfloat16).reason) != native


@pytest.mark.parametrize(
    ("device", "stored", "expected"),
    [
        (CPU, "float32", "float32"),
        (CPU, "float16", "float32"),
        (GPU, "float32", "float32"),
        (GPU, "float16", "float16"),
        (CPU, "float64", "float32"),
        (CPU, "float8_e4m3fn", "float32"),
    ],
)
def test_auto_takes_the_type_of_the_files_where_the_device_is_good_at_it(
    device: torch.device, stored: str, expected: str
) -> None:
    chosen = choose_dtype("auto", device, getattr(torch, stored))
    assert chosen.dtype == getattr(torch, expected)
    assert chosen.reason.startswith(f"dtype {expected}: ")
    assert stored == expected or stored in chosen.reason


@pytest.mark.parametrize("fast", [False, True])
def test_bfloat16_on_a_cpu_needs_fast_kernels(monkeypatch: pytest.MonkeyPatch, fast: bool) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: fast)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True, raising=False)
    chosen = choose_dtype("auto", CPU, torch.bfloat16)
    assert chosen.dtype == (torch.bfloat16 if fast else torch.float32)
    assert fast or chosen.reason == (
        "dtype float32: the model's files hold bfloat16, which this CPU computes in slowly"
    )


def test_mps_computes_in_bfloat16_from_macos_14(monkeypatch: pytest.MonkeyPatch) -> None:
    for version in (13, 14, 15):
        monkeypatch.setattr(torch.backends.mps, "is_macos_or_newer", lambda major, minor, v=version: v >= major)
        assert has_bfloat16(MPS) == (version >= 14)


def test_an_explicit_type_is_kept_with_a_warning_where_it_is_slow() -> None:
    chosen = choose_dtype("float16", CPU, torch.float32)
    assert chosen.dtype == torch.float16 and "slow on a CPU" in chosen.reason
    assert choose_dtype(torch.float32, CPU, torch.bfloat16).dtype == torch.float32
    for name in ("int8", torch.int8, None):
        with pytest.raises(ValueError, match=r"dtype=.*: expected one of auto, float32, bfloat16, float16"):
            choose_dtype(name, CPU, torch.float32)
