"""The memory plan of a configuration: its environment is made and its models' configurations are read, no weights."""

from __future__ import annotations

from dataclasses import replace

import torch

from baselines.models.devices import AUTO, DTYPES, choose_device, choose_dtype
from baselines.models.find_shape import find_shape
from baselines.runs.evaluation import environment_of, make_environment
from baselines.runs.memory_plan import MemoryPlan, plan_of
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import check_team


def plan_without_weights(config: RunConfig) -> MemoryPlan:
    """Return the memory plan of a run that has not been started.

    Args:
        config: Configuration of the run. Models may also be named by size, such as "7B" (``NAMED_SHAPES``). With
            ``memory_gib`` the kind of device need not exist on this machine.

    Raises:
        ValueError: A setting is invalid for the environment or the team, or the device is not on this machine.
        ModelNotFound: The configuration of a model cannot be found.
    """
    setting = environment_of(config)
    game = make_environment(config.environment, "train", setting.environment_arguments).unwrapped
    agents = game.possible_agents
    check_team(config, agents)
    device, present = _device_of(config)
    models = {}
    for name in {config.bases.get(agent, config.model) for agent in agents if agent not in config.scripted}:
        shape, stored = find_shape(name)
        models[name] = shape, _dtype_of(config, device, stored, present).itemsize
    config = replace(config, decoding=replace(config.decoding, max_new_tokens=setting.max_new_tokens))
    return plan_of(config, agents, models, device, rounds=game.rounds, four_bit=config.quantization == "4bit")


def _device_of(config: RunConfig) -> tuple[torch.device, bool]:
    """Return the device of a run, and whether it is on this machine."""
    try:
        return choose_device(config.device).device, True
    except ValueError as error:
        device = torch.device(config.device)
        if (
            device.type == "cuda" and torch.cuda.is_available()
        ):  # a GPU of this machine is meant, which it does not have
            raise
        if config.memory_gib is None:
            raise ValueError(
                f"{error}; to plan for a device that is not on this machine, expected its memory in GiB, such as "
                "--set memory_gib=72"
            ) from None
        return device, False


def _dtype_of(config: RunConfig, device: torch.device, stored: torch.dtype, present: bool) -> torch.dtype:
    """Return the type of the weights as ``load_model`` chooses it. An absent accelerator is taken to have bfloat16."""
    if present:
        return choose_dtype(config.dtype, device, stored).dtype
    if config.dtype != AUTO:
        return DTYPES[config.dtype]
    return stored if stored in DTYPES.values() else torch.float32
