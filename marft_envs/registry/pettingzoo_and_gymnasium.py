"""Registration with PettingZoo's and Gymnasium's own registries."""

from __future__ import annotations

import gymnasium

from marft_envs.registry.versioned_names import BUILT_IN, pettingzoo_id


def announce(name: str) -> None:
    """Register an environment with Gymnasium and PettingZoo.

    Afterwards ``gymnasium.make("marft/math-v0")`` works, and so does ``pettingzoo.make("aec", "marft/math-v0")`` where
    PettingZoo has a registry (1.27 and later). Nothing is imported before one of them is called.
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


def announce_built_in() -> None:
    """Announce every built-in environment."""
    for name in BUILT_IN:
        announce(name)
