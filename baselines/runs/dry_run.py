"""The memory plan of a configuration: its environment is made and its models' configurations are read, no weights."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import torch

from baselines.models.devices import AUTO, DTYPES, choose_device, choose_dtype
from baselines.models.find_shape import find_shape
from baselines.models.sources import ModelNotFound
from baselines.policies.micro_batches import GIB
from baselines.runs.device_memory import free_memory
from baselines.runs.evaluation import environment_of, make_environment
from baselines.runs.memory_plan import MemoryPlan, plan_of
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import check_team

log = logging.getLogger("baselines")


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
    check_team(config, game.possible_agents)
    config = replace(config, decoding=replace(config.decoding, max_new_tokens=setting.max_new_tokens))
    return _plan(config, game.possible_agents, game.rounds)


def check_before_loading(config: RunConfig, agents: Sequence[str], rounds: int) -> None:
    """Refuse a run whose fixed parts need more than the memory that it may use; warn if they need more than is free.

    A model whose configuration cannot be found is left to ``load_model``, which says what was tried.

    Args:
        config: Configuration of the run, with the arm's own limit of ``decoding.max_new_tokens``.
        agents: Agents of the team.
        rounds: Number of rounds of an episode.

    Raises:
        ValueError: The memory does not hold the fixed parts, or this machine does not have the device.
    """
    choose_device(config.device)
    try:
        plan = _plan(config, agents, rounds)
    except ModelNotFound:
        return
    plan.check()
    free = free_memory(plan.device)
    if free is not None and plan.fixed > free:
        log.warning(
            "weights, adapters, optimiser state and critic need %.3g GiB, and %.3g GiB are free on %s: the run may end "
            "with an out-of-memory error", plan.fixed / GIB, free / GIB, plan.device,
        )  # fmt: skip


def _plan(config: RunConfig, agents: Sequence[str], rounds: int) -> MemoryPlan:
    """Return the plan of a run whose token limit is the arm's own."""
    device, present = _device_of(config)
    models = {}
    for name in {config.bases.get(agent, config.model) for agent in agents if agent not in config.scripted}:
        shape, stored = find_shape(name)
        models[name] = shape, _dtype_of(config, device, stored, present).itemsize
    return plan_of(config, agents, models, device, rounds=rounds, four_bit=config.quantization == "4bit")


def _device_of(config: RunConfig) -> tuple[torch.device, bool]:
    """Return the device of a run, and whether it is on this machine."""
    try:
        return choose_device(config.device).device, True
    except ValueError as error:
        device = torch.device(config.device)
        if device.type == "cuda" and torch.cuda.is_available():
            raise  # a machine with GPUs: one of them is meant, and not a GPU of another machine
        if config.memory_gib is None:
            raise ValueError(
                f"{error}; to plan for a device that is not on this machine, expected the GiB that the run may use of "
                "it, 90 % of a GPU by default: --set memory_gib=72 for a GPU of 80 GiB"
            ) from None
        return device, False


def _dtype_of(config: RunConfig, device: torch.device, stored: torch.dtype, present: bool) -> torch.dtype:
    """Return the type of the weights as ``load_model`` chooses it. An absent accelerator is taken to have bfloat16."""
    if present:
        return choose_dtype(config.dtype, device, stored).dtype
    if config.dtype != AUTO:
        return DTYPES[config.dtype]
    return stored if stored in DTYPES.values() else torch.float32
