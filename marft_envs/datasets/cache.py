"""The cache folder of the project, for converted data sets and models."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "MARFT_CACHE"


def cache_folder() -> Path:
    """Return the project's cache folder, which need not exist.

    Data sets are in its sub-folder ``datasets``, models in ``models``.

    Returns:
        The folder in the environment variable MARFT_CACHE; else ``marft_envs`` in the folder in XDG_CACHE_HOME; else
        ``~/.cache/marft_envs``. The variables are read at each call.
    """
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "marft_envs"
