"""D, the dependency function of the Flexible Markov Game: who sees whose action, in one round and over the rounds."""

from marft_envs.dependency.graph import PRESETS, CycleError, Dependency, as_dependency
from marft_envs.dependency.orchestration import Orchestrated, names_next, names_plan
from marft_envs.dependency.schedule import PerRound, Schedule, as_schedule

__all__ = [
    "PRESETS", "CycleError", "Dependency", "Orchestrated", "PerRound", "Schedule", "as_dependency", "as_schedule",
    "names_next", "names_plan",
]  # fmt: skip
