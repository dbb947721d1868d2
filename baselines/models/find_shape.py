"""Find the shape of a model by name without its weights: a named shape, or config.json from a folder, cache or hub."""

from __future__ import annotations

import os
from typing import Any

from baselines.models.shape import NAMED_SHAPES, ModelShape, shape_of
from baselines.models.sources import HUB_TIMEOUT_S, ModelNotFound, resolve
from baselines.models.wheels import cache_folder


def find_shape(name: str) -> tuple[ModelShape, str]:
    """Return the shape of a model and the dtype of its weights.

    Args:
        name: A key of ``NAMED_SHAPES``, or a name that ``load_model`` takes.

    Raises:
        ModelNotFound: There is no such name, or the configuration is neither in the cache nor on the hub.
    """
    if name in NAMED_SHAPES:
        return NAMED_SHAPES[name], "bfloat16"
    config = _config(name)
    dtype = getattr(config.get_text_config(), "dtype", None) or getattr(config, "dtype", None)
    return shape_of(config), str(dtype or "float32").removeprefix("torch.")


def _config(name: str) -> Any:
    from huggingface_hub import HfApi
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(resolve(name, "cache", cache_folder(None), allow_wheel=False)[1])
    except ModelNotFound as error:
        missing = error
    sizes = f"{missing} The memory plan also takes the sizes {', '.join(NAMED_SHAPES)}."
    if os.sep not in name:
        raise ModelNotFound(sizes)
    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT_S)  # one request; a download would retry for half a minute
        return AutoConfig.from_pretrained(name)
    except Exception as error:  # the hub client raises errors of several HTTP libraries
        raise ModelNotFound(sizes) from error
