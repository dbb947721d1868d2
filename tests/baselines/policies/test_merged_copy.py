"""A copy of the base with an adapter merged in: it follows the adapter, and leaves base and adapters as they are."""

from __future__ import annotations

import pytest
import torch

from baselines.models.load import load_model
from baselines.policies.merged_copy import MergedCopy, can_merge
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from tests.baselines.models.architectures import make_model

IDS = torch.tensor([[5, 9, 30, 12]])


def policy_of(name: str = "llama") -> SharedBasePolicy:
    policy = SharedBasePolicy(make_model(name), ("a_0", "b_0"), LoraSettings(2, 4), 0)
    generator = torch.Generator().manual_seed(0)
    for agent in policy.agents:
        for parameter in policy.adapter_parameters(agent):
            parameter.data += 0.2 * torch.randn(parameter.shape, generator=generator)
    return policy


@torch.no_grad()
def logits(policy: SharedBasePolicy, agent: str | None) -> torch.Tensor:
    with policy.use(agent):
        return policy.causal_lm(input_ids=IDS).logits


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_the_copy_is_the_adapter_on_its_base(name: str) -> None:
    policy = policy_of(name)
    before = {agent: logits(policy, agent) for agent in (None, *policy.agents)}
    merged = MergedCopy(policy.weights)
    for agent in ("a_0", "b_0", "a_0"):
        merged.load(agent)
        torch.testing.assert_close(merged.causal_lm(input_ids=IDS).logits, before[agent], rtol=0, atol=1e-4)
    for agent, expected in before.items():
        assert torch.equal(logits(policy, agent), expected)


def test_the_copy_follows_an_optimiser_step() -> None:
    policy = policy_of()
    merged = MergedCopy(policy.weights)
    merged.load("a_0")
    parameters = policy.adapter_parameters("a_0")
    with policy.use("a_0"):
        policy.causal_lm(input_ids=IDS).logits.square().sum().backward()
    torch.optim.Adam(parameters, lr=0.1).step()
    merged.load("a_0")
    torch.testing.assert_close(merged.causal_lm(input_ids=IDS).logits, logits(policy, "a_0"), rtol=0, atol=1e-4)


def test_only_the_adapted_layers_have_weights_of_their_own() -> None:
    policy = policy_of()
    base = {p.data_ptr(): p.numel() for n, p in policy.causal_lm.named_parameters() if "lora_" not in n}
    merged = MergedCopy(policy.weights)
    own = {name for name, p in merged.causal_lm.named_parameters() if p.data_ptr() not in base}
    assert own and all("proj" in name for name in own)
    assert not any("lora" in name for name, _ in merged.causal_lm.named_parameters())
    assert merged.causal_lm.lm_head.weight.data_ptr() in base


def test_what_cannot_be_merged() -> None:
    assert can_merge(policy_of().weights)
    assert not can_merge(SharedBasePolicy(make_model("llama"), ("a_0",), None, 0).weights)
    four_bit = load_model("tiny", quantization="4bit").model
    weights = SharedBasePolicy(four_bit, ("a_0",), LoraSettings(), 0).weights
    assert not can_merge(weights)
    with pytest.raises(ValueError, match="adapters on a quantized base cannot be merged: expected 16-bit or fp32"):
        MergedCopy(weights)
