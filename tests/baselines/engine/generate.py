"""Requests whose random numbers a test chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
