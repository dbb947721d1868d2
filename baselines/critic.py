"""Critics: what the team will score, read before an agent acts.

The additive critic (critic.md): encode each turn on its own with the frozen reference, and add up in the logit:

    logit V_k = b[agent of k] + psi(prompt end of k) + sum over earlier visible turns j of phi(turn j)

phi reads the reference's hidden states at turn j's prompt end and first action tokens, and three scalars: the
reference's log-probability of the message, its distance from the reference's mode, and whether it is the mode. They are
legitimate (a finished message can always be scored by the frozen reference), and biased where the reference's mode is
wrong. Additive in the logit is a product for all-or-nothing tasks. phi is shared over turns.

Central: one network; turn k sees every earlier turn of its episode. Own (IPPO): the same architecture, one network per
agent; turn k sees the agent's own earlier turns, and its prompt, in which D's parents speak.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from baselines.ladder import LearnerConfig
from baselines.losses import bce_value_loss, clipped_value_loss, explained_variance
from baselines.policy import TeamPolicy, TokenScores, predicting_positions, row_blocks
from baselines.trajectory import AgentTurns, Batch, own_turns

ACTION_STATES = 3
SCALARS = 3
_WIDTH = 64


@dataclass(frozen=True, slots=True)
class TurnFeatures:
    """What the frozen reference says of every turn of a batch; no gradient, so it can be kept and replayed.

    prompt: [B, K, H] hidden state at the prompt's end. message: [B, K, (1 + ACTION_STATES) H + SCALARS].
    mask: [B, K]. agent: [B, K] index. target: [B, K] Monte-Carlo return in [0, 1].
    """

    prompt: Tensor
    message: Tensor
    mask: Tensor
    agent: Tensor
    target: Tensor


def turn_features(hidden: Tensor, scores: TokenScores, turns: AgentTurns, rows: slice) -> tuple[Tensor, Tensor]:
    """The reference's reading of some turns of one agent: (prompt [n, H], message [n, (1 + ACTION_STATES) H + 3]).

    hidden: [n, L, H] of prompt + action under the reference. scores: its token scores, [n, T].
    """
    mask = turns.action_mask[rows]
    at = predicting_positions(turns, rows)
    states = hidden.gather(1, at.unsqueeze(-1).expand(-1, -1, hidden.shape[-1])).float()
    prompt = states[:, 0]
    # Position prompt_length + j holds action token j, and that is where token j + 1 is predicted.
    following = states[:, 1 : 1 + ACTION_STATES] * mask[:, 1 : 1 + ACTION_STATES].unsqueeze(-1)
    missing = ACTION_STATES - following.shape[1]
    following = nn.functional.pad(following, (0, 0, 0, missing))
    gap = scores.gap.sum(-1)
    scalars = torch.stack([scores.logprobs.sum(-1).clamp(min=-20) / 5, gap.clamp(max=20) / 5, (gap < 1e-6).float()], -1)
    return prompt, torch.cat([prompt, following.flatten(1), scalars], -1)


class AdditiveCritic(nn.Module):
    """One network of the additive form for ``agents`` agents on hidden size H."""

    bias: nn.Parameter

    def __init__(self, hidden_size: int, agents: int, generator: torch.Generator) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(agents))
        self.psi = _mlp(hidden_size, 0, generator)
        self.phi = _mlp((1 + ACTION_STATES) * hidden_size, SCALARS, generator)

    def forward(self, features: TurnFeatures, sees: Tensor) -> Tensor:
        """Logits [B, K]. sees: [B, K, K] bool, ``sees[b, k, j]``: turn k's value reads turn j (j < k)."""
        contribution = self.phi(features.message).squeeze(-1) * features.mask
        own = self.bias[features.agent] + self.psi(features.prompt).squeeze(-1)
        return own + (sees.to(contribution.dtype) @ contribution.unsqueeze(-1)).squeeze(-1)


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


class TeamCritic:
    """The critic of an arm: central or own, its optimiser, its replay, and the gate on lam_in.

    Values are sigmoid(logit): the score is in [0, 1] (with "huber" the same, trained on the GAE return).
    """

    def __init__(self, hidden_size: int, agents: Sequence[str], config: LearnerConfig, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.config = config
        self.agents = tuple(agents)
        count = 1 if config.critic == "central" else len(agents)
        self.networks = nn.ModuleList([AdditiveCritic(hidden_size, len(agents), generator) for _ in range(count)])
        self.optimizer = torch.optim.AdamW(
            self.networks.parameters(), lr=config.critic_learning_rate, weight_decay=config.critic_weight_decay
        )
        self.replay: deque[tuple[TurnFeatures, Tensor, Tensor]] = deque(maxlen=config.replay_batches)
        self.running_ev: float | None = None
        self._started = False

    def logits(self, features: TurnFeatures) -> Tensor:
        """[B, K]; each turn by the network that its agent's critic is; 0 where the mask is False."""
        if self.config.critic == "central":
            return self.networks[0](features, visible_turns(features.mask))
        logits = torch.zeros(features.mask.shape)
        for m, network in enumerate(self.networks):
            rows, columns, keep = own_turns(features.mask & (features.agent == m))
            place = rows, columns
            mine = TurnFeatures(
                features.prompt[place], features.message[place], keep, features.agent[place], features.target[place]
            )
            logits = logits.index_put((rows[keep], columns[keep]), network(mine, visible_turns(keep))[keep])
        return logits

    @torch.no_grad()
    def values(self, features: TurnFeatures) -> Tensor:
        """V before each turn, in [0, 1]: [B, K]. The first call sets every bias at the batch's success rate."""
        if not self._started:
            rate = features.target[features.mask].mean().clamp(0.02, 0.98)
            for network in self.networks:
                assert isinstance(network, AdditiveCritic)
                network.bias.fill_(float(rate.logit()))
            self._started = True
        return self.logits(features).sigmoid()

    def lam_in(self) -> float:
        """The configured lam_in, or 1 while the running explained variance is below the gate (critic.md, 2)."""
        open_gate = self.running_ev is not None and self.running_ev >= self.config.ev_gate
        return self.config.lam_in if open_gate else 1.0

    def observe_explained_variance(self, values: Tensor, features: TurnFeatures, position: Tensor) -> dict[str, float]:
        """Explained variance by position of these *fresh* turns, and the gate's moving average over positions 2..n."""
        by_position = {}
        for p in position[features.mask].unique().tolist():
            at = features.mask & (position == p)
            by_position[str(p + 1)] = explained_variance(values[at], features.target[at])
        later = [ev for p, ev in by_position.items() if p != "1" and ev == ev]
        if later:
            now = sum(later) / len(later)
            self.running_ev = now if self.running_ev is None else 0.8 * self.running_ev + 0.2 * now
        return by_position

    def train(self, features: TurnFeatures, values: Tensor, returns: Tensor) -> float:
        """Epochs over the replayed batches, newest included. values: V as predicted; returns: GAE's (for "huber").
        -> the mean loss of the last epoch."""
        self.replay.append((features, values, returns))
        mean = 0.0
        for _ in range(self.config.critic_epochs):
            losses = [self._step(*batch) for batch in self.replay]
            mean = sum(losses) / len(losses)
        return mean

    def _step(self, features: TurnFeatures, old: Tensor, returns: Tensor) -> float:
        logits = self.logits(features)[features.mask]
        if self.config.value_loss == "bce":
            loss = bce_value_loss(logits, features.target[features.mask])
        else:
            m = features.mask
            loss = clipped_value_loss(logits.sigmoid(), old[m], returns[m], self.config.value_clip)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def visible_turns(mask: Tensor) -> Tensor:
    """[B, K, K] bool: turn k reads turn j iff j < k and both count. mask: [B, K]."""
    k = mask.shape[1]
    return torch.ones(k, k, dtype=torch.bool).tril(-1) & mask.unsqueeze(1) & mask.unsqueeze(2)


@torch.no_grad()
def read_reference(
    policy: TeamPolicy, batch: Batch, target: Tensor, temperature: float, rows: int
) -> tuple[TurnFeatures, dict[str, Tensor]]:
    """One pass of the frozen reference over the batch: the critic's features, and log pi_0 of every action token.

    target: [B, K]. rows: turns per forward pass. -> features, {agent: [N, T]}
    """
    width = policy.hidden_size
    prompt = torch.zeros(*batch.mask.shape, width)
    message = torch.zeros(*batch.mask.shape, (1 + ACTION_STATES) * width + SCALARS)
    logprobs = {}
    for agent, turns in batch.turns.items():
        parts = []
        with policy.use(None):
            for block in row_blocks(len(turns), rows):
                hidden = policy.hidden(turns, block)
                scores = policy.token_scores(hidden, turns, block, temperature)
                parts.append(scores.logprobs)
                place = turns.episode[block], turns.slot[block]
                prompt[place], message[place] = turn_features(hidden, scores, turns, block)
        logprobs[agent] = torch.cat(parts) if parts else turns.behaviour
    return TurnFeatures(prompt, message, batch.mask, batch.agent_index, target), logprobs
