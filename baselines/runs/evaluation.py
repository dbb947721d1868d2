"""Evaluating a team on held-out problems: which ones, playing them, and what is told of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import marft_envs
from baselines.ladder import SINGLE, ArmEnvironment, arm_environment
from baselines.runs.message_statistics import Shuffled, message_statistics, speakers
from baselines.runs.run_config import RunConfig
from marft_envs.batch.runner import BatchRunner, Episode, Policy
from marft_envs.verdict import Outcome

Row = dict[str, Any]
EVALUATION = 3  # names the random stream
_BLOCK = 256


def environment_of(
    config: RunConfig, split: str = "train", arguments: Mapping[str, Any] | None = None
) -> ArmEnvironment:
    """What the run's arm plays, on its own task or with the ``arguments`` of a transfer data set; ``single`` plays
    alone, with the whole team's budget of tokens.

    split: the one that is opened to count the team's agents. ValueError where the problem is told in private parts, of
    which one agent alone would get but one.
    """
    arguments = config.environment_arguments if arguments is None else arguments
    env = marft_envs.make(config.environment, split=split, **arguments).unwrapped
    if config.arm == SINGLE and len(env.team.agents) > 1 and env.task.problem(0).private:
        task = config.task if arguments is config.environment_arguments else arguments.get("dataset", config.task)
        raise ValueError(f"arm={SINGLE!r} on {task}: each agent holds a part of the problem; expected a public one")
    return arm_environment(config.arm, arguments, len(env.team.agents), config.decoding.max_new_tokens)


def heldout_runner(config: RunConfig, arguments: Mapping[str, Any] | None = None) -> BatchRunner:
    """The test split as the run's arm plays it: of its own task, or with the ``arguments`` of a transfer data set. No
    other split is opened, so data sets that are for tests alone can be evaluated:

        runner = heldout_runner(config)
        team = TeamPolicy(config, runner.team.agents, config.decoding)        # untrained; or load_team(folder).policy
        episodes = play_items(runner, team.cast(None), evaluation_items(runner, config.evaluation_items, config.seed))
        row = evaluation_row(episodes, runner.team.agents)

    Raises ValueError as ``environment_of`` and ``marft_envs.make`` do, DataError for data that cannot be read.
    """
    play = environment_of(config, "test", arguments)
    env = marft_envs.make(config.environment, split="test", **play.environment_arguments)
    return BatchRunner(env, min(config.evaluation_items, _BLOCK))


def evaluation_items(runner: BatchRunner, count: int, seed: int) -> list[int]:
    """The problems of an evaluation, fixed by (task, seed): drawn from the seed where the task has no end, so that the
    interval over seeds covers the choice of problems, too; the first ``count`` of a data set."""
    size = runner.task.size
    if size is not None:
        return list(range(min(count, size)))
    return np.random.default_rng([seed, EVALUATION]).integers(2**31, size=count).tolist()


def play_items(runner: BatchRunner, policy: Policy, items: Sequence[int]) -> list[Episode]:
    """One episode for each problem, in blocks of the runner's size; an environment draws from the problem's index."""
    block = len(runner.envs)
    return [
        episode
        for start in range(0, len(items), block)
        for episode in runner.play(
            policy, indices=items[start : start + block], seeds=[i % 2**31 for i in items[start : start + block]]
        )
    ]


def score_items(episodes: Sequence[Episode]) -> Row:
    """Accuracy over graded items, with every item's score; episodes that were not graded are counted apart. answers:
    texts with a verdict, several an item where several agents answer; no_answer counts among them."""
    graded = [e for e in episodes if not e.not_graded]
    verdicts = [v.outcome for e in graded if e.outcome for v in e.outcome.verdicts.values()]
    return {
        "accuracy": float(np.mean([e.score for e in graded])) if graded else None,
        "n": len(graded),
        "answers": len(verdicts),
        "no_answer": sum(v is Outcome.NO_ANSWER for v in verdicts),
        "not_graded": len(episodes) - len(graded),
        "item_index": [e.index for e in graded],
        "item_score": [e.score for e in graded],
    }


def evaluation_row(episodes: Sequence[Episode], agents: Sequence[str]) -> Row:
    """``score_items``, and what the agents said to each other."""
    return {**score_items(episodes), "messages": message_statistics(episodes, agents)}


def cooperation(
    runner: BatchRunner, policy: Policy, items: Sequence[int], played: Sequence[Episode], seed: int
) -> dict[str, dict[str, float | None]]:
    """How much the team's score falls when one speaker's messages are shuffled between episodes, for each speaker.

    played: the same policy's episodes on the same items, unshuffled. ``drop`` near 0: the others would do as well
    without what this agent says. ``unmoved``: share of its messages that had no other episode to go to.
    """
    before = score_items(played)["accuracy"]
    report: dict[str, dict[str, float | None]] = {}
    for speaker in speakers(played):
        shuffled = Shuffled(policy, speaker, seed)
        after = score_items(play_items(runner, shuffled, items))["accuracy"]
        report[speaker] = {
            "accuracy": after,
            "drop": None if before is None or after is None else before - after,
            "unmoved": shuffled.kept / max(1, shuffled.moved + shuffled.kept),
        }
    return report
