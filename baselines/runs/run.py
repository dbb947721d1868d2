"""One training run: rollouts, updates and evaluations of one arm on one environment with one seed.

The run is a function of its RunConfig: problems, sampling, adapters and critic have random streams of their own, and
two arms with the same seed meet the same problems in the same order and sample with the same uniform numbers. A batch
depends on (seed, update) alone, so the update's number is all there is to know about where the data stands.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import marft_envs
from baselines.engine.torch_engine import TorchEngine
from baselines.models.load import LoadedModel
from baselines.ppo.diagnostics import Timer
from baselines.ppo.learner import Learner
from baselines.runs.checkpoint import Checkpoint
from baselines.runs.evaluation import (
    EVALUATION,
    Row,
    cooperation,
    environment_of,
    evaluation_items,
    evaluation_row,
    heldout_runner,
    play_items,
)
from baselines.runs.message_statistics import message_statistics
from baselines.runs.reply_scores import progress, reply_scores
from baselines.runs.run_config import RunConfig
from baselines.runs.run_folder import RunFolder, check_folder
from baselines.runs.team_policy import TeamPolicy, TeamSampler
from baselines.trajectory import Batch, make_batch
from marft_envs.batch.runner import BatchRunner, Episode, Policy

ADAPTERS = "adapters"
_PROBLEMS, _SAMPLING, _ENVIRONMENT = 1, 2, 5  # names of the random streams under a seed
_PAD = 0  # a token of every vocabulary; nothing reads it


class Run:
    """A run in progress: the team's policy, its learner, and the environments. failures: a folder for the batch that
    stops a run whose loss is not finite."""

    def __init__(self, config: RunConfig, *, failures: Path | None = None) -> None:
        self.config = config
        play = environment_of(config)
        self.training = BatchRunner(
            marft_envs.make(config.environment, split="train", **play.environment_arguments), config.episodes
        )
        self.testing = heldout_runner(config)
        self.transfer = {name: heldout_runner(config, arguments) for name, arguments in config.transfer.items()}
        decoding = replace(config.decoding, max_new_tokens=play.max_new_tokens)
        self.policy = TeamPolicy(config, self.training.team.agents, decoding)
        self.learner = Learner(
            self.policy,
            config.learner(),
            temperature=config.decoding.temperature,
            seed=config.seed,
            rows=config.training_rows,
            failures=failures,
        )
        names = ("episodes", "not_graded", "truncated", "prompt_tokens", "generated_tokens", "trained_tokens")
        self.counts = dict.fromkeys(names, 0)

    @property
    def loaded(self) -> LoadedModel:
        """The model of the first agents."""
        return self.policy.groups[0].loaded

    @property
    def engine(self) -> TorchEngine:
        """The engine of the first agents."""
        return self.policy.groups[0].engine

    # ---- training

    def problems(self, update: int) -> np.ndarray:
        """The problem indices of an update: a function of (seed, update) alone, the same for every arm that plays as
        many problems. Where episodes are compared in groups there are fewer, each of them played several times."""
        size = self.training.task.size or 2**31
        count = self.config.problems_per_batch
        return np.random.default_rng([self.config.seed, _PROBLEMS, update]).integers(size, size=count)

    def rollout(self, update: int, sampler: Policy) -> list[Episode]:
        """The update's episodes; what the environment draws (a random order) is fixed by (seed, update), too."""
        generator = np.random.default_rng([self.config.seed, _ENVIRONMENT, update])
        return self.training.play(
            sampler,
            indices=self.problems(update).tolist(),
            groups=self.config.episodes // self.config.problems_per_batch,
            seeds=generator.integers(2**31, size=self.config.episodes).tolist(),
        )

    def train_once(self, update: int) -> Row:
        """One rollout and one update; its metrics."""
        start, watch = time.perf_counter(), Timer()
        cast = self.policy.cast((self.config.seed, _SAMPLING, update))
        with watch.measure("rollout"):
            episodes = self.rollout(update, cast)
        graded = [e for e in episodes if not e.not_graded]
        batch = self._batch([e for e in episodes if not e.not_graded or self._can_bootstrap(e)], cast)
        metrics: Row = {"skipped": "no graded episode", "agents": {}}
        if batch is not None:
            metrics = self.learner.update(batch)
        self._count(episodes, cast, metrics)
        metrics["messages"] = message_statistics(episodes, self.policy.agents)
        metrics["seconds"] = watch.seconds | metrics.get("seconds", {})
        reward = float(np.mean([e.score for e in graded])) if graded else None
        return {"update": update, "reward": reward, **self.counts, **metrics, "wall_s": time.perf_counter() - start}

    def _can_bootstrap(self, episode: Episode) -> bool:
        """Whether an outside limit has cut it and a critic can stand in for its score."""
        return episode.final_state is not None and bool(episode.steps) and self.learner.critic is not None

    def _batch(self, episodes: Sequence[Episode], cast: TeamSampler) -> Batch | None:
        """What is learned from; None where nothing is left."""
        task, scores = self.training.task, None
        if self.learner.config.reward == "maporl":
            scored = [(e, found) for e in episodes if (found := reply_scores(task, e)) is not None]
            self.counts["not_graded"] += len(episodes) - len(scored)  # a fault on a reply that was no answer
            episodes, scores = [e for e, _ in scored], [found for _, found in scored]
        if not episodes:
            return None
        labels = [progress(task, e) for e in episodes]
        known = [found for found in labels if found is not None]
        batch = make_batch(
            episodes,
            self.policy.agents,
            _PAD,
            labels=known if len(known) == len(episodes) else None,
            prompt=cast.prompt,
            reply_scores=scores,
        )
        if self.learner.config.critic_private:
            return batch
        public = make_batch([cast.public(e) for e in episodes], self.policy.agents, _PAD, prompt=cast.public_prompt)
        return replace(batch, critic_turns=public.turns, views=public.views)

    def _count(self, episodes: Sequence[Episode], cast: TeamSampler, metrics: Row) -> None:
        self.counts["episodes"] += len(episodes)
        self.counts["not_graded"] += sum(bool(e.not_graded) for e in episodes)
        self.counts["truncated"] += sum(bool(e.truncated) for e in episodes)
        self.counts["prompt_tokens"] += cast.prompt_tokens
        self.counts["generated_tokens"] += cast.generated_tokens
        self.counts["trained_tokens"] += metrics.pop("trained_tokens", 0)

    # ---- evaluation

    def evaluate(self, update: int, mode: str, runner: BatchRunner | None = None) -> Row:
        """The team on held-out problems, "greedy" or "sampled"; the same problems and uniforms at every update.
        runner: of a transfer data set; None: the task's own test split."""
        return self.evaluated(update, mode, runner)[0]

    def evaluated(self, update: int, mode: str, runner: BatchRunner | None = None) -> tuple[Row, list[Episode]]:
        """``evaluate``, and the episodes."""
        cast = self.policy.cast(None if mode == "greedy" else (self.config.seed, EVALUATION))
        own = runner is None
        runner = self.testing if runner is None else runner
        items = evaluation_items(runner, self.config.evaluation_items, self.config.seed)
        episodes = play_items(runner, cast, items)
        row = {"update": update, "mode": mode, **evaluation_row(episodes, self.policy.agents)}
        if own and self.config.cooperation and mode == "sampled":
            row["cooperation"] = cooperation(runner, cast, items, episodes, self.config.seed)
        return row, episodes

    # ---- to stop and to go on

    def save(self, folder: RunFolder, update: int) -> None:
        """A checkpoint of everything that the next update depends on."""
        files = {f"{ADAPTERS}/{path}": data for path, data in self.policy.files().items()}
        state = {"learner": self.learner.state_dict(), "counts": self.counts}
        limit = self.engine.decoding.max_new_tokens  # the arm's: ``single`` has the whole team's
        about = {"agents": self.policy.agents, "models": self.policy.models(), "max_new_tokens": limit}
        folder.save(update, files, state, about)

    def restore(self, folder: RunFolder) -> int:
        """Take over the folder's checkpoint, bit for bit. -> the update after which it was written; -1 without one."""
        if folder.checkpoint is None:
            return -1
        load_adapters(self.policy, folder.checkpoint)
        state = folder.state()
        self.learner.load_state_dict(state["learner"])
        self.counts = dict(state["counts"])
        return folder.checkpoint.update


def load_adapters(team: TeamPolicy, found: Checkpoint) -> None:
    """Every agent's weights from the checkpoint. ValueError if they belong to other bases."""
    for name, model in team.models().items():
        expected = found.manifest["models"].get(name, {"name": name, "sha256": "none"})
        if expected["sha256"] != model["sha256"]:
            raise ValueError(
                f"model {name!r} has weights {model['sha256'][:12]}, the checkpoint's adapters belong to "
                f"{expected['name']!r} {expected['sha256'][:12]}: expected the same base"
            )
    for agent, adapter in team.adapter_of.items():
        team.of(agent).weights.load(adapter, found.folder / ADAPTERS / adapter)


def train(
    config: RunConfig,
    on_row: Callable[[Row], None] | None = None,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
) -> Run:
    """Run ``config`` to its end. ``on_row`` gets every row as it is made, ``{"kind": "train" | "eval", ...}``.

    folder: keep rows, transcripts and checkpoints there (``run_folder.py``); the run then goes on after a kill with
    ``resume=True``, on the same numbers; rows that are in the file already are neither made nor told again. A folder
    that is new or empty is begun in either case. Raises ValueError for another configuration's folder, CheckpointError
    for a full disk, NonFiniteLoss after too many updates without a finite loss.
    """
    with contextlib.ExitStack() as stack:
        if folder is not None:
            check_folder(folder, config, resume=resume)
        run = Run(config, failures=None if folder is None else Path(folder))  # a wrong setting leaves no folder behind
        store, done = None, -1
        if folder is not None:
            store = stack.enter_context(contextlib.closing(RunFolder(folder, config, resume=resume)))
            done = run.restore(store)
            store.begin(run.policy.models())
        for update in range(done + 1, config.updates + 1):
            for row in _rows(run, update, store):
                if store:
                    store.write(row)
                if on_row:
                    on_row(row)
            if store and (update % config.checkpoint_every == 0 or update == config.updates):
                run.save(store, update)
    return run


def _rows(run: Run, update: int, store: RunFolder | None) -> Iterator[Row]:
    """Train (update 0: not), then evaluate if it is due."""
    config = run.config
    learner = config.learner()
    rate = None if learner.update == "none" else learner.learning_rate
    label = {"arm": config.arm, "task": config.task, "seed": config.seed, "learning_rate": rate}
    if update:
        yield {"kind": "train", **label, **run.train_once(update)}
    at_an_end = update in (0, config.updates)
    if update % config.evaluate_every and not at_an_end:
        return
    for mode in ("greedy", "sampled"):
        row, episodes = run.evaluated(update, mode)
        if store and mode == "sampled" and config.transcripts:
            store.record(update, run.testing.envs[0], episodes[: config.transcripts])
        yield {"kind": "eval", **label, **row}
        for name, runner in run.transfer.items() if at_an_end else ():
            row = run.evaluate(update, mode, runner)
            yield {"kind": "eval", **label, "task": f"{name} (trained on {config.task})", **row}
