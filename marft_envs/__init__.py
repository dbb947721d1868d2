"""Multi-agent LLM training environments: PettingZoo AEC environments with text observations and text actions.

The dependency function D of the Flexible Markov Game decides the order of turns and what each agent sees.

    import marft_envs
    env = marft_envs.math_v0.env()

Environment modules are imported when they are first used. This package never imports torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marft_envs import registry
from marft_envs.dependency.graph import CycleError, Dependency
from marft_envs.dependency.orchestration import Orchestrated
from marft_envs.dependency.schedule import PerRound
from marft_envs.game.flex_mg import FlexMG
from marft_envs.registry.registry import make, register
from marft_envs.task import Problem, Task
from marft_envs.team.role import Role
from marft_envs.team.team import Team
from marft_envs.team.tools import Tool
from marft_envs.verdict import Outcome, Verdict
from marft_envs.version import __version__ as __version__

if TYPE_CHECKING:
    from marft_envs import math_v0 as math_v0

    all_environments: tuple[str, ...]

__all__ = [
    "CycleError", "Dependency", "FlexMG", "Orchestrated", "Outcome", "PerRound", "Problem", "Role", "Task", "Team",
    "Tool", "Verdict", "all_environments", "make", "register", *registry.BUILT_IN,
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return an environment module by its name, or ``all_environments``, the names registered so far."""
    if name == "all_environments":
        return registry.names()
    if registry.is_versioned(name):
        try:
            return registry.environment_module(name)
        except registry.UnknownEnvironment as fault:
            raise AttributeError(f"module 'marft_envs' has no attribute {name!r}: {fault}") from None
    raise AttributeError(f"module 'marft_envs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


registry.register_built_in()
