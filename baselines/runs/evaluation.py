"""Evaluation of a team on held-out problems: choice of problems, episodes, and the row of results."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

import marft_envs
from baselines.ladder import SINGLE, ArmEnvironment, arm_environment
from baselines.runs.message_statistics import Shuffled, ignored, message_statistics, speakers
from baselines.runs.run_config import RunConfig
from marft_envs.batch import BatchRunner, Episode, Policy
from marft_envs.verdict import Outcome

Row = dict[str, Any]
EVALUATION = 3  # key of the random stream under a seed
PLAYED_TOGETHER = 256
"""Largest number of an evaluation's episodes that are played together."""


def make_environment(name: str, split: str, arguments: Mapping[str, Any]) -> Any:
    """Make an environment on one split of its problems.

    Args:
        name: Name of the environment, as ``marft_envs.make`` takes it.
        split: "train" or "test".
        arguments: Its other arguments.

    Returns:
        The PettingZoo environment.

    Raises:
        ValueError: The environment has no argument ``split``, or see ``marft_envs.make``.
    """
    parameters = inspect.signature(marft_envs.registry.environment_module(name).env).parameters
    # the environments with a choice of data sets take further arguments, and every data set has a split
    if "split" not in parameters and all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        raise ValueError(
            f"training and evaluation need an environment with the argument split ('train' and 'test'); {name} has "
            "none: expected it among the arguments of the task's constructor"
        )
    if "split" in arguments:
        raise ValueError(
            f"environment argument split={arguments['split']!r}: expected no split, which is set to 'train' and 'test'"
        )
    return marft_envs.make(name, split=split, **arguments)


def environment_of(
    config: RunConfig, split: str = "train", arguments: Mapping[str, Any] | None = None
) -> ArmEnvironment:
    """Return the environment arguments and token limit of the run's arm.

    Most arms play the environment of the configuration. The arm ``single`` plays it with one agent, which has the token
    limit of the whole team.

    Args:
        config: Configuration of the run.
        split: The split to open in order to count the team's agents.
        arguments: Environment arguments of a transfer data set; None for the run's own.

    Raises:
        ValueError: The arm is ``single`` and the problem has private parts, of which one agent would get only one.
    """
    arguments = config.environment_arguments if arguments is None else arguments
    env = make_environment(config.environment, split, arguments).unwrapped
    if config.arm == SINGLE and len(env.team.agents) > 1 and env.task.problem(0).private:
        task = config.task if arguments is config.environment_arguments else arguments.get("dataset", config.task)
        raise ValueError(
            f"arm={SINGLE!r} on {task}: each agent has a private part of the problem, and a single agent would get "
            "only one of them; expected a task whose problem is public"
        )
    return arm_environment(config.arm, arguments, len(env.team.agents), config.decoding.max_new_tokens)


def heldout_runner(config: RunConfig, arguments: Mapping[str, Any] | None = None) -> BatchRunner:
    """Return a runner of the test split as the run's arm plays it.

    Only the test split is opened, so data sets without a training split can be evaluated:

        runner = heldout_runner(config)
        team = TeamPolicy(config, runner.team.agents, config.decoding)  # untrained; load_team(folder).policy is trained
        items = evaluation_items(runner, config.evaluation_items, config.seed)
        row = evaluation_row(play_items(runner, team.sampler(None), items), runner.team.agents)

    Args:
        config: Configuration of the run.
        arguments: Environment arguments of a transfer data set; None for the run's own.

    Raises:
        ValueError: See ``environment_of`` and ``marft_envs.make``.
        DataError: The data cannot be read.
    """
    setting = environment_of(config, "test", arguments)
    env = make_environment(config.environment, "test", setting.environment_arguments)
    return BatchRunner(env, min(config.evaluation_items, PLAYED_TOGETHER))


def evaluation_items(runner: BatchRunner, count: int, seed: int) -> list[int]:
    """Return the indices of an evaluation's problems, which depend on the task and the seed alone.

    A finite data set gives its first ``count`` problems. A generated task gives problems drawn from the seed, so that
    an interval over seeds includes the choice of problems.
    """
    size = runner.task.size
    if size is not None:
        return list(range(min(count, size)))
    return np.random.default_rng([seed, EVALUATION]).integers(2**31, size=count).tolist()


def play_items(runner: BatchRunner, policy: Policy, items: Sequence[int]) -> list[Episode]:
    """Play one episode on each problem.

    Args:
        runner: Runner of the environment; its size is the number of episodes played together.
        policy: The policy to evaluate.
        items: Indices of the problems. The environment is seeded by the index, so its random choices are the same in
            every evaluation.

    Returns:
        The episodes in the order of ``items``.
    """
    block = len(runner.envs)
    return [
        episode
        for start in range(0, len(items), block)
        for episode in runner.play(
            policy, indices=items[start : start + block], seeds=[i % 2**31 for i in items[start : start + block]]
        )
    ]


def score_items(episodes: Sequence[Episode]) -> Row:
    """Return accuracy and counts of an evaluation.

    Returns:
        A mapping of

        * ``accuracy``: mean score of the graded episodes; None without one,
        * ``n``: number of graded episodes,
        * ``answers``: number of graded answers, several per episode if several agents answer,
        * ``no_answer``: how many of them contained no answer,
        * ``not_graded``: number of episodes that were not graded, which ``accuracy`` excludes,
        * ``item_index`` and ``item_score``: problem and score of each graded episode.
    """
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


def item_interval(scores: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of the mean of item scores in [0, 1]; it is about this team on other items.

    A partial score counts as a fraction of a success. Reports compute theirs in ``benchmarks/analysis/intervals.py``,
    which knows nothing of this package; a test compares the two.

    Source: Wilson 1927, "Probable inference, the law of succession, and statistical inference".

    Args:
        scores: Item scores, [I], at least one.
        confidence: Coverage of the interval.

    Returns:
        Lower and upper end.
    """
    z, count, mean = NormalDist().inv_cdf(0.5 + confidence / 2), len(scores), float(np.mean(scores))
    scale = 1 + z * z / count
    centre = (mean + z * z / (2 * count)) / scale
    half = z / scale * math.sqrt(mean * (1 - mean) / count + z * z / (4 * count * count))
    return max(0.0, centre - half), min(1.0, centre + half)


def evaluation_row(episodes: Sequence[Episode], agents: Sequence[str]) -> Row:
    """Return ``score_items`` together with ``message_statistics``."""
    return {**score_items(episodes), "messages": message_statistics(episodes, agents)}


def cooperation(
    runner: BatchRunner, policy: Policy, items: Sequence[int], played: Sequence[Episode], seed: int
) -> dict[str, dict[str, float | None]]:
    """Measure how much the team's score depends on the messages of each speaker.

    Args:
        runner: Runner of the environment.
        policy: The policy to evaluate.
        items: Indices of the problems.
        played: Episodes of the same policy on the same problems, without shuffling.
        seed: Seed of the shuffling.

    Returns:
        For each speaker a mapping of

        * ``accuracy``: mean score with the speaker's messages shuffled between episodes,
        * ``drop``: unshuffled minus shuffled accuracy; near 0, the readers do as well without the messages,
        * ``unmoved``: share of the speaker's messages that no other episode could take,
        * ``ignored``: share of the episodes that read another text of the speaker in which every reply stayed the same;
          only if there is such an episode.
    """
    before = score_items(played)["accuracy"]
    report: dict[str, dict[str, float | None]] = {}
    for speaker in speakers(played):
        shuffled = Shuffled(policy, speaker, seed)
        episodes = play_items(runner, shuffled, items)
        after, same = score_items(episodes)["accuracy"], ignored(played, episodes, shuffled.changed)
        report[speaker] = {
            "accuracy": after,
            "drop": None if before is None or after is None else before - after,
            "unmoved": shuffled.unmoved / max(1, shuffled.moved + shuffled.unmoved),
            **({} if same is None else {"ignored": same}),
        }
    return report
