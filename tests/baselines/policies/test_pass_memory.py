"""The calculated memory of a pass, compared with what autograd saves."""

from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma3TextConfig, LlamaConfig, Qwen2Config, Qwen3Config

from baselines.models.shape import NAMED_SHAPES
from baselines.policies.checkpointing import checkpointed
from baselines.policies.micro_batches import pass_memory
from baselines.policies.pass_memory import PassMemory
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from tests.baselines.policies.saved_tensors import saved_tensors
from tests.baselines.turns import turns_of

SIZES = {"hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 4, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 300}  # fmt: skip
CONFIGS = {
    "llama": LlamaConfig(**SIZES),
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES, head_dim=16),
    "gemma3": Gemma3TextConfig(**SIZES, head_dim=32),
}
TURNS, PROMPT, REPLY = 6, 60, 12


def saved_bytes(policy, on, base=0):
    """Return the bytes that the forward pass of log-probabilities and entropies saves for backward.

    base: tokens of each turn that the base alone reads.
    """
    generator = torch.Generator().manual_seed(0)
    turns = turns_of(torch.randint(300, (TURNS, PROMPT + REPLY), generator=generator).tolist(), REPLY)
    turns = replace(turns, base_tokens=torch.full_like(turns.prompt_length, base))
    with policy.use("one"), checkpointed(policy.causal_lm, on=on), saved_tensors(policy) as saved:
        scores = policy.scores(turns, 1.0)
        _ = scores.logprobs.sum() + scores.entropy.sum()
    return saved.bytes


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CONFIGS)
def test_the_formula_is_within_20_percent_of_what_autograd_saves(name, dtype, checkpointing):
    base = AutoModelForCausalLM.from_config(CONFIGS[name]).to(dtype).eval().requires_grad_(False)
    policy = SharedBasePolicy(base, ["one"], LoraSettings(rank=4), 0)
    calculated = pass_memory(policy).saved(TURNS, PROMPT + REPLY, TURNS * REPLY, checkpointing=checkpointing)
    assert calculated == pytest.approx(saved_bytes(policy, checkpointing), rel=0.2)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CONFIGS)
def test_an_activated_adapter_saves_nothing_of_what_the_base_alone_reads(name, dtype, checkpointing):
    """Beside the keys and values of the prompts, which are there and which autograd does not save."""
    base = AutoModelForCausalLM.from_config(CONFIGS[name]).to(dtype).eval().requires_grad_(False)
    lora = LoraSettings(rank=4, activated=True)
    policy, read = SharedBasePolicy(base, ["one"], lora, 0, invocation_ids=(1,)), PROMPT - 4
    memory = pass_memory(policy)
    calculated = memory.saved(TURNS, PROMPT + REPLY, TURNS * REPLY, checkpointing=checkpointing, base=read)
    prompts = policy.read_prompts(torch.ones(TURNS, read, dtype=torch.long), torch.full((TURNS,), read)).bytes
    assert memory.kept(TURNS * read) == prompts
    assert calculated - prompts == pytest.approx(saved_bytes(policy, checkpointing, read), rel=0.2)


def test_the_peak_of_an_activated_adapter_may_be_the_bases_own_pass():
    memory = PassMemory(NAMED_SHAPES["1.5B"], element=2, rank=8, eager=False)
    peak = memory.peak(8, 4000, 8, checkpointing=True, base=3999)
    assert peak == memory.kept(8 * 3999) + memory.prompts(8, 3999)
    assert memory.peak(8, 400, 8 * 200, checkpointing=True, base=200) > memory.kept(1600) + memory.prompts(8, 200)


def test_full_copies_save_the_inputs_of_normalisations_too():
    base = AutoModelForCausalLM.from_config(CONFIGS["llama"]).eval().requires_grad_(False)
    policy = SharedBasePolicy(base, ["one"], None, 0)
    calculated = pass_memory(policy).saved(TURNS, PROMPT + REPLY, TURNS * REPLY, checkpointing=False)
    assert calculated == pytest.approx(saved_bytes(policy, False), rel=0.05)


def test_one_layer_by_hand():
    """Qwen2.5-1.5B in 16 bits: H = 1536, A = 12 x 128 = 1536, I = 8960; per token of a layer with LoRA of rank 8:

    2 (2 x 1536 + 4 x 1536 + 4 x 8960 + 7 x 8) = 90,224 bytes of products, 2 x 4 x 1536 = 12,288 of normalisations, and
    4 x 12 = 48 of a fused attention, or 6 x 12 x L of eager attention.
    """
    fused = PassMemory(NAMED_SHAPES["1.5B"], element=2, rank=8, eager=False)
    eager = PassMemory(NAMED_SHAPES["1.5B"], element=2, rank=8, eager=True)
    assert fused.layer(1, 10) == 10 * (90_224 + 12_288 + 48)
    assert eager.layer(3, 10) == 30 * (90_224 + 12_288 + 72 * 10)


def test_a_checkpointed_layer_does_not_keep_the_adapters_in_16_bits():
    """Adapters of rank 64 are larger than the activations: counting them would be wrong by more than 20 %."""
    base = AutoModelForCausalLM.from_config(CONFIGS["llama"]).bfloat16().eval().requires_grad_(False)
    policy = SharedBasePolicy(base, ["one"], LoraSettings(rank=64), 0)
    calculated = pass_memory(policy).saved(TURNS, PROMPT + REPLY, TURNS * REPLY, checkpointing=True)
    assert calculated == pytest.approx(saved_bytes(policy, True), rel=0.2)
