"""Names and versions of the environments, here and in PettingZoo's own registry."""

from __future__ import annotations

import difflib
import importlib
from typing import Any

from pettingzoo import AECEnv

MODULES = ("math_v0",)


def environment_module(name: str) -> Any:
    """The versioned module ``marft_envs.<name>``. ValueError for an unknown name, with the nearest one."""
    if name not in MODULES:
        near = difflib.get_close_matches(str(name), MODULES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"environment {name!r}: expected one of {', '.join(MODULES)}{hint}")
    return importlib.import_module(f"marft_envs.{name}")


def make(name: str, **arguments: Any) -> AECEnv[Any, Any, Any]:
    """``marft_envs.<name>.env(**arguments)``."""
    return environment_module(name).env(**arguments)


def pettingzoo_id(name: str) -> str:
    """math_v0 -> marft/math-v0."""
    return f"marft/{name.replace('_', '-')}"


def register_with_pettingzoo() -> None:
    """Make ``pettingzoo.make("aec", "marft/math-v0")`` work where this pettingzoo has a registry (1.27 and later)."""
    try:
        from pettingzoo import aec_registry, register
    except ImportError:
        return
    for name in MODULES:
        if pettingzoo_id(name) not in aec_registry:
            register("aec", pettingzoo_id(name), entry_point=f"marft_envs.{name}:env")
