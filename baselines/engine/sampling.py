"""The choice of the next tokens from logits.

Axes: n rows of a batch, V the size of the vocabulary.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


def choose(logits: Tensor, temperature: Tensor, uniform: Tensor | None) -> tuple[Tensor, Tensor]:
    """Choose the next token of every row.

    Tokens are sampled by inversion: the first token whose cumulative probability exceeds the row's number. So the
    choice depends on the row alone, whatever other rows the batch has.

    Args:
        logits: [n, V] logits of any dtype.
        temperature: [n] temperatures, which the logits are divided by.
        uniform: [n] numbers in [0, 1) in float64; a negative number takes the most likely token. None takes it in
            every row.

    Returns:
        Token ids [n], and their log-probabilities [n] in fp32 at the temperature.
    """
    scaled = logits.float() / temperature.unsqueeze(-1)
    largest, mode = scaled.max(-1)
    weights = (scaled - largest.unsqueeze(-1)).exp()
    if uniform is None:
        chosen, log_total = mode, weights.sum(-1).log()
    else:
        sampled, log_total = _invert(weights, uniform)
        chosen = torch.where(uniform.to(mode.device) < 0, mode, sampled)
    logprob = scaled.gather(-1, chosen.unsqueeze(-1)).squeeze(-1) - largest - log_total
    return chosen, logprob


def _invert(weights: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first token of each row whose cumulative weight exceeds ``uniform`` times the row's total weight.

    The sums are in float64: in float32 the sum over a large vocabulary misses the total by more than the probability of
    a rare token, and a number near 1 would select a token of probability 0. Only the sums of parts of about sqrt(V)
    tokens and the tokens of the selected part are accumulated, which is many times faster than all V.

    Args:
        weights: [n, V] not negative, in fp32.
        uniform: [n] in float64, on a device that has this type.

    Returns:
        Token ids [n], and the logarithm of the total weights [n] in fp32; both on the device of ``weights``.
    """
    device, vocabulary = weights.device, weights.shape[-1]
    weights = weights.to(uniform.device)
    part = max(1, math.isqrt(vocabulary))
    parts = functional.pad(weights, (0, -vocabulary % part)).view(len(weights), -1, part)
    ends = parts.sum(-1, dtype=torch.float64).cumsum(-1)  # [n, V / part]
    total = ends[:, -1:].contiguous()
    threshold = uniform.clamp(min=0).unsqueeze(-1) * total
    index = torch.searchsorted(ends, threshold, right=True).clamp(max=ends.shape[-1] - 1)
    # A part that was reached by rounding alone may be empty: the last part with weight before it is meant.
    index = torch.minimum(index, torch.searchsorted(ends, total))
    before = functional.pad(ends, (1, 0)).gather(-1, index)
    inside = parts[torch.arange(len(parts), device=parts.device), index.squeeze(-1)].double().cumsum(-1)
    within = torch.searchsorted(inside, threshold - before, right=True)
    within = torch.minimum(within, torch.searchsorted(inside, inside[:, -1:].contiguous()))
    chosen = (index * part + within).squeeze(-1)
    return chosen.to(device), total.squeeze(-1).log().float().to(device)
