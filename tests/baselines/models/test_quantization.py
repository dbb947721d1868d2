"""4-bit base models: errors without the package or the device, and training of adapters on a 4-bit model on the CPU."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from baselines.models.load import LoadedModel, load_model
from baselines.models.quantization import check_quantization
from baselines.policies.policy import SharedBasePolicy
from baselines.policies.weights import LoraSettings

IDS = torch.tensor([[4, 4, 20, 10, 13, 7, 17]])  # 11|7+4= of the tiny tokenizer


@pytest.fixture(scope="module")
def packed() -> LoadedModel:
    if importlib.util.find_spec("bitsandbytes") is None:
        pytest.skip("NOT TESTED: bitsandbytes is not installed (extra: quantization)")
    return load_model("tiny", quantization="4bit")


def test_what_cannot_work_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="quantization='4bit': bitsandbytes runs on cuda and cpu here; got device mps"):
        check_quantization("4bit", torch.device("mps"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs the package bitsandbytes: pip install '\.\[quantization\]'"):
        check_quantization("4bit", torch.device("cuda"))
    check_quantization("none", torch.device("mps"))


def test_the_linear_layers_are_packed_and_the_head_is_not(packed: LoadedModel) -> None:
    kinds = {name: type(module).__name__ for name, module in packed.model.named_modules()}
    assert kinds["model.layers.0.self_attn.q_proj"] == kinds["model.layers.0.mlp.down_proj"] == "Linear4bit"
    assert kinds["lm_head"] == "Linear"
    assert packed.dtype == torch.float32 and not any(p.requires_grad for p in packed.model.parameters())
    assert packed.weights_sha256 == load_model("tiny").weights_sha256
    assert "4 bits" in packed.placement


def test_the_packed_model_is_near_the_original(packed: LoadedModel) -> None:
    with torch.no_grad():
        original, rounded = (m(IDS).logits.log_softmax(-1) for m in (load_model("tiny").model, packed.model))
    assert 0 < (original - rounded).abs().mean() < 0.5


def test_adapters_on_a_packed_model_start_as_it_and_get_gradients(packed: LoadedModel) -> None:
    with torch.no_grad():
        before = packed.model(IDS).logits
    policy = SharedBasePolicy(packed.model, ["scout", "solver"], LoraSettings(), seed=0)
    with torch.no_grad():
        for agent in (None, "scout", "solver"):
            with policy.use(agent):
                assert torch.equal(policy.causal_lm(IDS).logits, before)
    with policy.use("scout"):
        policy.causal_lm(IDS).logits.log_softmax(-1)[0, :-1].gather(-1, IDS[0, 1:, None]).sum().backward()
    parameters = policy.adapter_parameters("scout")
    assert len(parameters) == 42  # A and B for 7 layers in each of 3 blocks
    assert sum(bool(p.grad is not None and p.grad.abs().sum() > 0) for p in parameters) == 21  # B; A's are 0, as B is 0
    assert all(p.grad is None for p in policy.adapter_parameters("solver"))
