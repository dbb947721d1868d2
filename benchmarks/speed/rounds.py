"""The cost of a rollout of several rounds, with and without the keys and values of earlier turns.

A team plays the same episodes with the same random numbers both ways, ordinary and activated. Each agent reads the
problem, its own messages and those of the others, so a prompt begins with what the agent has read before. Actions have
a fixed number of tokens.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

import marft_envs
from baselines.engine.sampler import EngineSampler
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.models.load import LoadedModel, load_model
from baselines.policies.policy import SharedBasePolicy, prompts_kept
from benchmarks.speed.workload import make_policy
from marft_envs import Role, Team
from marft_envs.batch import BatchRunner

WAYS = {"every turn reads its prompt": 0, "turns begin from earlier ones": 8 * 2**30}
"""The ways to play, and the bytes of earlier turns that each may store."""


@dataclass
class Way:
    """A way to play the episodes.

    Attributes:
        name: Label in the table.
        play: Plays all episodes once.
        seconds: Seconds of every repetition.
    """

    name: str
    play: Callable[[], None]
    seconds: list[float] = field(default_factory=list)


def team_of(agents: int) -> Team:
    """Return a team of a size whose agents all see each other."""
    role = Role("You are a careful member of a team. Answer with the number only.", answers=True)
    return Team({f"agent_{i}": role for i in range(agents)}, "full")


def ways(options: argparse.Namespace, loaded: LoadedModel, *, activated: bool) -> list[Way]:
    """Return the WAYS with one kind of adapter."""
    team = team_of(options.agents)
    env = marft_envs.math_v0.raw_env(dataset="report", style="words", team=team, rounds=options.rounds, split="train")
    runner = BatchRunner(env, options.episodes)
    policy = make_policy(loaded, team.agents, activated=activated)
    decoding = Decoding(max_new_tokens=options.new_tokens)
    engine = TorchEngine(policy, loaded.tokenizer, decoding)
    engine.end_ids = frozenset()
    label = "activated" if activated else "ordinary"
    return [
        Way(f"{label}, {name}", partial(_play, engine, loaded, runner, policy, limit)) for name, limit in WAYS.items()
    ]


def _play(engine: TorchEngine, loaded: LoadedModel, runner: BatchRunner, policy: SharedBasePolicy, limit: int) -> None:
    with prompts_kept(policy, limit):
        runner.play(EngineSampler(engine, loaded, (0,)), indices=range(len(runner.envs)))


def run(options: argparse.Namespace) -> None:
    """Measure both ways of both kinds of adapters, alternating, after one repetition to warm up; print a table."""
    found: dict[str, Any] = {
        "threads": torch.get_num_threads(), "episodes": options.episodes, "agents": options.agents,
        "rounds": options.rounds, "new_tokens": options.new_tokens,
    }  # fmt: skip
    for activated in (False, True):
        loaded = load_model(options.model, device=options.device, dtype=options.dtype, allow_wheel=options.allow_wheel)
        if not activated:
            found["model"] = loaded.name
            print(f"{loaded.name}: {loaded.placement}; {found['threads']} threads; {_size(options)}")
            print(f"{'rollout':40} {'best, s':>9} {'median':>9} {'ratio':>7}")
        pair = ways(options, loaded, activated=activated)
        for repetition in range(options.repetitions + 1):
            for way in pair:
                start = time.perf_counter()
                way.play()
                if repetition:
                    way.seconds.append(time.perf_counter() - start)
        for way in pair:
            ratio = min(pair[0].seconds) / min(way.seconds)
            median = statistics.median(way.seconds)
            print(f"{way.name:40} {min(way.seconds):9.3f} {median:9.3f} {ratio:7.2f}", flush=True)
            found[way.name] = way.seconds
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
        print(f"written to {options.json}")


def _size(options: argparse.Namespace) -> str:
    return (
        f"{options.episodes} episodes, {options.agents} agents, {options.rounds} rounds, "
        f"{options.new_tokens} new tokens"
    )
