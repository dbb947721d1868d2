"""The dependency function D of the Flexible Markov Game: execution order and visibility, within and across rounds."""

from marft_envs.dependency.graph import PRESETS, CycleError, Dependency, as_dependency
from marft_envs.dependency.orchestration import Orchestrated, read_next, read_plan
from marft_envs.dependency.schedule import PerRound, Schedule, as_schedule

__all__ = [
    "PRESETS", "CycleError", "Dependency", "Orchestrated", "PerRound", "Schedule", "as_dependency", "as_schedule",
    "read_next", "read_plan",
]  # fmt: skip
