"""Provenance of a comparison: hashes of its code and problems, and the score of a team that answers nothing."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from baselines.runs.evaluation import evaluation_items, play_items, score_items
from baselines.runs.run_config import RunConfig
from marft_envs import make
from marft_envs.batch import BatchRunner, Request

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("marft_envs", "baselines", "benchmarks")
_HASHED_PROBLEMS = 64
_CONTROL_ITEMS = 32
NO_ANSWER = "?"
CONTROL = "negative_control"


def code_version() -> dict[str, str | None]:
    """Return the version of the code.

    Returns:
        "sources": ``sources_hash`` of this repository. "commit": git's name of the commit, with ``-dirty`` if files
        differ; None outside a repository.
    """
    return {"sources": sources_hash(ROOT), "commit": _commit(ROOT)}


def sources_hash(root: Path) -> str:
    """Return 12 hexadecimal digits of the SHA-256 over the paths and contents of all modules under ``root``."""
    total = hashlib.sha256()
    for path in sorted(p for package in SOURCES for p in (root / package).rglob("*.py")):
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:12]


def _commit(root: Path) -> str | None:
    if not (root / ".git").exists():  # git would find an unrelated repository around an installed copy
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def data_of(run: RunConfig) -> dict[str, Any]:
    """Return what identifies the problems of a run.

    Returns:
        "train" and "test": ``fingerprint`` of the splits. "transfer", if there are any: name of a transfer data set ->
        its fingerprint. "negative_control": score of a team that answers nothing, which must be 0; None if nothing was
        graded.
    """
    envs = {split: make(run.environment, split=split, **run.environment_arguments) for split in ("train", "test")}
    runner = BatchRunner(envs["test"], _CONTROL_ITEMS)
    items = evaluation_items(runner, _CONTROL_ITEMS, run.seed)
    control = score_items(play_items(runner, _answer_nothing, items))["accuracy"]
    others = {name: make(run.environment, split="test", **arguments) for name, arguments in run.transfer.items()}
    own, transfer = ({name: fingerprint(env.unwrapped.task) for name, env in found.items()} for found in (envs, others))
    return {**own, **({"transfer": transfer} if transfer else {}), CONTROL: control}


def fingerprint(task: Any) -> dict[str, Any]:
    """Return the size of a task and a hash of its first problems.

    Returns:
        "size": number of problems; None if they are generated without end. "sha256": 12 hexadecimal digits over the
        first problems with their golds.
    """
    count = _HASHED_PROBLEMS if task.size is None else min(task.size, _HASHED_PROBLEMS)
    problems = [task.problem(index) for index in range(count)]
    text = json.dumps([[p.prompt, dict(p.private), p.gold] for p in problems], sort_keys=True, default=repr)
    return {"size": task.size, "sha256": hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]}


def _answer_nothing(requests: Sequence[Request]) -> list[str]:
    return [NO_ANSWER] * len(requests)
