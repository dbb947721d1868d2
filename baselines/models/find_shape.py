"""Find the shape of a model by name without its weights: a named shape, or config.json from a folder, cache or hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from baselines.models.load import stored_dtype
from baselines.models.shape import NAMED_SHAPES, ModelShape, published_shape, shape_of
from baselines.models.sources import HUB_TIMEOUT_S, ModelNotFound, is_hub_name, resolve, weight_files
from baselines.models.wheels import cache_folder


def find_shape(name: str) -> tuple[ModelShape, torch.dtype]:
    """Return the shape of a model and the dtype of its files: float32 if neither the configuration nor a file tells it.

    Args:
        name: A key of ``NAMED_SHAPES``, or a name that ``load_model`` takes. Qwen2.5 is known by its hub names without
            the hub.

    Raises:
        ModelNotFound: There is no such name, or the configuration is neither in the cache nor on the hub.
    """
    if name in NAMED_SHAPES:
        return NAMED_SHAPES[name], torch.bfloat16
    if (known := published_shape(name)) is not None and not Path(name).is_dir():
        return known, torch.bfloat16
    config, folder = _config(name)
    if folder is not None and weight_files(folder):
        return shape_of(config), stored_dtype(folder)
    dtype = getattr(config.get_text_config(), "dtype", None) or getattr(config, "dtype", None) or torch.float32
    return shape_of(config), getattr(torch, dtype) if isinstance(dtype, str) else dtype


def _config(name: str) -> tuple[Any, Path | None]:
    """Return a model's configuration, and the folder of its files if they are on this machine."""
    from transformers import AutoConfig

    try:
        folder = resolve(name, "cache", cache_folder(None), allow_wheel=False)[1]
    except ModelNotFound as error:
        return _config_on_hub(name, f"{error}. The memory plan also takes {', '.join(NAMED_SHAPES)}."), None
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True), folder
    except (OSError, ValueError, KeyError) as error:
        raise ModelNotFound(f"transformers cannot read the configuration in model folder {folder}: {error}") from error


def _config_on_hub(name: str, missing: str) -> Any:
    """Return the configuration of a model on the hub; raise ModelNotFound with the message ``missing`` without it."""
    from huggingface_hub import HfApi
    from transformers import AutoConfig

    if not is_hub_name(name):
        raise ModelNotFound(missing)
    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT_S)  # one request; a download would retry for half a minute
        return AutoConfig.from_pretrained(name)
    except Exception as error:  # the hub client raises errors of several HTTP libraries
        raise ModelNotFound(missing) from error
