"""The card of a model folder, a JSON file with the model's identity and the SHA-256 of its files."""

from __future__ import annotations

import hashlib
from pathlib import Path

CARD = "model_card.json"


def sha256_of(file: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
