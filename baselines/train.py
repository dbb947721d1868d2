"""One training run: rollouts, updates and evaluations of one arm on one environment with one seed.

The run is a function of its RunConfig: problems, sampling, adapters and critic have random streams of their own, and
two arms with the same seed meet the same problems in the same order and sample with the same uniform numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

import marft_envs
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.ladder import LearnerConfig, arm
from baselines.learner import Learner, Stopwatch
from baselines.models import load_model
from baselines.policy import LoraSettings, TeamPolicy
from baselines.rollout import TeamSampler
from baselines.trajectory import make_batch
from marft_envs.batch import BatchRunner, Episode
from marft_envs.verdict import Outcome

Row = dict[str, Any]
_PROBLEMS, _SAMPLING, _EVALUATION = 1, 2, 3
_EVALUATION_BLOCK = 256


@dataclass(frozen=True)
class RunConfig:
    """What one run is made of. task: the name under which its rows are filed.

    environment, environment_arguments: ``marft_envs.make(environment, **arguments, split=...)``; training uses split
    "train", evaluation "test". settings: LearnerConfig fields that differ from the arm's. evaluate_every: in updates;
    update 0 and the last are always evaluated. evaluation_items: how many problems of the test split. transfer: other
    data sets, by name, with their environment arguments; the team is evaluated on them before and after training.
    """

    arm: str
    task: str
    environment: str = "math_v0"
    environment_arguments: Mapping[str, Any] = field(default_factory=dict)
    model: str = "tiny"
    allow_wheel: bool = False
    seed: int = 0
    updates: int = 30
    episodes: int = 128
    evaluate_every: int = 5
    evaluation_items: int = 512
    transfer: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    lora: LoraSettings = field(default_factory=LoraSettings)
    decoding: Decoding = field(default_factory=Decoding)
    training_rows: int = 128

    def __post_init__(self) -> None:
        for name in ("episodes", "evaluate_every", "evaluation_items", "training_rows"):
            if getattr(self, name) < 1:
                raise ValueError(f"RunConfig {name}={getattr(self, name)!r}: expected at least 1")
        for name in ("updates", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"RunConfig {name}={getattr(self, name)!r}: expected at least 0")
        marft_envs.registry.environment_module(self.environment)
        self.learner()

    def learner(self) -> LearnerConfig:
        """The arm with this run's settings."""
        return arm(self.arm).with_settings(dict(self.settings))

    def resolved(self) -> dict[str, Any]:
        """Everything, the learner's fields written out, as JSON-able values."""
        return {**asdict(self), "learner": asdict(self.learner())}


class Run:
    """A run in progress: the team's policy, its learner, and the two environments."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.loaded = load_model(config.model, allow_wheel=config.allow_wheel)
        self.training = BatchRunner(
            marft_envs.make(config.environment, split="train", **config.environment_arguments), config.episodes
        )
        self.testing = self._test_runner(config.environment_arguments)
        self.transfer = {name: self._test_runner(arguments) for name, arguments in config.transfer.items()}
        self.policy = TeamPolicy(self.loaded.model, self.training.team.agents, config.lora, config.seed)
        self.learner = Learner(
            self.policy,
            config.learner(),
            temperature=config.decoding.temperature,
            seed=config.seed,
            rows=config.training_rows,
        )
        self.engine = TorchEngine(self.policy, self.loaded.tokenizer, config.decoding)
        self.counts = {"episodes": 0, "not_graded": 0, "prompt_tokens": 0, "generated_tokens": 0, "trained_tokens": 0}

    def _test_runner(self, arguments: Mapping[str, Any]) -> BatchRunner:
        env = marft_envs.make(self.config.environment, split="test", **arguments)
        return BatchRunner(env, min(self.config.evaluation_items, _EVALUATION_BLOCK))

    def problems(self, update: int) -> np.ndarray:
        """The problem indices of an update: a function of (seed, update) alone, the same for every arm."""
        size = self.training.task.size or 2**31
        return np.random.default_rng([self.config.seed, _PROBLEMS, update]).integers(size, size=self.config.episodes)

    def train_once(self, update: int) -> Row:
        """One rollout and one update; its metrics."""
        start, watch = time.perf_counter(), Stopwatch()
        sampler = TeamSampler(self.engine, self.loaded, (self.config.seed, _SAMPLING, update))
        with watch.measure("rollout"):
            episodes = self.training.play(sampler, indices=self.problems(update).tolist())
        graded = [e for e in episodes if not e.not_graded]
        metrics: Row = {"skipped": "no graded episode", "agents": {}}
        if graded:
            pad = self.loaded.tokenizer.pad_token_id
            metrics = self.learner.update(make_batch(graded, self.policy.agents, 0 if pad is None else pad))
        self._count(episodes, sampler, metrics)
        metrics["seconds"] = watch.seconds | metrics.get("seconds", {})
        reward = float(np.mean([e.score for e in graded])) if graded else None
        return {"update": update, "reward": reward, **self.counts, **metrics, "wall_s": time.perf_counter() - start}

    def _count(self, episodes: Sequence[Episode], sampler: TeamSampler, metrics: Row) -> None:
        self.counts["episodes"] += len(episodes)
        self.counts["not_graded"] += sum(bool(e.not_graded) for e in episodes)
        self.counts["prompt_tokens"] += sampler.prompt_tokens
        self.counts["generated_tokens"] += sampler.generated_tokens
        self.counts["trained_tokens"] += metrics.pop("trained_tokens", 0)

    def evaluate(self, update: int, mode: str, runner: BatchRunner | None = None) -> Row:
        """The team on held-out problems, "greedy" or "sampled"; the same problems and uniforms at every update.
        runner: of a transfer data set; None: the task's own test split."""
        stream = None if mode == "greedy" else (self.config.seed, _EVALUATION)
        sampler = TeamSampler(self.engine, self.loaded, stream)
        runner = runner or self.testing
        items = evaluation_items(runner, self.config.evaluation_items, self.config.seed)
        episodes = play_items(runner, sampler, items)
        return {"update": update, "mode": mode, **score_items(episodes)}


def evaluation_items(runner: BatchRunner, count: int, seed: int) -> list[int]:
    """The problems of an evaluation, fixed by (task, seed): drawn from the seed where the task has no end, so that the
    interval over seeds covers the choice of problems, too; the first ``count`` of a data set."""
    size = runner.task.size
    if size is not None:
        return list(range(min(count, size)))
    return np.random.default_rng([seed, _EVALUATION]).integers(2**31, size=count).tolist()


def play_items(runner: BatchRunner, sampler: TeamSampler, items: Sequence[int]) -> list[Episode]:
    """One episode for each problem, in blocks of the runner's size."""
    block = len(runner.envs)
    return [
        episode
        for start in range(0, len(items), block)
        for episode in runner.play(sampler, indices=items[start : start + block])
    ]


def score_items(episodes: Sequence[Episode]) -> Row:
    """Accuracy over graded items, with every item's score; episodes that were not graded are counted apart."""
    graded = [e for e in episodes if not e.not_graded]
    verdicts = [v.outcome for e in graded if e.outcome for v in e.outcome.verdicts.values()]
    return {
        "accuracy": float(np.mean([e.score for e in graded])) if graded else None,
        "n": len(graded),
        "no_answer": sum(v is Outcome.NO_ANSWER for v in verdicts),
        "not_graded": len(episodes) - len(graded),
        "item_index": [e.index for e in graded],
        "item_score": [e.score for e in graded],
    }


def train(config: RunConfig, on_row: Callable[[Row], None]) -> Run:
    """Run ``config`` to its end. ``on_row`` gets every row as it is made, ``{"kind": "train" | "eval", ...}``."""
    run = Run(config)
    label = {"arm": config.arm, "task": config.task, "seed": config.seed}

    def evaluate(update: int) -> None:
        for mode in ("greedy", "sampled"):
            on_row({"kind": "eval", **label, **run.evaluate(update, mode)})
            if update in (0, config.updates):
                for name, runner in run.transfer.items():
                    row = run.evaluate(update, mode, runner)
                    on_row({"kind": "eval", **label, "task": f"{name} (trained on {config.task})", **row})

    evaluate(0)
    for update in range(1, config.updates + 1):
        on_row({"kind": "train", **label, **run.train_once(update)})
        if update % config.evaluate_every == 0 or update == config.updates:
            evaluate(update)
    return run
