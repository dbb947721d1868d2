"""What an engine is: it takes generation requests and returns completions, both as token ids.

Texts, prompts and conversations are the business of the samplers (``sampler.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from baselines.field_types import check_field_types


@dataclass(frozen=True)
class Sampling:
    """How the tokens of one action are chosen.

    There is no top-k or top-p: the learner needs the behaviour policy to be the policy at its temperature.

    Attributes:
        max_new_tokens: Largest number of tokens. An action that no stop token or stop string has ended by then is
            truncated.
        temperature: Temperature of the distribution that tokens are drawn from, above 0.
        stop_strings: An action ends with the token that completes one of these strings. The action's text ends before
            the string.
    """

    max_new_tokens: int = 64
    temperature: float = 1.0
    stop_strings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_field_types(self)
        object.__setattr__(self, "stop_strings", tuple(self.stop_strings))
        name = type(self).__name__
        for field in ("max_new_tokens", "temperature"):
            if getattr(self, field) <= 0:
                raise ValueError(f"{name} {field}={getattr(self, field)!r}: expected a positive number")
        if "" in self.stop_strings:
            raise ValueError(f"{name} stop_strings={list(self.stop_strings)}: expected strings that are not empty")


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """A request for one action.

    Attributes:
        agent: The agent whose weights generate; None for the reference policy.
        prompt_ids: Token ids of the prompt.
        sampling: How tokens are chosen.
        seed: Integers that determine the action's random numbers, whatever other requests share its batch. None
            decodes greedily.
        base_tokens: Number of first tokens of the prompt that the base alone reads, see ``LoraSettings.activated``.
    """

    agent: str | None
    prompt_ids: Sequence[int]
    sampling: Sampling
    seed: tuple[int, ...] | None = None
    base_tokens: int = 0

    def uniforms(self) -> np.ndarray | None:
        """Return the random numbers in [0, 1) that choose the tokens, [max_new_tokens]; None: greedy decoding."""
        return None if self.seed is None else np.random.default_rng(self.seed).random(self.sampling.max_new_tokens)


FinishReason = Literal["stop", "length"]
"""Why an action ended: a stop token or a stop string, or the largest number of tokens."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The action that an engine generated for a request.

    Attributes:
        token_ids: Token ids, the stop token included.
        logprobs: Log-probability of each token at the temperature, also for greedy decoding.
        finish_reason: Why the action ended.
        adapter_version: Number of optimiser steps that the agent's weights had been trained for; 0 for the reference
            policy.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason
    adapter_version: int


class Engine(Protocol):
    """Generates actions.

    Attributes:
        prompt_limit: Largest number of tokens of a prompt.
        end_ids: Ids of the tokens that end an action; they are not part of its text.
        invocation_ids: Token ids that activate the adapters; empty if they are always active.
    """

    prompt_limit: int
    end_ids: frozenset[int]
    invocation_ids: tuple[int, ...]

    @property
    def sampling(self) -> Sampling:
        """How the tokens of the run's actions are chosen."""

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Completion]:
        """Return one completion per request, in the order of the requests."""
