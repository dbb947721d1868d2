"""The subject of an evaluation in a suite: a trained team, a base model as a team, or an endpoint as a team."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from baselines.engine.endpoint import Endpoint, EndpointSettings
from baselines.engine.protocol import Sampling
from baselines.errors import RunError
from baselines.runs import evaluate_command
from baselines.runs.evaluation import EVALUATION, PLAYED_TOGETHER
from baselines.runs.evaluation_suites import Benchmark
from baselines.runs.load_team import LoadedTeam
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import TeamPolicy, TeamSampler
from marft_envs.batch import Policy, PolicyFault, Reply, Request
from marft_envs.cli.key_values import parse_key_values

DEFAULT_TEAM, DEFAULT_NEW_TOKENS, DEFAULT_PROMPT_TOKENS = "duo", 1024, 8192
KEY_VARIABLE = "OPENAI_API_KEY"
BLOCKS = 4
"""Episodes that are played together, for each request that an endpoint may have at a time."""


class Subject(Protocol):
    """What is evaluated.

    Attributes:
        name: Its name in the results.
        together: Number of episodes that are played together.
    """

    name: str
    together: int

    def config(self, benchmark: Benchmark) -> RunConfig:
        """Return the configuration whose test split is played."""

    def policy(self, agents: Sequence[str]) -> Policy:
        """Return the policy of a team; its weights are loaded once."""

    def description(self) -> dict[str, Any]:
        """Return what decides the results, as JSON values. A subject with a policy only."""

    def sampling(self) -> Sampling:
        """Return how tokens are chosen."""

    def close(self) -> None:
        """Close connections."""


def subject_of(options: argparse.Namespace) -> Subject:
    """Return the subject that the command line names.

    Raises:
        CheckpointError: RUN has no checkpoint that can be used.
        ValueError: An option cannot be used.
    """
    if options.endpoint is not None:
        return EndpointTeam(options)
    return ModelTeam(options) if options.run is None else TrainedTeam(options)


def for_benchmark(options: argparse.Namespace, benchmark: Benchmark) -> argparse.Namespace:
    """Return the options with the environment of a data set. Generated problems are read from no path."""
    path = None if benchmark.generated else options.path
    return argparse.Namespace(**{**vars(options), "env": benchmark.environment, "path": path})


@dataclass(frozen=True)
class WithinContext:
    """A policy for ``BatchRunner`` that makes a prompt that is too long for the model a fault of its episode.

    Attributes:
        policy: The policy that acts.
        sampler: Its sampler, which makes the prompts.
    """

    policy: Policy
    sampler: TeamSampler

    def __call__(self, requests: list[Request]) -> list[str | Reply | PolicyFault]:
        """Return one reply per request, or the fault of its prompt in its place."""
        replies: list[str | Reply | PolicyFault | None] = [self._fault(request) for request in requests]
        fitting = [i for i, fault in enumerate(replies) if fault is None]
        if fitting:
            for i, reply in zip(fitting, self.policy([requests[i] for i in fitting]), strict=True):
                replies[i] = reply
        return [reply for reply in replies if reply is not None]

    def _fault(self, request: Request) -> PolicyFault | None:
        if request.agent not in self.sampler.samplers:
            return None  # the policy names the agent in its error
        try:
            self.sampler.prompt(request.agent, request.observation)
        except RunError as error:
            return PolicyFault(str(error).split(". ")[0])
        return None


class TrainedTeam:
    """The team of a run, of a checkpoint or of an export."""

    together = PLAYED_TOGETHER

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        given = {name: getattr(options, name) for name in ("max_new_tokens", "temperature", "max_prompt_tokens")}
        decoding = {name: value for name, value in given.items() if value is not None}
        self.team: LoadedTeam = evaluate_command.loaded_team(options, decoding, options.seed)
        config, update = self.team.config, self.team.update
        self.name = f"{options.run.resolve().name} ({config.arm} after update {update}, {config.model})"

    def config(self, benchmark: Benchmark) -> RunConfig:
        options = for_benchmark(self.options, benchmark)
        return evaluate_command.config_of_run(options, self.team.config, benchmark.dataset)

    def policy(self, agents: Sequence[str]) -> Policy:
        return WithinContext(self.team.policy, self.team.sampler)

    def description(self) -> dict[str, Any]:
        config = self.team.config
        return {
            "kind": "run", "arm": config.arm, "config_hash": config.hash(), "update": self.team.update,
            "models": _models(self.team.team),
        }  # fmt: skip

    def sampling(self) -> Sampling:
        return self.team.team.groups[0].engine.sampling

    def close(self) -> None:
        pass


class ModelTeam:
    """A base model as a team, without training."""

    together = PLAYED_TOGETHER

    def __init__(self, options: argparse.Namespace) -> None:
        options.model = options.model or evaluate_command.DEFAULT_MODEL
        self.options, self.name = _with_defaults(options), options.model
        self._team: TeamPolicy | None = None
        self._first: RunConfig | None = None

    def config(self, benchmark: Benchmark) -> RunConfig:
        config = evaluate_command.config_of_model(for_benchmark(self.options, benchmark), benchmark.dataset)
        limit = self.options.max_prompt_tokens or DEFAULT_PROMPT_TOKENS
        config = replace(config, decoding=replace(config.decoding, max_prompt_tokens=limit))
        self._first = self._first or config
        return config

    def policy(self, agents: Sequence[str]) -> Policy:
        if self._team is None or self._team.agents != tuple(agents):
            self._team = None  # so that two models are never in memory
            assert self._first is not None
            self._team = TeamPolicy(self._first, agents, self._first.decoding)
        sampler = self._team.sampler(_stream(self.options))
        return WithinContext(sampler, sampler)

    def description(self) -> dict[str, Any]:
        assert self._team is not None
        return {"kind": "model", "model": self.options.model, "models": _models(self._team)}

    def sampling(self) -> Sampling:
        assert self._first is not None
        return self._first.decoding.sampling

    def close(self) -> None:
        pass


class EndpointTeam:
    """A model behind an OpenAI-compatible endpoint as a team."""

    def __init__(self, options: argparse.Namespace) -> None:
        options.model = options.endpoint_model
        self.options, self.name = _with_defaults(options), options.endpoint_model
        self.settings = EndpointSettings(
            options.endpoint,
            options.endpoint_model,
            api_key(options.endpoint_key_env),
            concurrency=options.concurrency,
            attempts=options.attempts,
            timeout_s=options.timeout_s,
            system_role=not options.no_system_role,
            payload=parse_key_values("--endpoint-arg", options.endpoint_arg),
        )
        self.together = BLOCKS * options.concurrency
        self._endpoint = Endpoint(self.settings, sampling=self.sampling(), stream=_stream(options))

    def config(self, benchmark: Benchmark) -> RunConfig:
        config = evaluate_command.config_of_model(for_benchmark(self.options, benchmark), benchmark.dataset)
        return replace(config, decoding=replace(config.decoding, stop_strings=()))

    def policy(self, agents: Sequence[str]) -> Policy:
        return self._endpoint

    def description(self) -> dict[str, Any]:
        return {
            "kind": "endpoint", "url": self.settings.url, "model": self.settings.model,
            "system_role": self.settings.system_role, "payload": dict(self.settings.payload),
        }  # fmt: skip

    def sampling(self) -> Sampling:
        return Sampling(self.options.max_new_tokens, self.options.temperature)

    def close(self) -> None:
        self._endpoint.close()


def api_key(variable: str | None) -> str:
    """Return the API key in an environment variable; "" if it is not set and was not named.

    Args:
        variable: Name of the variable; None for OPENAI_API_KEY, which local servers do not need.

    Raises:
        ValueError: The named variable is not set.
    """
    key = os.environ.get(variable or KEY_VARIABLE, "")
    if variable is not None and not key:
        raise ValueError(f"--endpoint-key-env {variable}: the variable is not set, expected one with the API key")
    return key


def _with_defaults(options: argparse.Namespace) -> argparse.Namespace:
    """Return the options of a subject without training, with the team and limits that suit a suite."""
    defaults = {
        "team": DEFAULT_TEAM,
        "max_new_tokens": DEFAULT_NEW_TOKENS,
        "temperature": 1.0 if options.model in evaluate_command.TINY else 0.7,
    }
    given = {key: value for key, value in vars(options).items() if value is not None}
    return argparse.Namespace(**{**vars(options), **defaults, **given})


def _stream(options: argparse.Namespace) -> tuple[int, ...] | None:
    """Return the random stream of sampled decoding; None for greedy decoding."""
    return None if options.mode == "greedy" else (options.seed or 0, EVALUATION)


def _models(team: TeamPolicy) -> dict[str, dict[str, str]]:
    """Return the base models without the device, on which an evaluation may be continued elsewhere."""
    return {name: {k: v for k, v in about.items() if k != "device"} for name, about in team.models().items()}
