"""Multi-agent LLM training environments: text in, text out, PettingZoo AEC, with the dependency function D of Flex-MG.

    import marft_envs
    env = marft_envs.math_v0.env()

Environment modules are imported when first used. This package never imports torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marft_envs.dependency import CycleError, Dependency
from marft_envs.flex_mg import FlexMG
from marft_envs.registry import MODULES, environment_module, make, register_with_pettingzoo
from marft_envs.task import Problem, Task
from marft_envs.team import Role, Team
from marft_envs.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from marft_envs import math_v0 as math_v0

__version__ = "0.1.0"
all_environments = MODULES

__all__ = [
    "CycleError", "Dependency", "FlexMG", "Outcome", "Problem", "Role", "Task", "Team", "Verdict",
    "all_environments", "make", *MODULES,
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return environment_module(name)
    raise AttributeError(f"module 'marft_envs' has no attribute {name!r}; environments: {', '.join(MODULES)}")


register_with_pettingzoo()
