"""Registration of environments with PettingZoo and Gymnasium."""

from __future__ import annotations

import gymnasium

from marft_envs.registry.versioned_names import BUILT_IN, pettingzoo_id


def register_in_libraries(name: str) -> None:
    """Register an environment with Gymnasium and PettingZoo.

    Afterwards ``gymnasium.make("marft/math-v0")`` and, with PettingZoo 1.27 or later,
    ``pettingzoo.make("aec", "marft/math-v0")`` return it. The environment's module is imported only then.
    """
    if pettingzoo_id(name) not in gymnasium.registry:
        gymnasium.register(
            pettingzoo_id(name),
            entry_point="marft_envs.registry.single_agent:make_single_agent",
            kwargs={"name": name},
        )
    try:
        from pettingzoo import aec_registry, register
    except ImportError:
        return
    if pettingzoo_id(name) not in aec_registry:
        register("aec", pettingzoo_id(name), entry_point=f"marft_envs.{name}:env")


def register_built_in() -> None:
    """Register every built-in environment with Gymnasium and PettingZoo."""
    for name in BUILT_IN:
        register_in_libraries(name)
