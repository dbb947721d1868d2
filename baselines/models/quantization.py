"""4-bit base models through bitsandbytes (Dettmers et al. 2023, QLoRA, https://arxiv.org/abs/2305.14314).

The weights of the linear layers below the output head are stored in 4 bits (NF4, with quantised scales) and expanded
to the compute type in each forward pass. Embeddings, norms and the output head keep the compute type. LoRA adapters on
top are fp32, as on any base model.
"""

from __future__ import annotations

import importlib.util
from typing import Any, Literal, get_args

import torch

Quantization = Literal["none", "4bit"]
QUANTIZATIONS = get_args(Quantization)


def check_quantization(name: str, device: torch.device) -> None:
    """Raise ValueError if a base model cannot be quantised so on the device, or the package for it is missing."""
    if name not in QUANTIZATIONS:
        raise ValueError(f"quantization={name!r}: expected one of {', '.join(QUANTIZATIONS)}")
    if name == "none":
        return
    if device.type not in ("cuda", "cpu"):
        raise ValueError(f"quantization={name!r}: bitsandbytes runs on cuda and cpu here; got device {device}")
    if importlib.util.find_spec("bitsandbytes") is None:
        raise ValueError(
            f"quantization={name!r} needs the package bitsandbytes: pip install '.[quantization]' in the repository"
        )


def quantization_config(name: str, compute: torch.dtype) -> Any:
    """Return transformers' configuration for a quantization; None for "none".

    Args:
        name: One of QUANTIZATIONS.
        compute: The type that the weights are expanded to.
    """
    if name == "none":
        return None
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=compute,
    )
