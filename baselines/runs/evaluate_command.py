"""The work of ``python -m baselines.evaluate``: a trained or untrained team on data sets, and its results as text."""

from __future__ import annotations

import argparse
import inspect
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from baselines.engine.torch_engine import Decoding
from baselines.runs.checkpoint import CheckpointError
from baselines.runs.episode_text import transcript
from baselines.runs.evaluation import (
    EVALUATION,
    evaluation_items,
    heldout_runner,
    item_interval,
    play_items,
    score_items,
)
from baselines.runs.load_team import LoadedTeam, load_team
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import TeamPolicy, TeamSampler
from marft_envs.batch import BatchRunner, Policy
from marft_envs.cli.key_values import parse_key_values, parse_value
from marft_envs.registry import environment_module

__all__ = ["CheckpointError", "evaluate_all"]

TINY = ("tiny", "tiny-report")
_OF_TEAM = ("team", "dependency", "stop", "rounds", "memory", "order")
DEFAULT_MODEL, DEFAULT_ENVIRONMENT, DEFAULT_ITEMS, DEFAULT_NEW_TOKENS = "smollm2-135m", "math_v0", 100, 64


@dataclass(frozen=True)
class Contestant:
    """A team that is evaluated on one data set.

    Attributes:
        name: The team's name in the output.
        config: Configuration whose test split is played.
        update: The update after which the team was saved; 0 for an untrained team.
        runner: Runner of the test split.
        policy: The team's policy.
        sampler: The sampler of ``policy``, which counts tokens.
        placement: Device and type of each base model, as sentences.
    """

    name: str
    config: RunConfig
    update: int
    runner: BatchRunner
    policy: Policy
    sampler: TeamSampler
    placement: Sequence[str]


def evaluate_all(options: argparse.Namespace) -> int:
    """Evaluate each data set of the command line and return 0.

    Raises:
        OSError: ``--out`` cannot be written; raised before the first evaluation.
        CheckpointError: RUN has no checkpoint that can be used.
        ValueError: An option cannot be used.
    """
    if options.out:
        options.out.open("a", encoding="utf-8").close()
    team = None if options.run is None else loaded_team(options)
    for dataset in options.dataset or [None] if team else options.dataset or default_datasets(options.env):
        contestant = untrained(options, dataset) if team is None else trained(options, team, dataset)
        evaluate(options, contestant)
    return 0


def evaluate(options: argparse.Namespace, team: Contestant) -> None:
    """Evaluate a team, print the result and append the row to ``--out``."""
    items = evaluation_items(team.runner, team.config.evaluation_items, team.config.seed)
    print(f"evaluating {team.name} on {team.config.task} ({len(items)} items) ...", flush=True)
    print("\n".join(team.placement))
    start = time.perf_counter()
    episodes = play_items(team.runner, team.policy, items)
    seconds = time.perf_counter() - start
    row = score_items(episodes)
    for episode in episodes[: options.show]:
        print(transcript(episode))
    print(summary(team.name, team.config, options.mode, row))
    print(f"  {team.sampler.generated_tokens} tokens, {team.sampler.generated_tokens / seconds:.0f} per second")
    if options.out:
        label = {"kind": "eval", "arm": team.config.arm, "task": team.config.task, "seed": team.config.seed}
        with options.out.open("a", encoding="utf-8") as out:
            out.write(json.dumps({**label, "update": team.update, "mode": options.mode, **row}) + "\n")


# ---- a trained team


def loaded_team(
    options: argparse.Namespace, decoding: Mapping[str, Any] | None = None, seed: int | None = None
) -> LoadedTeam:
    """Return the team of RUN, which samples as the run's own evaluations do.

    Args:
        options: The command line.
        decoding: Fields of ``Decoding`` that differ from the run's.
        seed: Seed of sampling; None for that of the run.
    """
    team = load_team(
        options.run,
        update=options.update,
        allow_wheel=options.allow_wheel,
        device=options.device or "auto",
        dtype=options.dtype,
        quantization=options.quantization,
        decoding=decoding,
    )
    stream = (team.config.seed if seed is None else seed, EVALUATION)
    team.sampler = team.team.sampler(None if options.mode == "greedy" else stream)
    return team


def trained(options: argparse.Namespace, team: LoadedTeam, dataset: str | None) -> Contestant:
    """Return a loaded team on one data set; None for that of its run."""
    config = config_of_run(options, team.config, dataset)
    name = f"{options.run} ({config.arm} after update {team.update}, {config.model})"
    return Contestant(name, config, team.update, heldout_runner(config), team.policy, team.sampler, team.team.placement)


def config_of_run(options: argparse.Namespace, config: RunConfig, dataset: str | None) -> RunConfig:
    """Return the configuration of a trained team's evaluation.

    Without --dataset and --env the team plays the run's own environment. Another data set or environment keeps the
    run's team, D and rounds, and no argument of the task.

    Args:
        options: Parsed command line.
        config: Configuration of the run.
        dataset: Name of the data set; None for that of the run.
    """
    arguments = dict(config.environment_arguments)
    elsewhere = dataset is not None or options.env is not None
    if elsewhere:
        arguments = {key: value for key, value in arguments.items() if key in _OF_TEAM}
    arguments |= _given(dataset=dataset, path=options.path, level=options.level) | _team_arguments(options)
    arguments |= parse_key_values("--env-arg", options.env_arg)
    return replace(
        config,
        task="" if elsewhere else config.task,
        environment=options.env or config.environment,
        environment_arguments=arguments,
        evaluation_items=config.evaluation_items if options.items is None else options.items,
    )


# ---- an untrained team


def untrained(options: argparse.Namespace, dataset: str | None) -> Contestant:
    """Return the base model as a team on one data set; None for an environment that has none."""
    config = config_of_model(options, dataset)
    runner = heldout_runner(config)
    team = TeamPolicy(config, runner.team.agents, config.decoding)
    sampler = team.sampler(None if options.mode == "greedy" else (config.seed, EVALUATION))
    name = f"{config.model} {config.environment_arguments.get('team', '(default team)')}"
    return Contestant(name, config, 0, runner, sampler, sampler, team.placement)


def default_datasets(environment: str | None) -> list[str | None]:
    """Return the data sets to evaluate on: gsm8k, or [None] for an environment without an argument ``dataset``."""
    parameters = inspect.signature(environment_module(environment or DEFAULT_ENVIRONMENT).env).parameters
    return ["gsm8k" if "dataset" in parameters else None]


def default_team(model: str, dataset: str) -> str:
    """Return the ready-made team that suits the data set and the model."""
    if dataset == "report":
        return "panel_8"
    return "duo" if dataset == "relay" or model in TINY else "duo_guided"


def config_of_model(options: argparse.Namespace, dataset: str | None) -> RunConfig:
    """Return the configuration of a run without updates.

    Args:
        options: Parsed command line.
        dataset: Name of the data set; None for an environment that has none.
    """
    model = options.model or DEFAULT_MODEL
    team = options.team or (default_team(model, dataset) if dataset else None)
    arguments = _given(dataset=dataset) | _team_arguments(options) | _given(team=team)
    arguments |= parse_key_values("--env-arg", options.env_arg) | _given(path=options.path, level=options.level)
    temperature = (1.0 if model in TINY else 0.7) if options.temperature is None else options.temperature
    new_tokens = DEFAULT_NEW_TOKENS if options.max_new_tokens is None else options.max_new_tokens
    stop_strings = ("\n",) if (team or "").endswith("_guided") else ()
    return RunConfig(
        arm="untrained",
        task=dataset or "",
        environment=options.env or DEFAULT_ENVIRONMENT,
        environment_arguments=arguments,
        model=model,
        allow_wheel=options.allow_wheel,
        **_given(device=options.device, dtype=options.dtype, quantization=options.quantization),
        updates=0,
        episodes=1,
        evaluation_items=DEFAULT_ITEMS if options.items is None else options.items,
        decoding=Decoding(new_tokens, temperature, stop_strings=stop_strings, rows=32),
    )


def _team_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of the environment for the options of the team that were given."""
    dependency = None if options.dependency is None else parse_value(options.dependency)
    return _given(team=options.team, dependency=dependency, rounds=options.rounds)


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


# ---- results as text


def summary(name: str, config: RunConfig, mode: str, row: Mapping[str, Any]) -> str:
    """Return the result in one line. Without a graded item there is no accuracy.

    Args:
        name: Name of the team.
        config: Configuration of the evaluation.
        mode: Decoding.
        row: Result of ``score_items``.
    """
    accuracy = "nothing graded"
    if row["n"]:
        low, high = item_interval(row["item_score"])
        accuracy = f"accuracy {row['accuracy']:.1%} [{low:.1%}, {high:.1%}] of {row['n']} items"
    items = row["n"] + row["not_graded"]
    return (
        f"{name} on {config.task}, {mode}: {accuracy}; "
        f"no answer in {_share(row['no_answer'], row['answers'], 'answers')}, "
        f"not graded {_share(row['not_graded'], items, 'items')}"
    )


def _share(part: int, whole: int, unit: str) -> str:
    return f"{part} of {whole} {unit} ({part / max(1, whole):.1%})"
