"""Adapters in peft's own format: folders that ``peft.PeftModel.from_pretrained(base, folder)`` loads, and hubs take."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import safetensors.torch
from peft.utils.save_and_load import get_peft_model_state_dict, set_peft_model_state_dict

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


def adapter_files(model: Any, adapter: str, base_name: str) -> dict[str, bytes]:
    """File name to content. model: a PeftModel. base_name: what the config calls the base model; a path of this machine
    would help nobody."""
    config = copy.deepcopy(model.peft_config[adapter])
    config.base_model_name_or_path, config.inference_mode = base_name, True
    table = {k: sorted(v) if isinstance(v, set) else v for k, v in config.to_dict().items()}
    state = get_peft_model_state_dict(model, adapter_name=adapter, save_embedding_layers=False)
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in state.items()}
    return {
        CONFIG: json.dumps(table, indent=2, sort_keys=True).encode(),
        WEIGHTS: safetensors.torch.save(tensors, {"format": "pt"}),
    }


def load_adapter(model: Any, adapter: str, folder: Path) -> None:
    """Put the folder's weights into the model's adapter. ValueError where they are not of its shape."""
    state = safetensors.torch.load_file(folder / WEIGHTS)
    expected = get_peft_model_state_dict(model, adapter_name=adapter, save_embedding_layers=False)
    shapes, wanted = ({k: tuple(v.shape) for k, v in table.items()} for table in (state, expected))
    if shapes != wanted:
        odd = sorted(k for k in {*shapes, *wanted} if shapes.get(k) != wanted.get(k))
        raise ValueError(
            f"adapter {folder}: {odd[0]} has shape {shapes.get(odd[0])}, the model's is {wanted.get(odd[0])}; "
            f"expected an adapter of the same base and rank ({len(odd)} tensors differ)"
        )
    set_peft_model_state_dict(model, state, adapter_name=adapter)
