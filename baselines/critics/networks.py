"""The additive critic network, the value head on the history, and the shape that all critic networks share.

Axes: B episodes, K turns, U decisions of a turn (its tokens, or the one action), H the reference model's width.
Source: docs/reference/critic.md, sections 4 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from baselines.critics.features import MESSAGE_STATES, TurnFeatures
from baselines.critics.token_statistics import MESSAGE_STATISTICS, RUNNING_STATISTICS

_WIDTH = 64
_ROUNDS = 8  # later rounds and longer distances share the last weight
_PER_ROUND = 0.25  # initial weight per round of distance: a later message mostly replaces an earlier one
_FREE_COLUMNS = 64
"""Adam moves each weight by about its learning rate, so that n inputs move an output n times as far. The thousands of
state columns of a real model would be fitted to the noise of the first batches. Scaled by this number / n, they move it
as far as this number of columns do, at every width."""
_STATISTICS = 2.0  # scale of the statistics, which are few
_LARGEST = 5.0  # standardised inputs are clamped to this size
_GAIN = 8.0  # Adam moves a parameter by about its learning rate; at 1e-3 a weight could not leave 1 within a run


@dataclass(frozen=True, slots=True)
class CriticShape:
    """The input sizes of a critic network.

    Attributes:
        sizes: Per base model, the width of its hidden states (for a transformer critic, its vocabulary).
        base_of: Per agent, the index of the base model that reads its turns.
        bases: Indices of the base models whose turns this network reads.
        by_token: Whether every token is a decision, so that the network needs values inside a turn.
    """

    sizes: tuple[int, ...]
    base_of: tuple[int, ...]
    bases: tuple[int, ...]
    by_token: bool


class AdditiveCritic(nn.Module):
    """A critic that adds the contributions of earlier turns in the logit.

        logit V_k = b[agent of k] + psi(prompt end of k) + sum over visible turns j < k of w_kj phi(turn j)

    Hidden states of two base models are not comparable, so each base has its own psi, phi and chi; their outputs add up
    in one logit. w_kj is 1 in a single round. With several rounds it is learned for each pair (round of k, rounds
    between j and k), because whether a later message replaces an earlier one depends on the task.

    Args:
        shape: The input sizes.
        generator: Source of the initial weights.
    """

    bias: nn.Parameter

    def __init__(self, shape: CriticShape, generator: torch.Generator) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(len(shape.base_of)))
        self.psi, self.phi, self.chi = nn.ModuleDict(), nn.ModuleDict(), nn.ModuleDict()
        # The order psi, phi, chi fixes which numbers of the generator each network gets.
        for base in shape.bases:
            size = shape.sizes[base]
            self.psi[str(base)] = _MLP(size, 1, 0, generator)
            self.phi[str(base)] = _MLP(size, MESSAGE_STATES, MESSAGE_STATISTICS, generator)
            if shape.by_token:
                self.chi[str(base)] = _MLP(size, 1, RUNNING_STATISTICS, generator)
        self.counts = nn.Parameter(torch.zeros(_ROUNDS, _ROUNDS))
        self.several: Tensor  # whether the network has read a second round
        self.register_buffer("several", torch.zeros((), dtype=torch.bool))
        self.base_of: Tensor  # a buffer, so that it moves with the network; the configuration has it, no checkpoint
        self.register_buffer("base_of", torch.tensor(shape.base_of), persistent=False)

    def forward(self, features: TurnFeatures, visible: Tensor) -> Tensor:
        """Return logits [B, K, U].

        Args:
            features: The turns.
            visible: [B, K, K] bool; ``visible[b, k, j]`` is True if the value of turn k reads turn j < k.
        """
        base = self.base_of[features.agent]
        contribution = _by_base(self.phi, features.message, base) * features.mask
        own = self.bias[features.agent] + _by_base(self.psi, features.prompt, base)
        # Once several rounds have occurred, the weights apply to every batch. Deciding it per batch would make the
        # value of an episode depend on the other episodes in its batch.
        self.several |= features.round.any()
        learned = self._round_weights(features.round)
        weight = visible * torch.where(self.several, learned, torch.ones_like(learned))
        turn = own + (weight @ contribution.unsqueeze(-1)).squeeze(-1)
        return turn.unsqueeze(-1) + within_turn(self.chi, features, base)

    def fit(self, features: TurnFeatures) -> None:
        """Standardise the inputs by their means and standard deviations in a batch, from now on."""
        base = self.base_of[features.agent]
        _fit_by_base(self.psi, features.prompt, base, features.mask)
        _fit_by_base(self.phi, features.message, base, features.mask)
        _fit_within(self.chi, features, base)

    def _round_weights(self, round: Tensor) -> Tensor:
        """Return w [B, K, K], the weight of turn j in the value of turn k; initially 1/4 per round of distance."""
        ago = (round.unsqueeze(2) - round.unsqueeze(1)).clamp(0, _ROUNDS - 1)
        reader = round.clamp(max=_ROUNDS - 1).unsqueeze(2).expand_as(ago)
        return _PER_ROUND**ago + _GAIN * self.counts[reader, ago]


class HeadCritic(nn.Module):
    """A value head on the reference model's last hidden state of the concatenated history.

        logit V_k = b[agent of k] + psi(h_k)

    The history is already in ``features.prompt`` (see ``features.with_histories``), which also decides what a turn
    sees.

    Args:
        shape: The input sizes.
        generator: Source of the initial weights.
    """

    bias: nn.Parameter

    def __init__(self, shape: CriticShape, generator: torch.Generator) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(len(shape.base_of)))
        self.psi, self.chi = nn.ModuleDict(), nn.ModuleDict()
        for base in shape.bases:
            self.psi[str(base)] = _MLP(shape.sizes[base], 1, 0, generator)
            if shape.by_token:
                self.chi[str(base)] = _MLP(shape.sizes[base], 1, RUNNING_STATISTICS, generator)
        self.base_of: Tensor  # a buffer, so that it moves with the network; the configuration has it, no checkpoint
        self.register_buffer("base_of", torch.tensor(shape.base_of), persistent=False)

    def forward(self, features: TurnFeatures, visible: Tensor) -> Tensor:
        """Return logits [B, K, U]. ``visible`` is not used."""
        base = self.base_of[features.agent]
        turn = self.bias[features.agent] + _by_base(self.psi, features.prompt, base)
        return turn.unsqueeze(-1) + within_turn(self.chi, features, base)

    def fit(self, features: TurnFeatures) -> None:
        """Standardise the inputs by their means and standard deviations in a batch, from now on."""
        base = self.base_of[features.agent]
        _fit_by_base(self.psi, features.prompt, base, features.mask)
        _fit_within(self.chi, features, base)


def _by_base(networks: nn.ModuleDict, x: Tensor, base: Tensor) -> Tensor:
    """Return [...] from x [..., C]: each row through the network of its base, and 0 where that base has no network.

    A network reads the first columns of x, as many as it has inputs: x is as wide as the widest base needs.
    """
    total = torch.zeros(x.shape[:-1], device=x.device)
    for number, network in networks.items():
        assert isinstance(network, _MLP)
        total = total + network(x[..., : network.inputs]).squeeze(-1) * (base == int(number))
    return total


def _fit_by_base(networks: nn.ModuleDict, x: Tensor, base: Tensor, chosen: Tensor) -> None:
    """Standardise the inputs of each network by the ``chosen`` rows [...] of x [..., C] that it reads."""
    for number, network in networks.items():
        assert isinstance(network, _MLP)
        network.fit(x[chosen & (base == int(number))][..., : network.inputs])


def _fit_within(chi: nn.ModuleDict, features: TurnFeatures, base: Tensor) -> None:
    """Standardise the inputs of chi by the decisions of all turns, if a token is a decision."""
    if features.within is not None:
        rows = features.decisions & features.mask.unsqueeze(-1)
        _fit_by_base(chi, features.within, base.unsqueeze(-1).expand_as(rows), rows)


def within_turn(chi: nn.ModuleDict, features: TurnFeatures, base: Tensor) -> Tensor:
    """Return what the tokens of a turn so far add to its logit, [B, K, U].

    It is 0 before the first token, so that V_{t,m,1} is exactly the value from which the predecessor bootstraps
    (docs/reference/algorithms.md, section 3).
    """
    if features.within is None:
        return torch.zeros(features.decisions.shape, device=features.decisions.device)
    added = _by_base(chi, features.within, base.unsqueeze(-1))
    return torch.cat([torch.zeros_like(added[..., :1]), added[..., 1:]], -1)


class _MLP(nn.Module):
    """Two layers on ``states`` hidden states and ``statistics`` numbers; the initial output is near zero.

    Each state is normalised on its own, so that neither its scale nor a missing state changes the others. Then every
    column is standardised by ``fit``. Without it, what two messages have in common would be many times larger than what
    distinguishes them: the prompts of a task, and with them the states, are nearly the same.

    Args:
        size: Width of a hidden state.
        states: Number of hidden states, which are the first columns of the input.
        statistics: Number of the columns after them.
        generator: Source of the initial weights.
    """

    def __init__(self, size: int, states: int, statistics: int, generator: torch.Generator) -> None:
        super().__init__()
        self.states, self.state_columns, self.inputs = states, states * size, states * size + statistics
        self.norm = nn.LayerNorm(size, elementwise_affine=False)
        self.inner = nn.Linear(self.inputs, _WIDTH)
        self.outer = nn.Linear(_WIDTH, 1)
        self.center: Tensor
        self.spread: Tensor
        self.gain: Tensor
        self.fitted: Tensor  # whether ``fit`` has had enough rows
        self.register_buffer("fitted", torch.zeros((), dtype=torch.bool))
        self.register_buffer("center", torch.zeros(self.inputs))
        self.register_buffer("spread", torch.ones(self.inputs))
        gain = min(1.0, _FREE_COLUMNS / self.state_columns)
        gains = [gain] * self.state_columns + [_STATISTICS] * statistics
        self.register_buffer("gain", torch.tensor(gains), persistent=False)
        with torch.no_grad():
            bound = self.inputs**-0.5
            self.inner.weight.uniform_(-bound, bound, generator=generator)
            self.inner.bias.zero_()
            self.outer.weight.uniform_(-0.1 * _WIDTH**-0.5, 0.1 * _WIDTH**-0.5, generator=generator)
            self.outer.bias.zero_()

    @torch.no_grad()
    def fit(self, x: Tensor) -> None:
        """Standardise the columns by their mean and standard deviation in the first x [N, inputs] with two rows."""
        if len(x) < 2 or bool(self.fitted):
            return
        self.fitted.fill_(True)
        x = self._normalised(x)
        variance = x.var(0)
        # The floors keep a column that is constant in x from being scaled up without bound.
        of_states = variance[: self.state_columns].unflatten(0, (self.states, -1))
        of_states = of_states + 0.01 * of_states.mean(-1, keepdim=True) + 1e-6
        self.center.copy_(x.mean(0))
        self.spread.copy_(torch.cat([of_states.flatten(), variance[self.state_columns :] + 1e-2]).sqrt())

    def forward(self, x: Tensor) -> Tensor:
        standardised = ((self._normalised(x) - self.center) / self.spread).clamp(-_LARGEST, _LARGEST)
        return self.outer(torch.relu(self.inner(standardised * self.gain)))

    def _normalised(self, x: Tensor) -> Tensor:
        x = x.float()  # stored features may have 16 bits
        states = self.norm(x[..., : self.state_columns].unflatten(-1, (self.states, -1))).flatten(-2)
        return torch.cat([states, x[..., self.state_columns :]], -1)
