"""Using what was trained: a run's folder or one checkpoint as policies that play any environment.

team = baselines.load_team("runs/relay")
episodes = BatchRunner(env, size=64).play(team.policy, indices=range(64))      # in the batch runner
env.step(team.act(env.agent_selection, env.observe(env.agent_selection)))      # by hand
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from baselines.runs import checkpoint
from baselines.runs.checkpoint import Checkpoint, CheckpointError
from baselines.runs.run import load_adapters
from baselines.runs.run_config import DIGESTS, RunConfig, differences, from_table
from baselines.runs.run_folder import CHECKPOINTS
from baselines.runs.team_policy import TeamPolicy, TeamSampler
from marft_envs.batch.runner import Reply, Request

log = logging.getLogger("baselines")


@dataclass
class LoadedTeam:
    """Trained policies by agent. config: of the run. update: after which it was kept. cast: who plays whom, greedy or
    sampled. roles: the trained agent behind an environment's agent of another name. seed: of what is drawn by hand.
    """

    config: RunConfig
    update: int
    team: TeamPolicy
    cast: TeamSampler
    roles: Mapping[str, str]
    seed: int
    _drawn: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._drawn = np.random.default_rng([self.seed, 0])

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents of the run."""
        return self.team.agents

    def policy(self, requests: list[Request]) -> Sequence[Reply]:
        """A policy of ``marft_envs.batch``: one reply for each request, whoever asks. The draws of a problem's turn are
        a function of (seed, problem, turn)."""
        replies: dict[int, Reply] = {}
        for agent in dict.fromkeys(r.agent for r in requests):
            mine = [i for i, r in enumerate(requests) if r.agent == agent]
            trained = self._trained(agent)
            for i, reply in zip(mine, self.cast([replace(requests[i], agent=trained) for i in mine]), strict=True):
                replies[i] = reply
        return [replies[i] for i in range(len(requests))]

    def act(self, agent: str, observation: Mapping[str, Any]) -> str:
        """What ``agent`` says after ``observation``; draws follow each other from the seed."""
        index = int(self._drawn.integers(2**31))
        request = Request(0, index, self._trained(agent), 0, 0, dict(observation))
        (reply,) = self.cast([request])
        return reply.text

    def _trained(self, agent: str) -> str:
        name = self.roles.get(agent, agent)
        if name not in self.agents:
            raise ValueError(
                f"agent {agent!r} was not trained: expected one of {', '.join(self.agents)}, "
                f"or roles={{{agent!r}: one of them}} of load_team"
            )
        return name


def load_team(
    path: str | Path, *, update: int | None = None, greedy: bool = False, seed: int = 0,
    roles: Mapping[str, str] | None = None, allow_wheel: bool = False,
) -> LoadedTeam:  # fmt: skip
    """The team of a run's folder (its newest sound checkpoint, or that of ``update``) or of one checkpoint's folder.

    greedy: the likeliest token always; else sampled at the run's temperature, from ``seed``. roles: {"an environment's
    agent": "the trained agent that plays it"} where names differ; several may share one. allow_wheel: see
    ``load_model``. Raises CheckpointError and ValueError that name the folder.
    """
    found = _find(Path(path), update)
    config = config_of(found)
    before = found.manifest["config"].get(DIGESTS, config.scripted_sha256)  # older ones do not know
    for changed in differences(before, config.scripted_sha256, f"{DIGESTS}."):
        log.warning("%s: its team was trained beside another script: %s", found.folder, changed)
    if allow_wheel:
        config = replace(config, allow_wheel=True)
    decoding = replace(config.decoding, max_new_tokens=found.manifest["max_new_tokens"])
    team = TeamPolicy(config, found.manifest["agents"], decoding)
    load_adapters(team, found)
    return LoadedTeam(config, found.update, team, team.cast(None if greedy else (seed,)), dict(roles or {}), seed)


def config_of(found: Checkpoint) -> RunConfig:
    """The run that the checkpoint is of."""
    return from_table(found.manifest["config"])


def _find(path: Path, update: int | None) -> Checkpoint:
    if (path / checkpoint.MANIFEST).is_file():
        return _of_update(checkpoint.read(path), update)
    place = path / CHECKPOINTS
    if not place.is_dir():
        raise CheckpointError(
            f"{path} holds no {CHECKPOINTS}/ and no {checkpoint.MANIFEST}: expected a run's folder or a checkpoint"
        )
    there = checkpoint.updates(place)
    if not there:
        raise CheckpointError(f"{path} has no checkpoint: none was written")
    if update is not None:
        if update not in there:
            known = ", ".join(map(str, there))
            raise CheckpointError(f"{path} has no checkpoint of update {update}: expected one of {known}")
        return checkpoint.read(there[update])
    found = checkpoint.newest(place)
    if found.checkpoint is None:
        raise CheckpointError(f"{path} has no checkpoint that can be used: {'; '.join(found.passed_over)}")
    return found.checkpoint


def _of_update(found: Checkpoint, update: int | None) -> Checkpoint:
    if update not in (None, found.update):
        raise CheckpointError(
            f"checkpoint {found.folder} is of update {found.update}: expected update={found.update}, or none; "
            f"got {update}"
        )
    return found
