"""One training run: rollouts, updates and evaluations of one arm on one environment with one seed.

A run is a function of its RunConfig. Problems, sampling, environment, adapters and critic each have a random stream of
their own, so two arms with the same seed play the same problems in the same order and sample with the same uniform
numbers. A batch depends on (seed, update) alone; a resumed run needs to know no more than the update.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from baselines.engine.torch_engine import TorchEngine
from baselines.models.load import LoadedModel
from baselines.policies.micro_batches import GIB
from baselines.policies.policy import prompts_kept
from baselines.policies.prompt_store import STORE_SHARE
from baselines.ppo.diagnostics import Timer
from baselines.ppo.learner import Learner
from baselines.runs.checkpoint import Checkpoint
from baselines.runs.device_memory import out_of_memory_is_reported
from baselines.runs.dry_run import check_before_loading
from baselines.runs.evaluation import (
    EVALUATION,
    Row,
    cooperation,
    environment_of,
    evaluation_items,
    evaluation_row,
    heldout_runner,
    make_environment,
    play_items,
)
from baselines.runs.memory_plan import plan_of_team
from baselines.runs.message_statistics import message_statistics
from baselines.runs.run_config import RunConfig
from baselines.runs.run_folder import RunFolder, check_folder
from baselines.runs.team_policy import TeamPolicy, TeamSampler, check_team
from baselines.runs.training_batch import training_batch
from baselines.runs.transcripts import turn_credit, turn_entries
from baselines.trajectory import Batch
from marft_envs.batch import BatchRunner, Episode, Policy

log = logging.getLogger("baselines")

ADAPTERS = "adapters"
_PROBLEMS, _SAMPLING, _ENVIRONMENT = 1, 2, 5  # keys of the random streams under a seed


class Run:
    """A run in progress: the team's policy, its learner and its environments.

    Args:
        config: Configuration of the run.
        failures: Folder for the batch that stops a run whose loss is not finite; None saves nothing.

    Attributes:
        environment_arguments: The arguments of the environment without the split, as the arm plays it.
        policy: The policy of the team.
        learner: Its learner.
        memory: Its memory plan, which decides the passes of an update.
        training: Runner of the training split.
        testing: Runner of the test split.
        transfer: Runners of further data sets, by name.
        counts: Totals over all updates: episodes, not_graded, truncated, and prompt, generated and trained tokens.

    Raises:
        ValueError: A setting is invalid for the environment, team or model.
    """

    def __init__(self, config: RunConfig, *, failures: Path | None = None) -> None:
        self.config = config
        setting = environment_of(config)
        self.environment_arguments = setting.environment_arguments
        self.training = BatchRunner(
            make_environment(config.environment, "train", setting.environment_arguments), config.episodes
        )
        self.testing = heldout_runner(config)
        self.transfer = {name: heldout_runner(config, arguments) for name, arguments in config.transfer.items()}
        decoding = replace(config.decoding, max_new_tokens=setting.max_new_tokens)
        agents, rounds = self.training.team.agents, self.training.envs[0].rounds
        check_team(config, agents)
        check_before_loading(replace(config, decoding=decoding), agents, rounds)
        self.policy = TeamPolicy(config, agents, decoding)
        for line in self.policy.placement:
            log.info("%s", line)
        self.memory = plan_of_team(replace(config, decoding=decoding), self.policy, rounds)
        self.memory.check()
        self.learner = Learner(
            self.policy,
            config.learner(),
            temperature=config.decoding.temperature,
            seed=config.seed,
            limits=self.memory.limits,
            failures=failures,
        )
        names = ("episodes", "not_graded", "truncated", "prompt_tokens", "generated_tokens", "trained_tokens")
        self.counts = dict.fromkeys(names, 0)

    @property
    def loaded(self) -> LoadedModel:
        """The base model of the first agent."""
        return self.policy.groups[0].loaded

    @property
    def engine(self) -> TorchEngine:
        """The generation engine of the first agent."""
        return self.policy.groups[0].engine

    # ---- training

    def problems(self, update: int) -> np.ndarray:
        """Return the problem indices of an update, which depend on (seed, update) alone.

        An arm that compares episodes in groups draws fewer problems and plays each of them several times.
        """
        size = self.training.task.size or 2**31
        count = self.config.problems_per_batch
        return np.random.default_rng([self.config.seed, _PROBLEMS, update]).integers(size, size=count)

    def rollout(self, update: int, sampler: Policy) -> list[Episode]:
        """Play the update's episodes. The environment's random choices depend on (seed, update), too."""
        generator = np.random.default_rng([self.config.seed, _ENVIRONMENT, update])
        return self.training.play(
            sampler,
            indices=self.problems(update).tolist(),
            groups=self.config.episodes // self.config.problems_per_batch,
            seeds=generator.integers(2**31, size=self.config.episodes).tolist(),
        )

    def sample(self, update: int) -> tuple[list[Episode], TeamSampler]:
        """Play the update's episodes with the present policies. Return them and the sampler that played them."""
        sampler = self.policy.sampler((self.config.seed, _SAMPLING, update))
        with self._turns_kept():
            return self.rollout(update, sampler), sampler

    def _turns_kept(self) -> contextlib.AbstractContextManager[None]:
        """Store what the models read within the block, see ``prompts_kept``."""
        budget = int(self.learner.passes.budget * STORE_SHARE)
        return prompts_kept(self.policy, min(self.memory.stored_turns, budget))

    def train_once(self, update: int) -> Row:
        """Play one batch, update the policies, and return the metrics."""
        # An update of activated adapters reads the same prompts as the rollout.
        with self._turns_kept() if self.memory.base_tokens else contextlib.nullcontext():
            return self._train_once(update)

    def _train_once(self, update: int) -> Row:
        start, timer = time.perf_counter(), Timer()
        with timer.measure("rollout"):
            episodes, sampler = self.sample(update)
        graded = [e for e in episodes if not e.not_graded]
        batch = self.batch([e for e in episodes if not e.not_graded or self._can_bootstrap(e)], sampler)
        metrics: Row = {"skipped": "no graded episode", "agents": {}}
        if batch is not None:
            with out_of_memory_is_reported():
                metrics = self.learner.update(batch)
        self._count(episodes, sampler, metrics)
        metrics["messages"] = message_statistics(episodes, self.policy.agents)
        metrics["seconds"] = timer.seconds | metrics.get("seconds", {})
        reward = float(np.mean([e.score for e in graded])) if graded else None
        metrics["generation_out_of_memory"] = self.policy.out_of_memory
        return {"update": update, "reward": reward, **self.counts, **metrics, "wall_s": time.perf_counter() - start}

    def _can_bootstrap(self, episode: Episode) -> bool:
        """Return whether a limit truncated the episode and a critic can estimate its return."""
        return episode.final_state is not None and bool(episode.steps) and self.learner.critic is not None

    def batch(self, episodes: Sequence[Episode], sampler: TeamSampler) -> Batch | None:
        """Return the batch to learn from, on the policies' device; None if no episode is left.

        If every reply is scored (MAPoRL), an episode with a reply that the grader failed on is left out and counted.

        Args:
            episodes: Graded episodes, and truncated ones if a critic can estimate their returns.
            sampler: The sampler that played them.
        """
        batch = training_batch(episodes, sampler, self.training.task, self.learner)
        self.counts["not_graded"] += len(episodes) - (0 if batch is None else len(batch.score))
        return batch

    def _count(self, episodes: Sequence[Episode], sampler: TeamSampler, metrics: Row) -> None:
        self.counts["episodes"] += len(episodes)
        self.counts["not_graded"] += sum(bool(e.not_graded) for e in episodes)
        self.counts["truncated"] += sum(bool(e.truncated) for e in episodes)
        self.counts["prompt_tokens"] += sampler.prompt_tokens
        self.counts["generated_tokens"] += sampler.generated_tokens
        self.counts["trained_tokens"] += metrics.pop("trained_tokens", 0)

    # ---- evaluation

    def evaluate(self, update: int, mode: str, runner: BatchRunner | None = None) -> Row:
        """Evaluate the team on held-out problems and return the row.

        Every evaluation plays the same problems with the same uniform numbers.

        Args:
            update: The update after which it is evaluated; it is written to the row.
            mode: "greedy" or "sampled".
            runner: Runner of a transfer data set; None for the task's own test split.
        """
        return self.evaluated(update, mode, runner)[0]

    def evaluated(
        self, update: int, mode: str, runner: BatchRunner | None = None
    ) -> tuple[Row, list[Episode], TeamSampler]:
        """Evaluate as ``evaluate`` does, and return the row, the episodes and the sampler that played them."""
        sampler = self.policy.sampler(None if mode == "greedy" else (self.config.seed, EVALUATION))
        own = runner is None
        runner = self.testing if runner is None else runner
        items = evaluation_items(runner, self.config.evaluation_items, self.config.seed)
        with self._turns_kept():
            episodes = play_items(runner, sampler, items)
        row = {"update": update, "mode": mode, **evaluation_row(episodes, self.policy.agents)}
        if own and self.config.cooperation and mode == "sampled":
            row["cooperation"] = cooperation(runner, sampler, items, episodes, self.config.seed)
        row["generation_out_of_memory"] = self.policy.out_of_memory
        return row, episodes, sampler

    def record(self, store: RunFolder, notes: Row, episodes: Sequence[Episode], sampler: TeamSampler) -> None:
        """Write episodes of an evaluation as a transcript, with values and advantages once a critic is trained.

        Args:
            store: Folder of the run.
            notes: "update", "mode", "dataset" (a transfer data set; "" for the task's own) and "items".
            episodes: The episodes.
            sampler: The sampler that played them.
        """
        runner, arguments = self.testing, self.environment_arguments
        if notes["dataset"]:
            runner, other = self.transfer[notes["dataset"]], self.config.transfer[notes["dataset"]]
            arguments = environment_of(self.config, "test", other).environment_arguments
        scored = [e for e in episodes if not e.not_graded and e.steps]
        batch = training_batch(scored, sampler, runner.task, self.learner)
        credit = turn_credit(self.learner, batch) if batch is not None and len(batch.score) == len(scored) else None
        turns = turn_entries(episodes, sampler, credit)
        store.record(runner.envs[0], {"split": "test", **arguments}, notes, episodes, turns)

    # ---- checkpoints

    def save(self, folder: RunFolder, update: int) -> None:
        """Write a checkpoint of everything that the next update depends on."""
        files = {f"{ADAPTERS}/{path}": data for path, data in self.policy.files().items()}
        generation = self.policy.generation_state(self.memory.memory)
        state = {"learner": self.learner.state_dict(), "counts": self.counts, "generation": generation}
        limit = self.engine.decoding.max_new_tokens  # the arm's own: ``single`` has the limit of the whole team
        about = {"agents": self.policy.agents, "models": self.policy.models(), "max_new_tokens": limit}
        folder.save(update, files, state, about)

    def restore(self, folder: RunFolder) -> int:
        """Restore the state of the folder's checkpoint.

        Returns:
            The update after which the checkpoint was written; -1 without a checkpoint.
        """
        if folder.checkpoint is None:
            return -1
        load_adapters(self.policy, folder.checkpoint)
        state = folder.state()
        self.learner.load_state_dict(state["learner"])
        self.counts = dict(state["counts"])
        self.policy.load_generation_state(state["generation"], self.memory.memory)
        return folder.checkpoint.update


def load_adapters(team: TeamPolicy, found: Checkpoint) -> None:
    """Load every agent's weights from a checkpoint.

    Raises:
        ValueError: The checkpoint's adapters were trained on other base weights.
    """
    for name, model in team.models().items():
        expected = found.manifest["models"].get(name, {"name": name, "sha256": "none"})
        if expected["sha256"] != model["sha256"]:
            raise ValueError(
                f"base model {name!r} has weights with SHA-256 {model['sha256'][:12]}, but the checkpoint's adapters "
                f"were trained on {expected['name']!r} with {expected['sha256'][:12]}: expected the same base model"
            )
        for setting in ("dtype", "quantization"):
            before = expected.get(setting, model[setting])
            if before != model[setting]:
                log.warning("%s: the adapters were trained with %s %s, now %s", name, setting, before, model[setting])
    for agent, adapter in team.adapter_of.items():
        team.of(agent).weights.load(adapter, found.folder / ADAPTERS / adapter)


def train(
    config: RunConfig,
    on_row: Callable[[Row], None] | None = None,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    on_samples: Callable[[int, Sequence[Episode]], None] | None = None,
) -> Run:
    """Train a team as ``config`` describes it, and evaluate it on the way.

    Args:
        config: Configuration of the run.
        on_row: Called with every row as it is made. ``row["kind"]`` is "train" or "eval" (docs/reference/rows.md).
        folder: Folder for rows, transcripts and checkpoints (docs/training.md); None writes nothing.
        resume: Whether to continue the run that ``folder`` holds. Its further rows are those of a run without a stop,
            bit for bit on the same machine; rows that the file has already are neither made nor passed to ``on_row``.
            A new or empty folder starts from the beginning.
        on_samples: Called with the update and its first ``config.transcripts`` episodes after each sampled evaluation.

    Returns:
        The finished run, with ``policy`` and ``learner``.

    Raises:
        ValueError: A setting is invalid, the folder holds another run, or it holds this one and ``resume`` is False.
        CheckpointError: A file cannot be written, or no checkpoint can be used.
        NonFiniteLoss: Too many updates in a row had a loss that is not finite.
        KeyboardInterrupt: Ctrl-C. A note of the exception names the updates that are in no checkpoint.
    """
    with contextlib.ExitStack() as stack:
        if folder is not None:
            check_folder(folder, config, resume=resume)
        # the run before its folder: a wrong setting then leaves no folder behind
        run = Run(config, failures=None if folder is None else Path(folder))
        store, done = None, -1
        if folder is not None:
            store = stack.enter_context(contextlib.closing(RunFolder(folder, config, resume=resume)))
            done = run.restore(store)
            store.begin(run.policy.models(), run.memory.pass_budget / GIB)
        saved = trained = max(0, done)
        try:
            for update in range(done + 1, config.updates + 1):
                for row in _rows(run, update, store, on_samples):
                    trained = update
                    if store:
                        store.write(row)
                    if on_row:
                        on_row(row)
                if store and (update % config.checkpoint_every == 0 or update == config.updates):
                    run.save(store, update)
                    saved = update
        except KeyboardInterrupt as stop:
            if store and trained > saved:
                stop.add_note(_not_saved(saved + 1, trained))
            raise
    return run


def _not_saved(first: int, last: int) -> str:
    """Return what a stop says about the updates after the last checkpoint."""
    if first == last:
        return f"update {first} is in no checkpoint and will be trained again"
    return f"updates {first} to {last} are in no checkpoint and will be trained again"


def _rows(
    run: Run,
    update: int,
    store: RunFolder | None,
    on_samples: Callable[[int, Sequence[Episode]], None] | None,
) -> Iterator[Row]:
    """Train, except at update 0, then evaluate if it is due. Yield the rows."""
    config = run.config
    learner = config.learner()
    rate = None if learner.update == "none" else learner.learning_rate
    label = {"arm": config.arm, "task": config.task, "seed": config.seed, "learning_rate": rate}
    if update:
        yield {"kind": "train", **label, **run.train_once(update)}
    first_or_last = update in (0, config.updates)
    if update % config.evaluate_every and not first_or_last:
        return
    sets: dict[str, BatchRunner | None] = {"": None, **(run.transfer if first_or_last else {})}
    for mode in ("greedy", "sampled"):
        for name, runner in sets.items():
            row, episodes, sampler = run.evaluated(update, mode, runner)
            samples = episodes[: config.transcripts]
            if store and samples:
                notes = {"update": update, "mode": mode, "dataset": name, "items": len(episodes)}
                run.record(store, notes, samples, sampler)
            if on_samples and samples and mode == "sampled" and not name:
                on_samples(update, samples)
            yield {"kind": "eval", **label, **({"task": f"{name} (trained on {config.task})"} if name else {}), **row}
