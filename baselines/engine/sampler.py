"""A policy for ``BatchRunner`` that samples from an engine: messages to token ids, token ids to actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from baselines.engine.chat_template import ChatSettings
from baselines.engine.invocation import base_tokens
from baselines.engine.prompts import Prompt, make_prompt
from baselines.engine.protocol import Completion, Engine, GenerationRequest
from baselines.engine.replies import action_text, visible_text
from baselines.engine.stopping import before_stop_strings
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
        stream: Integers that name the random stream; None decodes greedily. The random numbers of an action depend on
            (stream, problem, repetition, turn) alone, see ``Request.repetition``, so all arms and updates that play a
            problem share them, and the episodes of a group do not.
        chat: Settings of the chat template, and whether the thinking of a model is part of its message.
        prompt_tokens: Number of prompt tokens so far.
        generated_tokens: Number of generated tokens so far.
    """

    engine: Engine = field(repr=False)
    loaded: Any = field(repr=False)
    stream: tuple[int, ...] | None
    chat: ChatSettings = field(default_factory=ChatSettings)
    prompt_tokens: int = 0
    generated_tokens: int = 0

    def __call__(self, requests: list[Request]) -> list[Reply]:
        """Return one reply per request."""
        prompts = [self.made_prompt(r.observation) for r in requests]
        sampling, invocation = self.engine.sampling, self.engine.invocation_ids
        completions = self.engine.generate(
            [
                GenerationRequest(r.agent, prompt.ids, sampling, self.seed(r), base_tokens(prompt.ids, invocation))
                for r, prompt in zip(requests, prompts, strict=True)
            ]
        )
        self.prompt_tokens += sum(len(prompt.ids) for prompt in prompts)
        self.generated_tokens += sum(len(c.token_ids) for c in completions)
        return [self._reply(*pair) for pair in zip(prompts, completions, strict=True)]

    def seed(self, request: Request) -> tuple[int, ...] | None:
        """Return the seed of an action; None for greedy decoding."""
        if self.stream is None:
            return None
        return (*self.stream, request.index, request.repetition, request.turn)

    def _reply(self, prompt: Prompt, completion: Completion) -> Reply:
        """Return the reply, whose text lacks the model's thinking unless it is kept. Its generation is complete."""
        generation = self.generation(prompt, completion)
        text = prompt.thinking + generation.text
        return Reply(text if self.chat.keep_thinking else visible_text(text), generation)

    def generation(self, prompt: Prompt, completion: Completion) -> Generation:
        """Return the record of a sampled action. An end token and a stop string are not part of its text."""
        tokens = completion.token_ids
        # An end token is no text, whether it is a special token or not.
        shown = tokens[:-1] if tokens[-1] in self.engine.end_ids else tokens
        text = action_text(self.loaded.tokenizer, prompt.ids, shown)
        return Generation(
            prompt_ids=tuple(prompt.ids),
            action_ids=tokens,
            logprobs=completion.logprobs,
            text=before_stop_strings(text, self.engine.sampling.stop_strings),
            truncated=completion.finish_reason == "length",
            dropped_messages=prompt.dropped_messages,
            adapter_version=completion.adapter_version,
            base_tokens=base_tokens(prompt.ids, self.engine.invocation_ids),
        )

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
