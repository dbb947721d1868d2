"""The memory plan of a configuration: its environment is made and its models' configurations are read, no weights."""

from __future__ import annotations

from dataclasses import replace

import torch

from baselines.models.devices import DTYPES, choose_device
from baselines.models.find_shape import find_shape
from baselines.runs.evaluation import environment_of, make_environment
from baselines.runs.memory_plan import MemoryPlan, plan_of
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import check_team


def plan_without_weights(config: RunConfig) -> MemoryPlan:
    """Return the memory plan of a run that has not been started.

    Args:
        config: Configuration of the run. Models may also be named by size, such as "7B" (``NAMED_SHAPES``), and the
            device need not exist on this machine.

    Raises:
        ValueError: A setting is invalid for the environment or the team.
        ModelNotFound: The configuration of a model cannot be found.
    """
    setting = environment_of(config)
    agents = make_environment(config.environment, "train", setting.environment_arguments).possible_agents
    check_team(config, agents)
    device = choose_device().device if config.device == "auto" else torch.device(config.device)
    models = {}
    for name in {config.bases.get(agent, config.model) for agent in agents if agent not in config.scripted}:
        shape, stored = find_shape(name)
        models[name] = shape, DTYPES[stored if config.dtype == "auto" else config.dtype].itemsize
    config = replace(config, decoding=replace(config.decoding, max_new_tokens=setting.max_new_tokens))
    return plan_of(config, agents, models, device, four_bit=config.quantization == "4bit")
