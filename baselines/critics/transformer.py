"""A critic with nothing of the reference in it: a small transformer, from scratch, on the tokens of the history."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from baselines.critics.features import TurnFeatures

_WIDTH, _LAYERS, _HEADS = 64, 2, 4


class TransformerCritic(nn.Module):
    """logit V_{k,j} = b[agent] + w . h, with h the causal transformer's state at the last token before decision j.

    It reads ``features.history`` (what a "head" critic's reference reads), so what a turn sees is decided there.
    sizes: by base, of the vocabulary. base_of: by agent. bases: the one base whose tokens it reads. by_token: not read;
    the states inside an action are there in either case.
    """

    bias: nn.Parameter

    def __init__(
        self,
        sizes: Sequence[int],
        base_of: Sequence[int],
        bases: Sequence[int],
        by_token: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        (base,) = bases
        self.bias = nn.Parameter(torch.zeros(len(base_of)))
        seed = int(torch.randint(2**31, (), generator=generator))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)  # noqa: TID251 - torch's layers draw from the global generator, forked here
            self.embedding = nn.Embedding(sizes[base], _WIDTH)
            layer = nn.TransformerEncoderLayer(
                _WIDTH, _HEADS, 2 * _WIDTH, dropout=0.0, batch_first=True, norm_first=True
            )
            self.layers = nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(_WIDTH)
        self.outer = nn.Linear(_WIDTH, 1)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, features: TurnFeatures, sees: Tensor) -> Tensor:
        """Logits [B, K, U], 0 where no turn is. sees: not read."""
        assert features.history is not None and features.length is not None
        logits, mask = torch.zeros(features.decisions.shape), features.mask
        if not bool(mask.any()):
            return logits
        ids, length = features.history[mask], features.length[mask]
        ids = ids[:, : int(length.max()) + logits.shape[-1] - 1]  # behind that, nothing is asked
        states = self.norm(self._states(ids))
        at = length.unsqueeze(-1) - 1 + torch.arange(logits.shape[-1])
        at = at.clamp(max=ids.shape[1] - 1)
        decided = self.outer(states).squeeze(-1).gather(1, at) + self.bias[features.agent[mask]].unsqueeze(-1)
        return logits.masked_scatter(mask.unsqueeze(-1).expand_as(logits), decided)

    def _states(self, ids: Tensor) -> Tensor:
        """[N, L] -> [N, L, width]: each position reads itself and what stands before it. Padding stands behind."""
        longest = ids.shape[1]
        x = self.embedding(ids) + _positions(longest)
        causal = nn.Transformer.generate_square_subsequent_mask(longest)
        states: Tensor = self.layers(x, mask=causal, is_causal=True)
        return states


def _positions(length: int) -> Tensor:
    """Sines and cosines, [L, width] (Vaswani et al. 2017, arXiv 1706.03762, 3.5)."""
    place = torch.arange(length).unsqueeze(-1)
    rate = torch.exp(torch.arange(0, _WIDTH, 2) * (-math.log(10_000.0) / _WIDTH))
    return torch.stack([(place * rate).sin(), (place * rate).cos()], -1).flatten(1)
