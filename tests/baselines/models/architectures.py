"""Small random models of many architectures of transformers, for tests of what holds for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoConfig, AutoModelForCausalLM

from baselines.trajectory import AgentTurns, Generation

VOCABULARY = 160
PAD, EOS = 0, 1
CONTEXT = 64

_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.3,
    "pad_token_id": PAD,
    "bos_token_id": 2,
    "eos_token_id": EOS,
}
_WINDOW = {"sliding_window": 6}
_ALTERNATING = {**_WINDOW, "layer_types": ["sliding_attention", "full_attention"]}
_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}

ARCHITECTURES: Mapping[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {},
    "qwen3": {"head_dim": 8},
    "qwen3_moe": {"head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
    "gemma": {"head_dim": 8},
    "gemma2": {**_WINDOW, "head_dim": 8, "query_pre_attn_scalar": 8, "final_logit_softcapping": 3.0},
    "gemma3_text": {**_ALTERNATING, "head_dim": 8, "query_pre_attn_scalar": 8},
    "gemma4_text": {
        **_ALTERNATING, "head_dim": 8, "global_head_dim": 8, "final_logit_softcapping": 3.0,
        "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0,
    },
    "mistral": _WINDOW,
    "mixtral": _EXPERTS,
    "phi": {},
    "phi3": {},
    "granite": {"logits_scaling": 4.0, "embedding_multiplier": 3.0},
    "granitemoe": {**_EXPERTS, "logits_scaling": 4.0},
    "cohere": {"logit_scale": 0.25},
    "cohere2": {"logit_scale": 0.25, **_ALTERNATING},
    "olmo2": {},
    "olmo3": {**_ALTERNATING},
    "stablelm": {},
    "starcoder2": {},
    "nemotron": {},
    "glm4": {"head_dim": 8},
    "exaone4": {**_ALTERNATING},
    "smollm3": {},
    "minicpm3": {
        "dim_model_base": 8, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
        "v_head_dim": 8, "num_key_value_heads": 4,
    },
    "deepseek_v3": {
        "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
        "num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 1, "moe_intermediate_size": 24,
    },
    "gpt_oss": {"head_dim": 8, **_EXPERTS, **_ALTERNATING},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT},
    "gpt_neox": {},
    "gptj": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT, "rotary_dim": 4},
    "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "falcon": {"alibi": False},
    "bloom": {"n_layer": 2, "n_head": 4},
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": CONTEXT},
    "lfm2": {"layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False},
    "mamba": {"state_size": 4},
    "mamba2": {"state_size": 4, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4},
    "jamba": {
        "num_experts": 2, "num_experts_per_tok": 1, "attn_layer_period": 2, "attn_layer_offset": 1,
        "expert_layer_period": 2, "expert_layer_offset": 1, "mamba_d_state": 4, "mamba_dt_rank": 4,
        "use_mamba_kernels": False,
    },
    "falcon_h1": {
        "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_n_groups": 1,
        "mamba_chunk_size": 4, "lm_head_multiplier": 0.5,
    },
    "bamba": {
        "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_n_groups": 1, "mamba_chunk_size": 4,
        "attn_layer_indices": [1],
    },
    "qwen3_5_text": {
        "layer_types": ["linear_attention", "full_attention"], "head_dim": 8, "linear_key_head_dim": 8,
        "linear_value_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    },
    "qwen3_next": {
        "layer_types": ["linear_attention", "full_attention"], "head_dim": 8, "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "num_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 24, "shared_expert_intermediate_size": 24,
    },
}  # fmt: skip


NO_CACHE: Mapping[str, dict[str, Any]] = {
    "recurrent_gemma": {"lru_width": 32, "attention_window_size": 6, "block_types": ["recurrent", "attention"]},
    "openai-gpt": {"n_embd": 32, "n_layer": 2, "n_head": 4},
    "rwkv": {"attention_hidden_size": 32},
}
"""Architectures whose trunk returns no transformers Cache, so that the engine cannot generate."""
NO_TRUNK: Mapping[str, dict[str, Any]] = {"llama4_text": {"num_local_experts": 2, "intermediate_size_mlp": 48}}
"""Architectures whose class does not name its trunk."""


def make_model(name: str) -> Any:
    """Return a random fp32 model of an architecture, frozen and in eval mode."""
    settings = {**ARCHITECTURES, **NO_CACHE, **NO_TRUNK}[name]
    config = AutoConfig.for_model(name, **{**_SIZES, **settings})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # noqa: TID251 - transformers initialises from the global generator, forked here
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return model.eval().requires_grad_(False)


def padded_turns(generations: Sequence[Generation]) -> AgentTurns:
    """Return generations as the training path reads them: padded on the right, one turn of an agent each."""
    n = len(generations)
    tokens = [torch.tensor(g.prompt_ids + g.action_ids) for g in generations]
    actions = [torch.ones(len(g.action_ids), dtype=torch.bool) for g in generations]
    return AgentTurns(
        episode=torch.arange(n),
        slot=torch.zeros(n, dtype=torch.long),
        tokens=pad_sequence(tokens, batch_first=True, padding_value=PAD),
        token_mask=pad_sequence([torch.ones(len(t), dtype=torch.bool) for t in tokens], batch_first=True),
        prompt_length=torch.tensor([len(g.prompt_ids) for g in generations]),
        action_mask=pad_sequence(actions, batch_first=True),
        behaviour=pad_sequence([torch.tensor(g.logprobs) for g in generations], batch_first=True),
        words=torch.ones(n, dtype=torch.long),
        truncated=torch.tensor([g.truncated for g in generations]),
        base_tokens=torch.tensor([g.base_tokens for g in generations]),
    )
