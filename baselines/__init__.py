"""Learners for teams of language models: MARFT, matched independent PPO, and the arms between them.

Example:
    import baselines

    config = baselines.RunConfig(arm="marft", environment_arguments={"dataset": "relay"})
    run = baselines.train(config, folder="runs/relay")
    team = baselines.load_team("runs/relay")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baselines.ladder import ARMS, LearnerConfig, ippo, marft
    from baselines.runs.load_team import LoadedTeam, load_team
    from baselines.runs.run import train
    from baselines.runs.run_config import RunConfig

_LAZY = dict.fromkeys(("ARMS", "LearnerConfig", "ippo", "marft"), "ladder")
_LAZY |= {"RunConfig": "runs.run_config", "load_team": "runs.load_team", "LoadedTeam": "runs.load_team"}

__all__ = ["ARMS", "LearnerConfig", "LoadedTeam", "RunConfig", "ippo", "load_team", "marft", "train"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, because torch, transformers and peft take seconds to import."""
    if name in __all__:
        import_module("baselines.command_line").require_packages()
    if name == "train":
        return import_module("baselines.train")  # the module is callable, so this is also the function
    if name in _LAZY:
        return getattr(import_module(f"baselines.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'baselines' has no attribute {name!r}")
