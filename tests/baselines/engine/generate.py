"""Requests whose random numbers a test chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines.engine.invocation import base_tokens
from baselines.engine.protocol import Completion, GenerationRequest
from baselines.engine.torch_engine import TorchEngine


@dataclass(frozen=True, slots=True)
class ChosenNumbers(GenerationRequest):
    """A request with given random numbers; None decodes greedily."""

    numbers: Any = None

    def uniforms(self) -> np.ndarray | None:
        return self.numbers


def generate(
    engine: TorchEngine, agent: str | None, prompts: Sequence[Sequence[int]], uniforms: Any = None
) -> list[Completion]:
    """Return one completion per prompt. ``uniforms`` [prompts, max_new_tokens] choose the tokens; None: greedy."""
    numbers = [None] * len(prompts) if uniforms is None else np.asarray(uniforms)
    sampling = engine.decoding.sampling
    return engine.generate(
        [ChosenNumbers(agent, p, sampling, numbers=n) for p, n in zip(prompts, numbers, strict=True)]
    )


def activated_generate(
    engine: TorchEngine,
    agent: str | None,
    prompts: Sequence[Sequence[int]],
    uniforms: Any = None,
    base: int | None = None,
) -> list[Completion]:
    """Do what ``generate`` does, where the base alone reads the tokens before the invocation, or ``base`` of them."""
    numbers = [None] * len(prompts) if uniforms is None else np.asarray(uniforms)
    sampling, invocation = engine.decoding.sampling, engine.invocation_ids
    first = [base_tokens(p, invocation) if base is None else base for p in prompts]
    return engine.generate(
        [
            ChosenNumbers(agent, p, sampling, base_tokens=b, numbers=n)
            for p, b, n in zip(prompts, first, numbers, strict=True)
        ]
    )
