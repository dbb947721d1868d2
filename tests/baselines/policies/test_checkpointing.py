"""Gradient checkpointing changes the memory of a pass, and neither its loss nor its gradients."""

import copy

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig

from baselines.policies.checkpointing import checkpointed, checkpointed_layers
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from tests.baselines.policies.saved_tensors import saved_tensors

SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 64}
LLAMA = LlamaConfig(**SIZES, intermediate_size=64, num_key_value_heads=2)


def policy_of(config, dtype=torch.float32, lora=LoraSettings()):  # noqa: B008 - a frozen record
    with torch.random.fork_rng():
        torch.manual_seed(0)  # noqa: TID251 - transformers initialises from the global generator, forked here
        base = AutoModelForCausalLM.from_config(config).to(dtype).eval()
    base.requires_grad_(False)
    policy = SharedBasePolicy(base, ["one"], lora, 0)
    generator = torch.Generator().manual_seed(1)
    for p in policy.adapter_parameters("one"):
        p.data += 0.05 * torch.randn(p.shape, generator=generator)
    return policy


def passed(policy, on):
    """Return loss, gradients, and the bytes of activations that the forward pass of the trunk saves."""
    ids = torch.arange(48).reshape(2, 24) % 64
    with policy.use("one"), checkpointed(policy.causal_lm, on=on):
        with saved_tensors(policy) as saved:
            hidden = policy.backbone(input_ids=ids, use_cache=False).last_hidden_state
        loss = hidden.float().pow(2).mean()
        loss.backward()
    parameters = policy.adapter_parameters("one")
    gradients = [p.grad.clone() for p in parameters if p.grad is not None]
    for p in parameters:
        p.grad = None
    return loss.detach(), gradients, saved.bytes


GPT2 = GPT2Config(n_embd=32, n_layer=3, n_head=4, vocab_size=64, attn_pdrop=0.5, resid_pdrop=0.5, embd_pdrop=0.5)


@pytest.mark.parametrize(
    ("config", "dtype", "lora"),
    [
        (LLAMA, torch.float32, LoraSettings()),
        (LLAMA, torch.bfloat16, LoraSettings()),
        (LLAMA, torch.float32, None),
        (GPT2, torch.float32, None),  # dropout of 0.5, which must stay off
    ],
)
def test_loss_and_gradients_are_the_same_bit_for_bit_and_the_memory_is_smaller(config, dtype, lora):
    policy = policy_of(config, dtype, lora)
    plain, saving = passed(policy, on=False), passed(policy, on=True)
    assert torch.equal(plain[0], saving[0])
    assert len(plain[1]) == len(saving[1]) > 0
    assert max(float(g.abs().max()) for g in plain[1]) > 1e-5
    assert all(torch.equal(a, b) for a, b in zip(plain[1], saving[1], strict=True))
    assert saving[2] < 0.25 * plain[2]


def test_the_model_is_unchanged_after_the_block():
    policy = policy_of(LLAMA)
    before = copy.copy(policy.causal_lm.__dict__)
    with checkpointed(policy.causal_lm):
        assert not any(module.training for module in policy.causal_lm.modules())
        assert all("forward" in layer.__dict__ for layer in checkpointed_layers(policy.causal_lm))
    assert not any("forward" in layer.__dict__ for layer in checkpointed_layers(policy.causal_lm))
    assert policy.causal_lm.__dict__.keys() == before.keys()


def test_a_model_without_such_layers_is_an_error_that_names_the_setting():
    with pytest.raises(ValueError, match=r'Linear has no GradientCheckpointingLayer .* gradient_checkpointing = "off"'):
        checkpointed_layers(nn.Linear(2, 2))
