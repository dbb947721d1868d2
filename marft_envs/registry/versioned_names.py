"""Names of environments: their form, the built-in ones, and their ids in PettingZoo and Gymnasium."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

_VERSIONED = re.compile(r"[a-z][a-z0-9_]*_v\d+")
_PACKAGE = Path(__file__).parents[1]

BUILT_IN = tuple(m.name for m in pkgutil.iter_modules([str(_PACKAGE)]) if _VERSIONED.fullmatch(m.name))
"""The names of the built-in environments, each a file ``marft_envs/<name>_v<N>.py``."""


def is_versioned(name: str) -> bool:
    """Return whether ``name`` has the form of an environment's name, such as ``coins_v0``."""
    return _VERSIONED.fullmatch(name) is not None


def pettingzoo_id(name: str) -> str:
    """Return the id in PettingZoo's and Gymnasium's registries: ``marft/math-v0`` for ``math_v0``."""
    return "marft/" + re.sub(r"_v(\d+)$", r"-v\1", name)


def without_module(name: str) -> str:
    """Return the name of an environment without its module: ``coins_v0`` for ``my_tasks:coins_v0``."""
    return name.rpartition(":")[2]


def built_in_with_dataset(dataset: Any) -> tuple[str, ...]:
    """Return the built-in environments that list ``dataset`` in their ``DATASETS``."""
    modules = {known: importlib.import_module(f"marft_envs.{known}") for known in BUILT_IN}
    return tuple(known for known, module in modules.items() if dataset in getattr(module, "DATASETS", ()))
