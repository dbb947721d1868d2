"""Transcripts of evaluations: a sample of the episodes as a trace, with tokens, values and advantages of each turn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from baselines.critics.features import read_reference
from baselines.engine.replies import action_text
from baselines.policies.micro_batches import MemoryExhausted, MicroBatches
from baselines.ppo.credit import monte_carlo_returns
from baselines.ppo.learner import Learner
from baselines.runs.team_policy import TeamSampler
from baselines.trajectory import Batch, Generation
from marft_envs.batch import Episode, Step
from marft_envs.traces import Recorder

Row = dict[str, Any]
LIMIT_BYTES = 512 * 1024
"""Size of a transcript from which no further episode is written to it."""
GOLD_LIMIT = 16 * 1024
"""Number of characters from which a gold is left out, such as a long list of hidden tests."""
_DIGITS = 4


def file_name(notes: Mapping[str, Any]) -> str:
    """Return the name of a transcript, such as ``000005-sampled.jsonl`` or ``000030-greedy-gsm8k.jsonl``."""
    dataset = re.sub(r"[^A-Za-z0-9._]+", "_", notes["dataset"])
    return f"{notes['update']:06d}-{notes['mode']}{'-' * bool(dataset)}{dataset}.jsonl"


def write_transcript(
    path: Path,
    env: Any,
    arguments: Mapping[str, Any],
    notes: Mapping[str, Any],
    episodes: Sequence[Episode],
    turns: Iterator[list[Row]],
) -> None:
    """Write episodes to a new trace: the first one in any case, the others up to ``LIMIT_BYTES``.

    A gold of more than ``GOLD_LIMIT`` characters is left out.

    Args:
        path: The file.
        env: The environment that was played.
        arguments: The arguments that the environment was made with.
        notes: The entry ``notes`` of the trace's header.
        episodes: The episodes.
        turns: For each episode, the entries to add to each of its turns.
    """
    with Recorder(path, env, arguments=arguments, notes=notes, with_gold=True, observations=True) as recorder:
        for episode, added in zip(episodes, turns, strict=True):
            gold = episode.problem.gold if episode.problem else None
            recorder.with_gold = len(json.dumps(gold, default=repr)) <= GOLD_LIMIT
            recorder.record(episode, added=added)
            if path.stat().st_size >= LIMIT_BYTES:
                return


def turn_entries(
    episodes: Sequence[Episode], sampler: TeamSampler, credit: list[list[Row]] | None
) -> Iterator[list[Row]]:
    """Yield for each episode the entries of its turns.

    Args:
        episodes: The episodes.
        sampler: The sampler that played them.
        credit: Value and advantage of every turn of the episodes that have a score; None if they are unknown.
    """
    found = iter(credit or ())
    for episode in episodes:
        rows = next(found, None) if not episode.not_graded and episode.steps else None
        actions = sum(turn.kind != "result" for turn in episode.transcript)
        steps = episode.steps if len(episode.steps) == actions else []  # else it is unknown which turn a step is
        yield [{**token_entries(step, sampler), **(rows[k] if rows else {})} for k, step in enumerate(steps)]


def token_entries(step: Step, sampler: TeamSampler) -> Row:
    """Return the tokens of an action as text, and their log-probabilities; nothing for an agent without a model."""
    generation, agent = step.data, step.request.agent
    if agent in sampler.scripts or not isinstance(generation, Generation):
        return {}
    tokenizer = sampler.samplers[agent].loaded.tokenizer
    ids, texts = [*generation.prompt_ids, *generation.action_ids], []
    for position in range(len(generation.prompt_ids), len(ids)):
        text = action_text(tokenizer, ids[:position][-16:], ids[position : position + 1])
        texts.append(text or str(tokenizer.convert_ids_to_tokens(ids[position])))
    return {"tokens": texts, "logprobs": [round(value, _DIGITS) for value in generation.logprobs]}


@torch.no_grad()
def turn_credit(learner: Learner, batch: Batch) -> list[list[Row]] | None:
    """Return the value before each turn and its advantage, as the learner's critic estimates them.

    Nothing is trained, and the learner's state stays as it is. The advantage is the arm's raw one: before whitening,
    and without a KL penalty in the reward.

    Args:
        learner: The learner.
        batch: Episodes with a score, in which each is a row [K, U] of decisions.

    Returns:
        For each episode and turn ``value`` and ``advantage``: a number, or a list of one per token where every token is
        a decision. None if there is no critic, if it is not trained yet, or if the memory does not hold its inputs.
    """
    critic = learner.critic
    if critic is None or not critic.started:
        return None
    passes = MicroBatches(learner.passes.limits)  # of its own: an out-of-memory error here must not change training
    passes.budget = learner.passes.budget
    try:
        features, _ = passes.repeat(
            lambda: read_reference(
                learner.policy, batch, learner.config, monte_carlo_returns(batch, learner.config),
                learner.temperature, passes,
            )
        )  # fmt: skip
    except MemoryExhausted:
        return None
    values = critic.values(features)
    nothing, end = torch.zeros_like(values), torch.zeros_like(batch.round_score)
    advantages, _ = learner.advantages(batch, features.decisions, values, nothing, critic.lam_in(), end)
    lengths = batch.mask.sum(-1).tolist()
    return [
        [_credit_of_turn(values[b, k], advantages[b, k], features.decisions[b, k]) for k in range(length)]
        for b, length in enumerate(lengths)
    ]


def _credit_of_turn(values: Tensor, advantages: Tensor, decisions: Tensor) -> Row:
    """Return the entries of one turn from tensors [U]."""
    found = {}
    for name, tensor in (("value", values), ("advantage", advantages)):
        numbers = [round(number, _DIGITS) for number in tensor[decisions].tolist()]
        found[name] = numbers if len(decisions) > 1 else numbers[0]
    return found
