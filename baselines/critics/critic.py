"""Critics: what the team will score, read before an agent acts.

The additive critic (critic.md): encode each turn on its own with the frozen reference, and add up in the logit:

    logit V_k = b[agent of k] + psi(prompt end of k) + sum over earlier visible turns j of s phi(turn j)

phi reads the reference's hidden states at turn j's prompt end and first action tokens, and three scalars: the
reference's log-probability of the message, its distance from the reference's mode, and whether it is the mode. They are
legitimate (a finished message can always be scored by the frozen reference), and biased where the reference's mode is
wrong. Additive in the logit is a product for all-or-nothing tasks. phi is shared over turns. s is 1 in a single round;
with several rounds it is learned, by the round of k and by how many rounds ago j was: whether a later version of a
message takes the place of an earlier one is for the task to say.

Central: one network; turn k sees every earlier turn of its episode. Own (IPPO): the same architecture, one network per
agent; turn k sees the agent's own earlier turns, and its prompt, in which D's parents speak.

Token level: logit V_{k,j} = logit V_k + chi(the reference's state before token j), with chi = 0 before the first.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor, nn

from baselines.critics.features import TurnFeatures
from baselines.critics.networks import AdditiveCritic, HeadCritic
from baselines.critics.transformer import TransformerCritic
from baselines.functional.losses import bce_value_loss, clipped_value_loss, explained_variance
from baselines.learner_config import LearnerConfig

Network = AdditiveCritic | HeadCritic | TransformerCritic
_KINDS: dict[str, type[Network]] = {"additive": AdditiveCritic, "head": HeadCritic, "transformer": TransformerCritic}


class TeamCritic:
    """The critic of an arm: central or own, its optimiser, its replay, and the gate on lam_in.

    Values are sigmoid(logit): the score is in [0, 1] (with "huber" the same, trained on the GAE return). sizes: of the
    hidden states (of the vocabulary for a "transformer") by base. base_of: by agent, the base that reads its turns.
    """

    def __init__(self, sizes: Sequence[int], base_of: Sequence[int], config: LearnerConfig, seed: int) -> None:
        network = config.critic_network
        if len(sizes) > 1 and config.critic == "central" and network != "additive":
            raise ValueError(
                f"critic_network={network!r} with critic='central' and agents on several bases: expected 'additive'; "
                "the history's tokens are those of several tokenizers"
            )
        generator = torch.Generator().manual_seed(seed)
        self.config = config
        reads = [range(len(sizes))] if config.critic == "central" else [(base,) for base in base_of]
        by_token, kind = config.credit == "token", _KINDS[network]
        self.networks = nn.ModuleList([kind(sizes, base_of, bases, by_token, generator) for bases in reads])
        self.optimizer = torch.optim.AdamW(
            self.networks.parameters(), lr=config.critic_learning_rate, weight_decay=config.critic_weight_decay
        )
        self.replay: deque[tuple[TurnFeatures, Tensor, Tensor]] = deque(maxlen=config.replay_batches)
        self.running_ev: float | None = None
        self._started = False
        self.bad_steps = 0  # whose loss was not finite

    def logits(self, features: TurnFeatures) -> Tensor:
        """[B, K, U]; each turn by the network that its agent's critic is; 0 where no turn is."""
        if self.config.critic == "central":
            return self.networks[0](features, visible_turns(features.mask))
        logits = torch.zeros(features.decisions.shape)
        for m, network in enumerate(self.networks):
            mine, (rows, columns), keep = features.of_agent(m)
            logits = logits.index_put((rows[keep], columns[keep]), network(mine, visible_turns(keep))[keep])
        return logits

    @torch.no_grad()
    def values(self, features: TurnFeatures) -> Tensor:
        """V before each decision, in [0, 1]: [B, K, U]."""
        return self.logits(features).sigmoid()

    @torch.no_grad()
    def start(self, features: TurnFeatures, scored: Tensor) -> None:
        """Once: set every bias at the mean target of the scored turns [B, K], if there are any."""
        if self._started or not bool(scored.any()):
            return
        rate = features.target[scored].mean().clamp(0.02, 0.98)
        for network in self.networks:
            assert isinstance(network, Network)
            network.bias.fill_(float(rate.logit()))
        self._started = True

    def view_values(self, features: TurnFeatures, episodes: Tensor, views: Sequence[Mapping[str, Tensor]]) -> Tensor:
        """V of every agent's view after the last turn of some episodes, with the history that its critic reads:
        [F, M]. episodes: [F] rows of the batch. views: by agent, see ``features.read_views``."""
        columns = [self.values(features.followed_by(episodes, view, m))[:, -1, 0] for m, view in enumerate(views)]
        return torch.stack(columns, 1)

    def lam_in(self) -> float:
        """The configured lam_in, or 1 while the running explained variance is below the gate (critic.md, 2)."""
        open_gate = self.running_ev is not None and self.running_ev >= self.config.ev_gate
        return self.config.lam_in if open_gate else 1.0

    def observe_explained_variance(self, values: Tensor, features: TurnFeatures, position: Tensor) -> dict[str, float]:
        """Explained variance by position of these *fresh* turns' values [B, K, U], read before the first decision; and
        the gate's moving average over positions 2..n of each episode's last round. (Before that, a critic may rightly
        say nothing of what will be said again.)"""
        first, target, mask = values[..., 0], features.target, features.mask
        by_position = each_position(mask, position, first, target, explained_variance)
        last_round = features.round == features.round.masked_fill(~mask, -1).amax(1, keepdim=True)
        at_the_end = each_position(mask & last_round, position, first, target, explained_variance)
        later = [ev for p, ev in at_the_end.items() if p != "1" and ev == ev]
        if later:
            now = sum(later) / len(later)
            self.running_ev = now if self.running_ev is None else 0.8 * self.running_ev + 0.2 * now
        return by_position

    def train(self, features: TurnFeatures, values: Tensor, returns: Tensor, epochs: int) -> float:
        """Epochs over the replayed batches, newest included. values: V as predicted; returns: GAE's (for "huber"), both
        [B, K, U]. -> the mean loss of the last epoch; NaN if none of its steps was finite."""
        self.replay.append((features, values, returns))
        losses: list[float] = []
        for _ in range(epochs):
            losses = [loss for batch in self.replay if math.isfinite(loss := self._step(*batch))]
        return sum(losses) / len(losses) if losses else math.nan

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next update depends on, as tensors and plain values."""
        return {
            "networks": self.networks.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "replay": [({f.name: getattr(x, f.name) for f in fields(x)}, *rest) for x, *rest in self.replay],
            "running_ev": self.running_ev,
            "started": self._started,
            "bad_steps": self.bad_steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        self.networks.load_state_dict(state["networks"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.replay.clear()
        self.replay.extend((TurnFeatures(**x), values, returns) for x, values, returns in state["replay"])
        self.running_ev, self._started = state["running_ev"], state["started"]
        self.bad_steps = state["bad_steps"]

    def _step(self, features: TurnFeatures, old: Tensor, returns: Tensor) -> float:
        chosen = features.decisions
        logits = self.logits(features)[chosen]
        if self.config.value_loss == "bce":
            loss = bce_value_loss(logits, features.target.unsqueeze(-1).expand_as(chosen)[chosen])
        else:
            loss = clipped_value_loss(logits.sigmoid(), old[chosen], returns[chosen], self.config.value_clip)
        self.optimizer.zero_grad()
        if not torch.isfinite(loss):
            self.bad_steps += 1
            return math.nan
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def each_position(
    mask: Tensor, position: Tensor, a: Tensor, target: Tensor, measure: Callable[[Tensor, Tensor], float]
) -> dict[str, float]:
    """``measure(a, target)`` over the turns at each place of a round; places are counted from 1. All [B, K]."""
    places = position[mask].unique().tolist()
    return {str(p + 1): measure(a[at], target[at]) for p in places for at in [mask & (position == p)]}


def visible_turns(mask: Tensor) -> Tensor:
    """[B, K, K] bool: turn k reads turn j iff j < k and both count. mask: [B, K]."""
    k = mask.shape[1]
    return torch.ones(k, k, dtype=torch.bool).tril(-1) & mask.unsqueeze(1) & mask.unsqueeze(2)
