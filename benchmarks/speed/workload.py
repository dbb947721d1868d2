"""The work that is timed: the prompts of a real team, LoRA adapters with random weights, and a batch to train on.

Every side of a comparison reads the same prompts, generates the same number of tokens for each, and trains the same
turns. Prompts are those of the agents of ``math_v0`` that report the value of an expression each.

Axes: E episodes, N agents, T new tokens of an action.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

import marft_envs
from baselines.engine.chat_template import ChatSettings
from baselines.engine.invocation import base_tokens, invocation_ids
from baselines.engine.prompts import Prompt, make_prompt
from baselines.models.load import LoadedModel
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.trajectory import Batch, Generation, make_batch
from benchmarks.speed.comparison import Cell
from marft_envs import Role
from marft_envs.batch import BatchRunner, Episode, Reply, Request
from marft_envs.mathematics.teams import panel

LONG_TOKENS = 300
"""Tokens that a "long" prompt has at least, unless the model's context is shorter."""
ADAPTER_STD = 0.01
_SEED = 0
_SENTENCES = (
    "You are a careful member of a team.",
    "Work on your own section only, and do not guess what the others write.",
    "Compute in small steps and check each of them before you go on to the next one.",
    "Read the numbers and the operation words twice: plus adds, minus subtracts, and times multiplies.",
    "If a result is negative, write the minus sign directly before the number.",
    "Do not explain your answer, do not repeat the question, and do not add units or punctuation.",
)


@dataclass(frozen=True)
class Workload:
    """The work of one cell.

    Attributes:
        cell: Its size.
        prompts: Agent -> token ids of its E prompts.
        batch: The E episodes with N actions of T random tokens, on the model's device, to train on.
    """

    cell: Cell
    prompts: dict[str, list[tuple[int, ...]]]
    batch: Batch


def agents_of(count: int) -> list[str]:
    """Return the names of the agents of a team of a size."""
    return list(panel(count, Role(answers=True))().agents)


def make_policy(loaded: LoadedModel, agents: Sequence[str], *, activated: bool = False) -> SharedBasePolicy:
    """Return policies whose adapters have random weights that are not zero.

    Args:
        loaded: The base model, which gets the adapters.
        agents: The agents; each has an adapter.
        activated: Whether the adapters are activated LoRA.
    """
    invocation = _invocation(loaded, len(agents)) if activated else ()
    policy = SharedBasePolicy(
        loaded.model, agents, LoraSettings(activated=activated), _SEED, invocation_ids=invocation
    )  # fmt: skip
    generator = torch.Generator().manual_seed(_SEED)
    with torch.no_grad():
        for agent in agents:
            for parameter in policy.adapter_parameters(agent):
                parameter.copy_(ADAPTER_STD * torch.randn(parameter.shape, generator=generator))
    return policy


def _invocation(loaded: LoadedModel, agents: int) -> tuple[int, ...]:
    """Return the token ids that activate adapters: the header of a reply, or the last token of a prompt without one."""
    try:
        return invocation_ids(loaded, "", ChatSettings())
    except ValueError:  # the chat template writes no header, as that of the tiny models
        work = make_workload(Cell(1, agents, "short", 1), loaded)
        return next(iter(work.prompts.values()))[0][-1:]


def make_workload(cell: Cell, loaded: LoadedModel) -> Workload:
    """Return the work of a cell for a model.

    Scores are random, because the random actions would all be wrong, and a batch of equal scores trains nothing.

    Args:
        cell: Its size.
        loaded: The model, whose tokenizer and chat template make the prompts.
    """
    env = marft_envs.math_v0.raw_env(
        dataset="report", style="words", team=panel(cell.agents, Role(answers=True))(), split="train"
    )
    generator = np.random.default_rng([_SEED, cell.episodes, cell.agents])
    vocabulary = loaded.model.get_input_embeddings().num_embeddings
    maker = PromptMaker(cell, loaded)

    def act(requests: list[Request]) -> list[Reply]:
        replies = []
        for request in requests:
            ids = maker.ids(request)
            action = tuple(generator.integers(vocabulary, size=cell.new_tokens).tolist())
            generation = Generation(ids, action, (0.0,) * cell.new_tokens, "one two", truncated=False)
            replies.append(Reply(generation.text, generation))
        return replies

    episodes = BatchRunner(env, cell.episodes).play(act, indices=range(cell.episodes))
    batch = make_batch(episodes, env.possible_agents, loaded.tokenizer.pad_token_id)
    score = torch.from_numpy(generator.integers(2, size=cell.episodes)).float()
    score[0] = 1 - score[-1]
    batch = replace(batch, score=score, round_score=batch.mask * score.unsqueeze(-1))
    return Workload(cell, _prompts(episodes), batch.to(loaded.device))


def activated_workload(work: Workload, policy: SharedBasePolicy) -> Workload:
    """Return the same work for activated adapters: the base alone reads the prompts up to the invocation tokens.

    Args:
        work: The work.
        policy: The policies with activated adapters.
    """
    turns = {}
    for agent, found in work.batch.turns.items():
        prompts = [ids[:n] for ids, n in zip(found.tokens.tolist(), found.prompt_length.tolist(), strict=True)]
        numbers = [base_tokens(ids, policy.invocation_ids) for ids in prompts]
        turns[agent] = replace(found, base_tokens=found.base_tokens.new_tensor(numbers))
    return replace(work, batch=replace(work.batch, turns=turns))


class PromptMaker:
    """Makes the prompts of a cell from observations.

    A "long" prompt begins with a system prompt and an earlier question and its answer. All of a cell have the same
    system prompt.

    Args:
        cell: The cell.
        loaded: The model, whose tokenizer and chat template make the prompts.
    """

    def __init__(self, cell: Cell, loaded: LoadedModel) -> None:
        self._long, self._loaded = cell.prompts == "long", loaded
        self._limit = (getattr(loaded.model.config, "max_position_embeddings", None) or 2**15) - cell.new_tokens
        self._system: str | None = None

    def ids(self, request: Request) -> tuple[int, ...]:
        """Return the token ids of a request's prompt."""
        if not self._long:
            return tuple(make_prompt(request.observation, self._loaded, self._limit).ids)
        if self._system is None:
            self._system = self._system_prompt(request)
        return tuple(self._prompt(request, self._system).ids)

    def _system_prompt(self, request: Request) -> str:
        """Return a system prompt with which a prompt has LONG_TOKENS, or as many as the context and the template hold.

        The template of the tiny models shows no system prompt.
        """
        system, prompt = "", self._prompt(request, "")
        for sentence in itertools.cycle(_SENTENCES):
            longer = f"{system} {sentence}".strip()
            before, prompt = len(prompt.ids), self._prompt(request, longer)
            if prompt.dropped_messages or len(prompt.ids) <= before:
                break
            system = longer
            if len(prompt.ids) >= LONG_TOKENS:
                break
        return system

    def _prompt(self, request: Request, system: str) -> Prompt:
        a, b = np.random.default_rng([_SEED, request.index, request.turn]).integers(2, 100, size=2).tolist()
        earlier = [
            {"role": "system", "name": "system", "content": system},
            {"role": "user", "name": "task", "content": f"An earlier section: what is {a} + {b}?"},
            {"role": "assistant", "name": request.agent, "content": f"\\boxed{{{a + b}}}"},
        ]
        messages = [*earlier, *request.observation["messages"]]
        return make_prompt({**request.observation, "messages": messages}, self._loaded, self._limit)


def _prompts(episodes: Sequence[Episode]) -> dict[str, list[tuple[int, ...]]]:
    found: dict[str, list[tuple[int, ...]]] = {}
    for episode in episodes:
        for step in episode.steps:
            found.setdefault(step.request.agent, []).append(step.data.prompt_ids)
    return found


def rewritten(policy: SharedBasePolicy) -> None:
    """Mark all adapters as changed, as an update of the policies does, so that what is derived from them is stale."""
    with torch.no_grad():
        for agent in policy.agents:
            for parameter in policy.adapter_parameters(agent):
                parameter.mul_(1.0)


def work_as_json(work: Workload) -> dict[str, Any]:
    """Return the size of the work: the fields of its cell, and the shortest and the longest prompt in tokens."""
    lengths = [len(ids) for prompts in work.prompts.values() for ids in prompts]
    return {**asdict(work.cell), "shortest_prompt": min(lengths), "longest_prompt": max(lengths)}
