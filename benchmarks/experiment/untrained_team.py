"""Evaluation of an untrained team on data sets: the work of evaluate.py."""

from __future__ import annotations

import argparse
import inspect
import json
import time
from collections.abc import Mapping
from typing import Any

from baselines.engine.torch_engine import Decoding
from baselines.runs.evaluation import evaluation_items, heldout_runner, play_items, score_items
from baselines.runs.run_config import RunConfig
from baselines.runs.team_policy import TeamPolicy
from benchmarks.analysis.intervals import wilson_interval
from marft_envs.batch import Episode
from marft_envs.cli.key_values import parse_key_values
from marft_envs.registry import environment_module

TINY = ("tiny", "tiny-report")
_SAMPLING_STREAM = (0, 3)  # seed and name of the random stream, as in an evaluation of a run with seed 0


def evaluate_all(options: argparse.Namespace) -> int:
    """Evaluate each data set of the command line and return 0.

    Raises:
        OSError: ``--out`` cannot be written; raised before the first evaluation.
        ValueError: An option cannot be used.
    """
    if options.out:
        options.out.open("a", encoding="utf-8").close()
    for dataset in options.dataset or default_datasets(options.env):
        name = dataset or options.env
        print(f"evaluating {options.model} on {name} (at most {options.items} items) ...", flush=True)
        evaluate(options, dataset)
    return 0


def evaluate(options: argparse.Namespace, dataset: str | None) -> None:
    """Evaluate the team on one data set, print the result and append the row to ``--out``.

    Args:
        options: Parsed command line of evaluate.py.
        dataset: Name of the data set; None for an environment without data sets.
    """
    config = config_of(options, dataset)
    runner = heldout_runner(config)
    team = TeamPolicy(config, runner.team.agents, config.decoding)
    print("\n".join(team.placement))
    sampler = team.sampler(None if options.mode == "greedy" else _SAMPLING_STREAM)
    start = time.perf_counter()
    episodes = play_items(runner, sampler, evaluation_items(runner, options.items, config.seed))
    seconds = time.perf_counter() - start
    row = score_items(episodes)
    for episode in episodes[: options.show]:
        print(transcript(episode))
    print(summary(config, options.mode, row))
    print(f"  {sampler.generated_tokens} tokens, {sampler.generated_tokens / seconds:.0f} per second")
    if options.out:
        with options.out.open("a", encoding="utf-8") as out:
            label = {"kind": "eval", "arm": "untrained", "task": config.task, "seed": 0, "update": 0}
            out.write(json.dumps({**label, "mode": options.mode, **row}) + "\n")


def default_datasets(environment: str) -> list[str | None]:
    """Return the data sets to evaluate on: gsm8k, or [None] for an environment without an argument ``dataset``."""
    parameters = inspect.signature(environment_module(environment).env).parameters
    return ["gsm8k" if "dataset" in parameters else None]


def default_team(model: str, dataset: str) -> str:
    """Return the ready-made team that suits the data set and the model."""
    if dataset == "report":
        return "panel_8"
    return "duo" if dataset == "relay" or model in TINY else "duo_guided"


def config_of(options: argparse.Namespace, dataset: str | None) -> RunConfig:
    """Return the configuration of a run without updates.

    Args:
        options: Parsed command line of evaluate.py.
        dataset: Name of the data set; None for an environment that has none.
    """
    team = options.team or (default_team(options.model, dataset) if dataset else None)
    arguments = {k: v for k, v in {"dataset": dataset, "team": team}.items() if v is not None}
    arguments |= parse_key_values("--env-arg", options.env_arg)
    arguments |= {k: v for k, v in {"path": options.path, "level": options.level}.items() if v is not None}
    temperature = (1.0 if options.model in TINY else 0.7) if options.temperature is None else options.temperature
    stop_strings = ("\n",) if (team or "").endswith("_guided") else ()
    return RunConfig(
        arm="untrained",
        task=dataset or "",
        environment=options.env,
        environment_arguments=arguments,
        model=options.model,
        allow_wheel=options.allow_wheel,
        device=options.device,
        dtype=options.dtype,
        quantization=options.quantization,
        updates=0,
        episodes=1,
        evaluation_items=options.items,
        decoding=Decoding(options.max_new_tokens, temperature, stop_strings=stop_strings, rows=32),
    )


def summary(config: RunConfig, mode: str, row: Mapping[str, Any]) -> str:
    """Return the result in one line. Without a graded item there is no accuracy."""
    team = config.environment_arguments.get("team", "(default team)")
    accuracy = "nothing graded"
    if row["n"]:
        interval = wilson_interval(row["item_score"])
        accuracy = f"accuracy {row['accuracy']:.1%} [{interval.low:.1%}, {interval.high:.1%}] of {row['n']} items"
    unanswered = row["no_answer"] / max(1, row["answers"])
    not_graded = row["not_graded"] / (row["n"] + row["not_graded"])
    return (
        f"{config.model} {team} on {config.task}, {mode}: {accuracy}; "
        f"no answer {unanswered:.1%} ({row['no_answer']}), not graded {not_graded:.1%} ({row['not_graded']})"
    )


def transcript(episode: Episode) -> str:
    """Return an episode as text: the problem, the private parts, the gold, the replies and the verdicts."""
    assert episode.problem is not None
    lines = [f"--- problem {episode.index}: {episode.problem.prompt}".rstrip()]
    lines += [f"    only {agent} reads: {part}" for agent, part in episode.problem.private.items()]
    lines.append(f"    gold: {episode.problem.gold}")
    lines += [f"[{s.request.agent}] {s.request.observation['reply_prefix']}{s.text}" for s in episode.steps]
    verdicts = episode.outcome.verdicts if episode.outcome else {}
    outcomes = ", ".join(f"{agent} {verdict.outcome.value}" for agent, verdict in verdicts.items())
    return "\n".join([*lines, f"=> {episode.not_graded or f'{episode.score:g}'} ({outcomes})"])
