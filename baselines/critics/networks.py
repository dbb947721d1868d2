"""The networks of the critics: the additive one (critic.md), and a value head on the concatenated history.

Axes: B episodes, K turns, U decisions of a turn (its tokens, or the one action), H the reference's width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from baselines.critics.features import ACTION_STATES, SCALARS, TurnFeatures

_WIDTH = 64
_ROUNDS = 8  # those after the seventh count alike
_PER_ROUND = 0.25  # at first: what is answered in later rounds mostly takes the place of what was said before
_GAIN = 8.0  # Adam moves a parameter by its learning rate: 1e-3 would take a run's length from 1 to 0


class AdditiveCritic(nn.Module):
    """One network of the additive form. hidden_sizes: by base. base_of: by agent, which base reads its turns.

    The hidden states of two bases mean different things, so each base has a psi, a phi and a chi of its own; what they
    say adds up in one logit. With several rounds it counts by the reader's round and by how many rounds ago it was said
    (``counts``): it may be overtaken later, or have been. bases: those whose turns this network is to read.
    """

    bias: nn.Parameter

    def __init__(
        self,
        hidden_sizes: Sequence[int],
        base_of: Sequence[int],
        bases: Sequence[int],
        by_token: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(len(base_of)))
        self.psi, self.phi, self.chi = nn.ModuleDict(), nn.ModuleDict(), nn.ModuleDict()
        for base in bases:
            size = hidden_sizes[base]
            self.psi[str(base)] = _mlp(size, 0, generator)
            self.phi[str(base)] = _mlp((1 + ACTION_STATES) * size, SCALARS, generator)
            if by_token:
                self.chi[str(base)] = _mlp(size, SCALARS, generator)
        self.counts = nn.Parameter(torch.zeros(_ROUNDS, _ROUNDS))
        self.several: Tensor  # whether it has ever read a second round
        self.register_buffer("several", torch.zeros((), dtype=torch.bool))
        self.base_of = torch.tensor(base_of)

    def forward(self, features: TurnFeatures, sees: Tensor) -> Tensor:
        """Logits [B, K, U]. sees: [B, K, K] bool, ``sees[b, k, j]``: turn k's value reads turn j (j < k)."""
        base = self.base_of[features.agent]
        contribution = _by_base(self.phi, features.message, base) * features.mask
        own = self.bias[features.agent] + _by_base(self.psi, features.prompt, base)
        weight = sees.to(contribution.dtype)
        self.several |= features.round.any()
        if bool(self.several):  # from then on for every batch: a value depends on its own episode alone
            weight = weight * self._weights(features.round)
        turn = own + (weight @ contribution.unsqueeze(-1)).squeeze(-1)
        return turn.unsqueeze(-1) + within_turn(self.chi, features, base)

    def _weights(self, round: Tensor) -> Tensor:
        """How much turn j counts as turn k reads it, [B, K, K]: a quarter for each round between them at first."""
        ago = (round.unsqueeze(2) - round.unsqueeze(1)).clamp(0, _ROUNDS - 1)
        at = round.clamp(max=_ROUNDS - 1).unsqueeze(2).expand_as(ago)
        return _PER_ROUND**ago + _GAIN * self.counts[at, ago]


class HeadCritic(nn.Module):
    """A value head on the reference's last hidden state of the concatenated history: logit V_k = b[agent] + psi(h_k).

    The history is in ``features.prompt`` (see ``features.with_histories``), so what a turn sees is decided there.
    Arguments as ``AdditiveCritic``'s.
    """

    bias: nn.Parameter

    def __init__(
        self,
        hidden_sizes: Sequence[int],
        base_of: Sequence[int],
        bases: Sequence[int],
        by_token: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(len(base_of)))
        self.psi, self.chi = nn.ModuleDict(), nn.ModuleDict()
        for base in bases:
            self.psi[str(base)] = _mlp(hidden_sizes[base], 0, generator)
            if by_token:
                self.chi[str(base)] = _mlp(hidden_sizes[base], SCALARS, generator)
        self.base_of = torch.tensor(base_of)

    def forward(self, features: TurnFeatures, sees: Tensor) -> Tensor:
        """Logits [B, K, U]. sees: not read."""
        base = self.base_of[features.agent]
        turn = self.bias[features.agent] + _by_base(self.psi, features.prompt, base)
        return turn.unsqueeze(-1) + within_turn(self.chi, features, base)


def _by_base(networks: nn.ModuleDict, x: Tensor, base: Tensor) -> Tensor:
    """[...] from x [..., C]: each row by the network of its base, which reads as many columns as it has inputs; 0 where
    there is no network for it."""
    total = torch.zeros(x.shape[:-1])
    for number, network in networks.items():
        assert isinstance(network, _mlp)
        total = total + network(x[..., : network.inputs]).squeeze(-1) * (base == int(number))
    return total


def within_turn(chi: nn.ModuleDict, features: TurnFeatures, base: Tensor) -> Tensor:
    """What the tokens of a turn so far add to its logit, [B, K, U]: 0 before the first, so that V_{t,m,1} is the very
    value that the predecessor bootstraps from (algorithms.md 3)."""
    if features.within is None:
        return torch.zeros(features.decisions.shape)
    added = _by_base(chi, features.within, base.unsqueeze(-1))
    return torch.cat([torch.zeros_like(added[..., :1]), added[..., 1:]], -1)


class _mlp(nn.Module):
    """Two layers on hidden states (normalised) beside ``scalars`` raw numbers; the output starts near zero."""

    def __init__(self, states: int, scalars: int, generator: torch.Generator) -> None:
        super().__init__()
        self.states, self.inputs = states, states + scalars
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
