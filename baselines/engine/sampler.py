"""A policy for ``BatchRunner`` that samples from an engine: messages to token ids, token ids to actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from baselines.engine.chat_template import ChatSettings
from baselines.engine.prompts import Prompt, make_prompt
from baselines.engine.replies import visible_text
from baselines.engine.torch_engine import TorchEngine
from baselines.trajectory import Generation
from marft_envs.batch import Reply, Request


@dataclass
class EngineSampler:
    """A policy for ``BatchRunner``: each agent acts with its own weights on a shared base.

    ``Reply.data`` is the ``Generation`` with the sampled token ids, from which the learner trains. Ids are never
    obtained by encoding the text again, which may give other ids.

    Attributes:
        engine: Generates the actions.
        loaded: The ``LoadedModel`` behind the engine, with tokenizer and chat template.
        stream: Integers that name the random stream; None decodes greedily. The uniform numbers of an action depend on
            (stream, problem, repetition, turn) alone, see ``Request.repetition``, so all arms and updates that play a
            problem share them, and the episodes of a group do not.
        chat: Settings of the chat template, and whether the thinking of a model is part of its message.
        prompt_tokens: Number of prompt tokens so far.
        generated_tokens: Number of generated tokens so far.
    """

    engine: TorchEngine = field(repr=False)
    loaded: Any = field(repr=False)
    stream: tuple[int, ...] | None
    chat: ChatSettings = field(default_factory=ChatSettings)
    prompt_tokens: int = 0
    generated_tokens: int = 0

    def __call__(self, requests: list[Request]) -> list[Reply]:
        """Return one reply per request. All requests are of one agent, as ``BatchRunner`` groups them."""
        prompts = [self.made_prompt(r.observation) for r in requests]
        uniforms = self._uniforms(requests)
        generations = self.engine.generate(requests[0].agent, [prompt.ids for prompt in prompts], uniforms)
        self.prompt_tokens += sum(len(prompt.ids) for prompt in prompts)
        self.generated_tokens += sum(len(g.action_ids) for g in generations)
        return [self._reply(*pair) for pair in zip(prompts, generations, strict=True)]

    def _reply(self, prompt: Prompt, generation: Generation) -> Reply:
        """Return the reply, whose text lacks the model's thinking unless it is kept. Its generation is complete."""
        text = prompt.thinking + generation.text
        text = text if self.chat.keep_thinking else visible_text(text)
        return Reply(text, replace(generation, dropped_messages=prompt.dropped_messages))

    def prompt(self, observation: Mapping[str, Any], *, may_be_empty: bool = False) -> list[int]:
        """Return the token ids [T] of an observation, see ``made_prompt``."""
        return self.made_prompt(observation, may_be_empty=may_be_empty).ids

    def made_prompt(self, observation: Mapping[str, Any], *, may_be_empty: bool = False) -> Prompt:
        """Return the prompt of an observation, without its oldest messages if the conversation is too long.

        Args:
            observation: ``messages`` and ``reply_prefix``, as the environment returns them.
            may_be_empty: Whether an observation without text is valid. Its prompt is then the EOS token alone.

        Raises:
            ValueError: There is no token to start from, and ``may_be_empty`` is False.
            RunError: The prompt is too long even without messages.
        """
        empty_id = self.loaded.tokenizer.eos_token_id if may_be_empty else None
        return make_prompt(observation, self.loaded, self.engine.prompt_limit, empty_id=empty_id, settings=self.chat)

    def _uniforms(self, requests: list[Request]) -> np.ndarray | None:
        """Return uniform numbers [requests, max_new_tokens], one generator per request."""
        if self.stream is None:
            return None
        steps = self.engine.decoding.max_new_tokens
        keys = ([*self.stream, r.index, r.repetition, r.turn] for r in requests)
        return np.stack([np.random.default_rng(key).random(steps) for key in keys])
