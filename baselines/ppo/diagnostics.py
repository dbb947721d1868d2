"""What is measured beside the training of a batch: of an agent's share, of the compounded factor, of time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import Tensor

from baselines.functional.losses import kl_to_reference
from baselines.functional.ratios import effective_sample_size
from baselines.ppo.actor import AgentData


@dataclass
class Timer:
    """Seconds by name, for the account of where an update's time goes."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def describe(data: AgentData, spread: float) -> dict[str, float]:
    """What is known of an agent's share before it is trained. spread: the standard deviation of its advantages."""
    turns, mask = data.turns, data.turns.action_mask
    length = mask.sum(-1).float()
    kl = kl_to_reference(data.old_tokens, data.reference, mask)
    return {
        "advantage_std": spread,
        "sampler_gap": float(((data.old_tokens - turns.behaviour).abs() * mask).max()),
        "kl_reference": float(kl.sum() / mask.sum()),
        "mean_length": float(length.mean()),
        "truncated": float(turns.truncated.float().mean()),
        "empty": float((length <= 1).float().mean()),
    }


def factor_statistics(factor: Tensor, clamp: tuple[float, float]) -> dict[str, float]:
    """Of M after an agent, [N]: effective sample size, the share at a bound, percentiles."""
    low, high = clamp
    at_bound = (factor <= low * 1.0001) | (factor >= high * 0.9999)
    return {
        "factor_ess": float(effective_sample_size(factor)),
        "factor_clamp_rate": float(at_bound.float().mean()),
        "factor_p05": float(factor.quantile(0.05)),
        "factor_p95": float(factor.quantile(0.95)),
    }


def finite(table: Mapping[str, float]) -> dict[str, float | None]:
    """None for what is not a number: where all returns were equal, nothing can be explained."""
    return {name: value if math.isfinite(value) else None for name, value in table.items()}
