"""Shape of a decoder-only language model: the numbers of its configuration that memory depends on.

No weights are loaded. ``shape_of`` reads a transformers configuration. ``NAMED_SHAPES`` has the models of the tables in
docs/memory.md: Qwen2.5 (https://arxiv.org/abs/2412.15115, table 1), by size, and the models of the wheels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a model.

    Attributes:
        layers: Number of decoder layers.
        width: Width H of the residual stream.
        mlp: Width I of the hidden layer of the feed-forward part; for a mixture of experts, of all experts that read
            one token.
        heads: Number of attention heads.
        kv_heads: Number of key and value heads.
        head_width: Width of a head.
        vocabulary: Number of token ids V.
        tied: Whether the output head shares the weights of the input embedding.
        norms: Normalisations per layer over the whole width.
        head_norms: Whether queries and keys are normalised per head, too.
        stored_mlp: Width of the feed-forward weights that are stored; it differs from ``mlp`` for a mixture of experts.
    """

    layers: int
    width: int
    mlp: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    tied: bool = True
    norms: int = 2
    head_norms: bool = False
    stored_mlp: int = 0

    @property
    def attention_width(self) -> int:
        """Width A of all queries of a token."""
        return self.heads * self.head_width

    @property
    def kv_width(self) -> int:
        """Width of all keys of a token, and of all values."""
        return self.kv_heads * self.head_width

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the input embedding and of an output head of its own. No quantisation reduces them."""
        return self.vocabulary * self.width * (1 if self.tied else 2)

    @property
    def linear_parameters(self) -> int:
        """Parameters of the matrices in the layers, without biases."""
        attention = self.width * (2 * self.attention_width + 2 * self.kv_width)
        return self.layers * (attention + 3 * self.width * (self.stored_mlp or self.mlp))

    @property
    def parameters(self) -> int:
        """All parameters. Biases and the normalisations' weights beside ``norms`` are left out (under 0.1 %)."""
        return self.embedding_parameters + self.linear_parameters + (self.layers * self.norms + 1) * self.width

    def lora_parameters(self, rank: int) -> int:
        """Return the parameters of one LoRA adapter on all linear layers: rank x (inputs + outputs) of each."""
        attention = 2 * (self.width + self.attention_width) + 2 * (self.width + self.kv_width)
        return self.layers * rank * (attention + 3 * (self.width + self.mlp))


def _qwen(layers: int, width: int, mlp: int, heads: int, kv_heads: int, vocabulary: int, *, tied: bool) -> ModelShape:
    return ModelShape(layers, width, mlp, heads, kv_heads, width // heads, vocabulary, tied)


NAMED_SHAPES: Mapping[str, ModelShape] = {
    "0.5B": _qwen(24, 896, 4864, 14, 2, 151936, tied=True),
    "1.5B": _qwen(28, 1536, 8960, 12, 2, 151936, tied=True),
    "3B": _qwen(36, 2048, 11008, 16, 2, 151936, tied=True),
    "7B": _qwen(28, 3584, 18944, 28, 4, 152064, tied=False),
    "14B": _qwen(48, 5120, 13824, 40, 8, 152064, tied=False),
    "32B": _qwen(64, 5120, 27648, 40, 8, 152064, tied=False),
    "72B": _qwen(80, 8192, 29568, 64, 8, 152064, tied=False),
    "smollm2-135m": ModelShape(30, 576, 1536, 9, 3, 64, 49152),
    "gemma3-270m": ModelShape(18, 640, 2048, 4, 1, 256, 262144, norms=4, head_norms=True),
}
"""Shapes by name: Qwen2.5 by its size, SmolLM2-135M and Gemma-3-270M."""

_QWEN = re.compile(r"Qwen/Qwen2\.5-(?:Coder-)?([\d.]+B)(?:-Instruct)?")


def published_shape(name: str) -> ModelShape | None:
    """Return the shape of Qwen2.5 by its name on the hub, such as "Qwen/Qwen2.5-3B-Instruct"; None for other names."""
    found = _QWEN.fullmatch(name)
    return NAMED_SHAPES.get(found[1]) if found else None


_SANDWICH = ("gemma2", "gemma3", "gemma3_text")
_HEAD_NORMS = ("gemma3", "gemma3_text", "qwen3", "qwen3_moe", "olmo2")


def shape_of(config: Any) -> ModelShape:
    """Return the shape of a transformers configuration.

    Args:
        config: Configuration of a causal language model, or of a multimodal model that contains one.
    """
    text = config.get_text_config()
    heads = _largest(getattr(text, "num_attention_heads", 1))
    mlp, stored = _mlp_widths(text)
    return ModelShape(
        layers=text.num_hidden_layers,
        width=text.hidden_size,
        mlp=mlp,
        heads=heads,
        kv_heads=_largest(getattr(text, "num_key_value_heads", None) or heads),
        head_width=getattr(text, "head_dim", None) or text.hidden_size // heads,
        vocabulary=text.vocab_size,
        tied=bool(getattr(text, "tie_word_embeddings", True)),
        norms=4 if text.model_type in _SANDWICH else 2,
        head_norms=text.model_type in _HEAD_NORMS,
        stored_mlp=stored,
    )


def _mlp_widths(text: Any) -> tuple[int, int]:
    """Return the feed-forward width that reads one token, and the one whose weights are stored."""
    own = _largest(getattr(text, "intermediate_size", None) or 4 * text.hidden_size)
    experts = getattr(text, "num_local_experts", None) or getattr(text, "num_experts", None)
    if not experts:
        return own, own
    each = getattr(text, "moe_intermediate_size", None) or own
    return each * getattr(text, "num_experts_per_tok", 1), each * experts


def _largest(value: int | list[int]) -> int:
    """Return the largest entry where a configuration has a number for each layer."""
    return max(value) if isinstance(value, list) else value
