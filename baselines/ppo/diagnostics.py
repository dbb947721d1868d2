"""Statistics of an update: of an agent's training data, of the compounded factor, and of the time spent."""

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
    """Accumulated wall-clock time by name.

    Attributes:
        seconds: Name -> seconds.
    """

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Add the time spent in the block to ``seconds[name]``."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def describe(data: AgentData, spread: float) -> dict[str, float]:
    """Return statistics of an agent's data before it is trained; see docs/metrics.md for the keys.

    Args:
        data: The agent's data.
        spread: The standard deviation of its advantages before whitening.
    """
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
    """Return statistics of the compounded factor; see docs/metrics.md for the keys.

    Args:
        factor: [N] M by which an agent's advantages are multiplied, one for each of its turns.
        clamp: Lower and upper bound of M.
    """
    low, high = clamp
    # exp(log(bound)) differs from the bound by rounding.
    at_bound = (factor <= low * 1.0001) | (factor >= high * 0.9999)
    return {
        "factor_ess": float(effective_sample_size(factor)),
        "factor_clamp_rate": float(at_bound.float().mean()),
        "factor_p05": float(factor.quantile(0.05)),
        "factor_p95": float(factor.quantile(0.95)),
    }


def gradient_shares(metrics: Mapping[str, Mapping[str, float]], adapter_of: Mapping[str, str]) -> dict[str, float]:
    """Return each agent's share of the gradient: the norm of its adapter's, divided by the sum over adapters.

    Args:
        metrics: Agent -> its metrics, with "grad_norm" if it was trained.
        adapter_of: Agent -> its adapter. Agents that share an adapter share its norm.

    Returns:
        Agent -> share; 0 for an agent that was not trained. Empty if no gradient has a positive norm.
    """
    norms = {adapter_of[agent]: found["grad_norm"] for agent, found in metrics.items() if "grad_norm" in found}
    total = sum(norms.values())
    return {agent: found.get("grad_norm", 0.0) / total for agent, found in metrics.items()} if total > 0 else {}


def variance_by_position(advantages: Tensor, decisions: Tensor, position: Tensor) -> dict[str, float | None]:
    """Return the variance of the advantages at each position of a round.

    Args:
        advantages: [B, K, U] raw advantages.
        decisions: [B, K, U] bool, True where a decision counts.
        position: [B, K] position in the round, from 0.

    Returns:
        Position, counted from 1, as a string -> variance; None if it is not finite.
    """
    found = {}
    for place in position[decisions.any(-1)].unique().tolist():
        at = decisions & (position == place).unsqueeze(-1)
        found[str(place + 1)] = float(advantages[at].var(correction=0))
    return finite(found)


def finite(statistics: Mapping[str, float]) -> dict[str, float | None]:
    """Replace NaN and infinities by None, which JSON can hold; NaN occurs where all returns are equal."""
    return {name: value if math.isfinite(value) else None for name, value in statistics.items()}
