"""Files of a Llama model and of its LoRA adapters in the format GGUF, which llama.cpp reads.

Llama.cpp rotates neighbouring pairs of a head's query and key, transformers its first half with its second half. So the
rows of these projections change places.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import torch
from torch import Tensor

from baselines.policies.policy import SharedBasePolicy

_ARCHITECTURE = gguf.MODEL_ARCH.LLAMA
_NAME = gguf.MODEL_ARCH_NAMES[_ARCHITECTURE]
_TYPES = {
    torch.float32: gguf.GGMLQuantizationType.F32,
    torch.float16: gguf.GGMLQuantizationType.F16,
    torch.bfloat16: gguf.GGMLQuantizationType.BF16,
}


def write_base(path: Path, policy: SharedBasePolicy) -> None:
    """Write the base model of a team, without a tokenizer, in the type of its weights.

    Raises:
        ValueError: The model is no plain Llama.
    """
    config, writer = _config(policy), gguf.GGUFWriter(path, _NAME)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("no_vocab")
    for name, weight in _base_tensors(policy):
        # Normalisations are vectors, which llama.cpp expects in float32.
        kind = _TYPES[weight.dtype] if weight.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(weight.float().numpy(), kind), raw_dtype=kind)
    _write(writer)


def write_adapter(path: Path, policy: SharedBasePolicy, adapter: str) -> None:
    """Write an adapter of a team, in float32. Raise ValueError if the model is no plain Llama."""
    config, writer = _config(policy), gguf.GGUFWriter(path, _NAME)
    weights: Any = policy.weights.model
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, weights.peft_config[adapter].lora_alpha)
    for module, layer in _modules(policy):
        if adapter in getattr(layer, "lora_A", {}):
            name = _gguf_name(config, f"{module}.weight")
            first, second = (part[adapter].weight.detach().cpu() for part in (layer.lora_A, layer.lora_B))
            writer.add_tensor(f"{name}.lora_a", first.numpy())
            writer.add_tensor(f"{name}.lora_b", _llama_order(config, module, second).numpy())
    _write(writer)


def _config(policy: SharedBasePolicy) -> Any:
    config = policy.causal_lm.config
    rotation = (getattr(config, "rope_parameters", None) or {}).get("rope_type")
    if config.model_type != _NAME or rotation != "default":
        raise ValueError(f"model type {config.model_type!r}, rope_type {rotation!r}: expected llama with default")
    return config


def _modules(policy: SharedBasePolicy) -> Iterator[tuple[str, Any]]:
    """Yield the modules of the model by their names in transformers, without those inside a layer with an adapter."""
    for name, module in policy.causal_lm.named_modules():
        if ".lora_" not in name and not name.endswith(".base_layer"):
            yield name, module


def _base_tensors(policy: SharedBasePolicy) -> Iterator[tuple[str, Tensor]]:
    config = _config(policy)
    for name, module in _modules(policy):
        layer = module.get_base_layer() if hasattr(module, "get_base_layer") else module
        weight = layer._parameters.get("weight")
        if weight is None or (name == "lm_head" and config.tie_word_embeddings):
            continue
        if layer._parameters.get("bias") is not None:
            raise ValueError(f"{name} has a bias: expected linear layers without bias")
        yield _gguf_name(config, f"{name}.weight"), _llama_order(config, name, weight.detach().cpu())


def _gguf_name(config: Any, name: str) -> str:
    found = gguf.get_tensor_name_map(_ARCHITECTURE, config.num_hidden_layers).get_name(name, (".weight",))
    if found is None:
        raise ValueError(f"{name}: expected the weights of a Llama model")
    return str(found)


def _llama_order(config: Any, module: str, weight: Tensor) -> Tensor:
    """Return a weight, or the factor B of its adapter, [out, in] with the rows in the order of llama.cpp."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    count = heads.get(module.rpartition(".")[2])
    if count is None:
        return weight
    halves = weight.view(count, 2, weight.shape[0] // count // 2, weight.shape[1])
    return halves.transpose(1, 2).reshape(weight.shape).contiguous()


def _write(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
