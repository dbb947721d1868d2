"""Learners for teams of language models: MARFT, matched Independent PPO, and the rungs between them.

run = baselines.train(baselines.RunConfig(arm="marft", environment_arguments={"dataset": "relay"}), folder="runs/relay")
team = baselines.load_team("runs/relay")
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

_missing = [name for name in ("torch", "transformers", "peft") if find_spec(name) is None]
if _missing:
    raise ImportError(f"baselines needs {', '.join(_missing)}: pip install marft-envs[train]")

if TYPE_CHECKING:
    from baselines.ladder import ARMS, LearnerConfig, ippo, marft
    from baselines.runs.load_team import LoadedTeam, load_team
    from baselines.runs.run import train
    from baselines.runs.run_config import RunConfig

_LATER = dict.fromkeys(("ARMS", "LearnerConfig", "ippo", "marft"), "ladder")
_LATER |= {"RunConfig": "runs.run_config", "load_team": "runs.load_team", "LoadedTeam": "runs.load_team"}

__all__ = ["ARMS", "LearnerConfig", "LoadedTeam", "RunConfig", "ippo", "load_team", "marft", "train"]


def __getattr__(name: str) -> Any:
    """What needs torch, transformers and peft, which take seconds to import, comes when it is first used."""
    if name == "train":
        return import_module("baselines.train")  # the module of the command line, which can be called as the function
    if name in _LATER:
        return getattr(import_module(f"baselines.{_LATER[name]}"), name)
    raise AttributeError(f"module 'baselines' has no attribute {name!r}")
