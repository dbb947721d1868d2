"""Find the shape of a model by name without its weights: a named shape, or config.json from a folder, cache or hub."""

from __future__ import annotations

from pathlib import Path

from baselines.models.sources import HUB_TIMEOUT_S, SHIPPED, ModelNotFound
from baselines.models.shape import NAMED_SHAPES, ModelShape, shape_of


def find_shape(name: str) -> tuple[ModelShape, str]:
    """Return the shape of a model and the dtype of its weights.

    Args:
        name: A key of ``NAMED_SHAPES``, a shipped model, a folder with config.json, or a hub name.

    Raises:
        ModelNotFound: There is no such name, or the configuration is neither in the cache nor on the hub.
    """
    if name in NAMED_SHAPES:
        return NAMED_SHAPES[name], "bfloat16"
    from huggingface_hub import HfApi
    from transformers import AutoConfig

    where = SHIPPED.get(name) or Path(name).expanduser()
    try:
        if where.is_dir():
            config = AutoConfig.from_pretrained(where)
        else:
            try:
                config = AutoConfig.from_pretrained(name, local_files_only=True)
            except (OSError, ValueError):
                HfApi().model_info(name, timeout=HUB_TIMEOUT_S)  # one request; a download would retry for half a minute
                config = AutoConfig.from_pretrained(name)
    except Exception as error:  # the hub client raises errors of several HTTP libraries
        raise ModelNotFound(
            f"model={name!r} has no configuration that transformers can read: expected one of "
            f"{', '.join((*NAMED_SHAPES, *SHIPPED))}, a folder with config.json, or a hub name "
            f"({(str(error).strip().splitlines() or [''])[0]})"
        ) from error
    dtype = getattr(config.get_text_config(), "dtype", None) or getattr(config, "dtype", None)
    return shape_of(config), str(dtype or "float32").removeprefix("torch.")
