"""A team's policies as a policy of ``marft_envs.batch``: messages to ids, ids to actions that keep their ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines.engine.prompts import render, truncate_prompt
from baselines.engine.torch_engine import TorchEngine
from marft_envs.batch.runner import Reply, Request


@dataclass
class EngineSampler:
    """Plays every agent with its own adapter. ``trained=False``: with the reference pi_0.

    loaded: the LoadedModel behind the engine (tokenizer and template). stream: numbers that name the random stream;
    the uniforms of a turn depend on (stream, problem, repetition, turn) alone, so arms and updates that play the same
    problem share them. None: greedy. repetition counts how often one call has asked for the same problem.
    """

    engine: TorchEngine
    loaded: Any
    stream: tuple[int, ...] | None
    trained: bool = True
    prompt_tokens: int = 0
    generated_tokens: int = 0

    def __call__(self, requests: list[Request]) -> list[Reply]:
        """Requests of one agent, as the batch runner groups them."""
        prompts = [self.prompt(r.observation) for r in requests]
        agent = requests[0].agent if self.trained else None
        generations = self.engine.generate(agent, prompts, self._uniforms(requests))
        self.prompt_tokens += sum(map(len, prompts))
        self.generated_tokens += sum(len(g.action_ids) for g in generations)
        return [Reply(g.text, g) for g in generations]

    def prompt(self, observation: Mapping[str, Any], *, may_be_empty: bool = False) -> list[int]:
        """The ids that are read where an agent observes this. may_be_empty: an end token stands for no text at all,
        which is an error otherwise."""
        nothing = self.loaded.tokenizer.eos_token_id if may_be_empty else None
        ids = render(observation["messages"], self.loaded, observation["reply_prefix"], nothing=nothing)
        limit = self.engine.decoding.max_prompt_tokens
        return truncate_prompt(ids, limit, bos_token_id=self.loaded.tokenizer.bos_token_id)

    def _uniforms(self, requests: list[Request]) -> np.ndarray | None:
        if self.stream is None:
            return None
        steps = self.engine.decoding.max_new_tokens
        seen: dict[int, int] = {}
        rows = []
        for r in requests:
            repetition = seen[r.index] = seen.get(r.index, -1) + 1
            rows.append(np.random.default_rng([*self.stream, r.index, repetition, r.turn]).random(steps))
        return np.stack(rows)
