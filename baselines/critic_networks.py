"""The networks of the critics: the additive one (critic.md), and a value head on the concatenated history.

Axes: B episodes, K turns, U decisions of a turn (its tokens, or the one action), H the reference's width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from baselines.features import ACTION_STATES, SCALARS, TurnFeatures

_WIDTH = 64


class AdditiveCritic(nn.Module):
    """One network of the additive form for ``agents`` agents on hidden size H."""

    bias: nn.Parameter

    def __init__(self, hidden_size: int, agents: int, by_token: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(agents))
        self.psi = _mlp(hidden_size, 0, generator)
        self.phi = _mlp((1 + ACTION_STATES) * hidden_size, SCALARS, generator)
        self.chi = _mlp(hidden_size, SCALARS, generator) if by_token else None

    def forward(self, features: TurnFeatures, sees: Tensor) -> Tensor:
        """Logits [B, K, U]. sees: [B, K, K] bool, ``sees[b, k, j]``: turn k's value reads turn j (j < k)."""
        contribution = self.phi(features.message).squeeze(-1) * features.mask
        own = self.bias[features.agent] + self.psi(features.prompt).squeeze(-1)
        turn = own + (sees.to(contribution.dtype) @ contribution.unsqueeze(-1)).squeeze(-1)
        return turn.unsqueeze(-1) + within_turn(self.chi, features)


class HeadCritic(nn.Module):
    """A value head on the reference's last hidden state of the concatenated history: logit V_k = b[agent] + psi(h_k).

    The history is in ``features.prompt`` (see ``features.with_histories``), so what a turn sees is decided there.
    """

    bias: nn.Parameter

    def __init__(self, hidden_size: int, agents: int, by_token: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(agents))
        self.psi = _mlp(hidden_size, 0, generator)
        self.chi = _mlp(hidden_size, SCALARS, generator) if by_token else None

    def forward(self, features: TurnFeatures, sees: Tensor) -> Tensor:
        """Logits [B, K, U]. sees: not read."""
        turn = self.bias[features.agent] + self.psi(features.prompt).squeeze(-1)
        return turn.unsqueeze(-1) + within_turn(self.chi, features)


def within_turn(chi: nn.Module | None, features: TurnFeatures) -> Tensor:
    """What the tokens of a turn so far add to its logit, [B, K, U]: 0 before the first, so that V_{t,m,1} is the very
    value that the predecessor bootstraps from (algorithms.md 3)."""
    if chi is None or features.within is None:
        return torch.zeros(features.decisions.shape)
    added = chi(features.within).squeeze(-1)
    return torch.cat([torch.zeros_like(added[..., :1]), added[..., 1:]], -1)


class _mlp(nn.Module):
    """Two layers on hidden states (normalised) beside ``scalars`` raw numbers; the output starts near zero."""

    def __init__(self, states: int, scalars: int, generator: torch.Generator) -> None:
        super().__init__()
        self.states = states
        self.norm = nn.LayerNorm(states, elementwise_affine=False)
        self.inner = nn.Linear(states + scalars, _WIDTH)
        self.outer = nn.Linear(_WIDTH, 1)
        with torch.no_grad():
            bound = (states + scalars) ** -0.5
            self.inner.weight.uniform_(-bound, bound, generator=generator)
            self.inner.bias.zero_()
            self.outer.weight.uniform_(-0.1 * _WIDTH**-0.5, 0.1 * _WIDTH**-0.5, generator=generator)
            self.outer.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        states = self.norm(x[..., : self.states])
        return self.outer(torch.relu(self.inner(torch.cat([states, x[..., self.states :]], -1))))
