"""A critic that does not use the reference model: a small transformer, trained from scratch on the history's tokens."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from baselines.critics.features import TurnFeatures
from baselines.critics.networks import CriticShape

_WIDTH, _LAYERS, _HEADS = 64, 2, 4


class TransformerCritic(nn.Module):
    """A causal transformer that reads the tokens of the history.

        logit V_{k,j} = b[agent of k] + w . h,    h: the state at the last token before decision j

    It reads ``features.history``, which also decides what a turn sees. The states inside an action exist at action
    level, too, so the network is the same with and without ``shape.by_token``.

    Args:
        shape: The input sizes; ``sizes`` are vocabularies, and ``bases`` holds the one base whose tokens are read.
        generator: Source of the initial weights.

    Source: docs/reference/critic.md, section 4.
    """

    bias: nn.Parameter

    def __init__(self, shape: CriticShape, generator: torch.Generator) -> None:
        super().__init__()
        (base,) = shape.bases
        self.bias = nn.Parameter(torch.zeros(len(shape.base_of)))
        seed = int(torch.randint(2**31, (), generator=generator, device="cpu"))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)  # noqa: TID251 - torch's layers draw from the global generator, forked here
            self.embedding = nn.Embedding(shape.sizes[base], _WIDTH)
            layer = nn.TransformerEncoderLayer(
                _WIDTH, _HEADS, 2 * _WIDTH, dropout=0.0, batch_first=True, norm_first=True
            )
            self.layers = nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(_WIDTH)
        self.outer = nn.Linear(_WIDTH, 1)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, features: TurnFeatures, visible: Tensor) -> Tensor:
        """Return logits [B, K, U], 0 at padded turns. ``visible`` is not used."""
        assert features.history is not None and features.length is not None
        mask = features.mask
        logits = torch.zeros(features.decisions.shape, device=mask.device)
        if not bool(mask.any()):
            return logits
        ids, length = features.history[mask], features.length[mask]
        ids = ids[:, : int(length.max()) + logits.shape[-1] - 1]  # the last decision's value needs no later token
        states = self.norm(self._states(ids))
        # Decision j is read at position length - 1 + j, the last token that comes before it.
        at = length.unsqueeze(-1) - 1 + torch.arange(logits.shape[-1], device=length.device)
        at = at.clamp(max=ids.shape[1] - 1)
        decided = self.outer(states).squeeze(-1).gather(1, at) + self.bias[features.agent[mask]].unsqueeze(-1)
        return logits.masked_scatter(mask.unsqueeze(-1).expand_as(logits), decided)

    def _states(self, ids: Tensor) -> Tensor:
        """Return [N, L, width] from [N, L]. Padding is on the right, so the causal mask hides it from every token."""
        longest = ids.shape[1]
        x = self.embedding(ids) + _positions(longest, ids.device)
        causal = nn.Transformer.generate_square_subsequent_mask(longest, device=ids.device)
        states: Tensor = self.layers(x, mask=causal, is_causal=True)
        return states


def _positions(length: int, device: torch.device) -> Tensor:
    """Return sinusoidal position encodings [L, width] (section 3.5, Vaswani et al. 2017, arXiv 1706.03762)."""
    position = torch.arange(length, device=device).unsqueeze(-1)
    rate = torch.exp(torch.arange(0, _WIDTH, 2, device=device) * (-math.log(10_000.0) / _WIDTH))
    return torch.stack([(position * rate).sin(), (position * rate).cos()], -1).flatten(1)
