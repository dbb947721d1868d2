"""Which code makes the numbers: a hash of the sources, and the commit where there is one."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_SOURCES = ("marft_envs", "baselines", "benchmarks")


def code_version() -> dict[str, str | None]:
    """sources: twelve hexadecimal digits of SHA-256 over the names and contents of all modules. commit: git's name of
    it, with ``-dirty`` where files differ; None outside a repository."""
    return {"sources": sources_hash(ROOT), "commit": _commit(ROOT)}


def sources_hash(root: Path) -> str:
    """Of the packages under ``root``; a comment counts, a cache does not."""
    total = hashlib.sha256()
    for path in sorted(p for package in _SOURCES for p in (root / package).rglob("*.py")):
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:12]


def _commit(root: Path) -> str | None:
    if not (root / ".git").exists():  # a repository around an installed copy is another one
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
