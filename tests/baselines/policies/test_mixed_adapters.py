"""Rows with adapters of their own in one batch: each row is read as its adapter alone reads it."""

from __future__ import annotations

import pytest
import torch

from baselines.models.load import load_model
from baselines.policies import rollout
from baselines.policies.mixed_adapters import MixedAdapters, can_mix
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.policies.rollout import RolloutModels
from tests.baselines.models.architectures import make_model
from tests.baselines.policies.activated import perturb

AGENTS = ("a_0", "b_0", "c_0")
ROWS = ("b_0", None, "a_0", "b_0", "c_0", "a_0")
IDS = torch.tensor([[5 + i, 9, 30, 12 + i] for i in range(len(ROWS))])


def policy_of(name: str = "llama") -> SharedBasePolicy:
    policy = SharedBasePolicy(make_model(name), AGENTS, LoraSettings(2, 4), 0)
    perturb(policy, 0.2)
    return policy


@torch.no_grad()
def check(policy: SharedBasePolicy, mixed: MixedAdapters) -> None:
    """Compare rows of all adapters in one pass with a pass of each row's policy."""
    mixed.load(AGENTS)
    mixed.assign(ROWS)
    found = mixed.causal_lm(input_ids=IDS).logits
    for i, agent in enumerate(ROWS):
        with policy.use(agent):
            expected = policy.causal_lm(input_ids=IDS[i : i + 1]).logits[0]
        torch.testing.assert_close(found[i], expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "mamba"])
def test_each_row_has_its_own_adapter_or_none(name: str) -> None:
    policy = policy_of(name)
    check(policy, MixedAdapters(policy.weights, torch.float32))


def test_the_stacked_adapters_are_the_present_ones() -> None:
    policy = policy_of()
    mixed = MixedAdapters(policy.weights, torch.float32)
    check(policy, mixed)
    with policy.use("a_0"):
        policy.causal_lm(input_ids=IDS).logits.square().sum().backward()
    torch.optim.Adam(policy.adapter_parameters("a_0"), lr=0.1).step()
    check(policy, mixed)
    mixed.load(("c_0",))  # others than before
    mixed.assign(["c_0"])
    with torch.no_grad(), policy.use("c_0"):
        expected = policy.causal_lm(input_ids=IDS[:1]).logits
        torch.testing.assert_close(mixed.causal_lm(input_ids=IDS[:1]).logits, expected, rtol=0, atol=1e-4)


def test_the_model_shares_all_weights_of_the_base() -> None:
    policy = policy_of()
    base = {p.data_ptr() for p in policy.causal_lm.parameters()}
    model = MixedAdapters(policy.weights, torch.float32).causal_lm
    assert {p.data_ptr() for p in model.parameters()} <= base
    assert not any("lora" in name for name, _ in model.named_parameters())


def test_the_stacked_adapters_are_freed_after_their_block() -> None:
    models = RolloutModels(policy_of(), merge=True)
    with models.mixed(["a_0", None, "c_0"]) as model:
        layer = model.trunk.layers[0].mlp.up_proj
        assert layer.down.shape == (32, 4) and layer.up.shape == (4, 48)
    assert layer.down.numel() == layer.up.numel() == 0


@pytest.mark.parametrize(("name", "expected"), [("llama", True), ("qwen3_moe", False), ("mixtral", False)])
def test_layers_that_lose_the_rows_of_tokens_cannot_mix(name: str, expected: bool) -> None:
    assert can_mix(policy_of(name).weights) == expected


def test_only_adapters_can_mix() -> None:
    assert not can_mix(SharedBasePolicy(make_model("llama"), AGENTS, None, 0).weights)
    four_bit = load_model("tiny", quantization="4bit").model
    assert not can_mix(SharedBasePolicy(four_bit, AGENTS, LoraSettings(), 0).weights)


def test_agents_with_few_rows_each_are_served_together() -> None:
    policy, limit = policy_of(), rollout.MIXED_ROWS
    merging, plain = (RolloutModels(policy, merge=merge) for merge in (True, False))
    assert merging.mixes({"a_0": 1, "b_0": 2 * limit - 1}) and not merging.mixes({"a_0": 1, "b_0": 2 * limit})
    assert plain.mixes({"a_0": 1, "b_0": 100 * limit})  # merged adapters are not the alternative
    assert not any(models.mixes({"a_0": 1}) for models in (merging, plain))
    experts = RolloutModels(policy_of("mixtral"), merge=False)
    assert not experts.mixes({"a_0": 1, "b_0": 1})
