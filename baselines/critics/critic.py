"""The critic of an arm: its networks, optimiser, replay buffer, and the gate on lam_in.

Central: one network for the team; turn k reads every earlier turn of its episode. Own (IPPO): one network per agent
with the same architecture; turn k reads the agent's own earlier turns, and its prompt, which contains the messages of
its parents under D.

Source: docs/reference/critic.md.
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
from baselines.critics.networks import AdditiveCritic, CriticShape, HeadCritic
from baselines.critics.transformer import TransformerCritic
from baselines.functional.losses import bce_value_loss, clipped_value_loss, explained_variance
from baselines.learner_config import LearnerConfig

Network = AdditiveCritic | HeadCritic | TransformerCritic
_NETWORKS: dict[str, type[Network]] = {
    "additive": AdditiveCritic, "head": HeadCritic, "transformer": TransformerCritic
}  # fmt: skip
_REPLAY_DEVICE = torch.device("cpu")  # eight batches with a state per token do not fit beside a large model


class TeamCritic:
    """The critic of an arm: central or own networks, their optimiser, the replay buffer, and the gate on lam_in.

    A value is sigmoid(logit), because scores are in [0, 1]; with value_loss="huber" too.

    Args:
        sizes: Per base model, the width of its hidden states (with critic_network="transformer", its vocabulary).
        base_of: Per agent, the index of the base model that reads its turns.
        config: The arm's configuration.
        seed: Seed of the initial weights, which are the same on every device.
        device: Device of the networks. The replay buffer is in the main memory.

    Attributes:
        started: Whether a batch with scores has set the biases. Before that, values have no meaning.

    Raises:
        ValueError: If one network would have to read the tokens of several tokenizers.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        base_of: Sequence[int],
        config: LearnerConfig,
        seed: int,
        device: torch.device | str = "cpu",
    ) -> None:
        network = config.critic_network
        if len(sizes) > 1 and config.critic == "central" and network != "additive":
            raise ValueError(
                f"critic_network={network!r} with critic='central' and agents on several bases: expected 'additive', "
                "because the tokens of one history would come from several tokenizers"
            )
        generator = torch.Generator().manual_seed(seed)
        self.config, self.device = config, torch.device(device)
        # The networks draw their initial weights one after another from one generator, in the order of the agents.
        bases_read = [tuple(range(len(sizes)))] if config.critic == "central" else [(base,) for base in base_of]
        shapes = [CriticShape(tuple(sizes), tuple(base_of), bases, config.credit == "token") for bases in bases_read]
        self.networks = nn.ModuleList([_NETWORKS[network](shape, generator) for shape in shapes]).to(self.device)
        self.optimizer = torch.optim.AdamW(
            self.networks.parameters(), lr=config.critic_learning_rate, weight_decay=config.critic_weight_decay
        )
        self.replay: deque[tuple[TurnFeatures, Tensor, Tensor]] = deque(maxlen=config.replay_batches)
        self.running_ev: float | None = None
        self.started = False
        self.bad_steps = 0  # steps that were skipped because the loss was not finite

    def logits(self, features: TurnFeatures) -> Tensor:
        """Return logits [B, K, U], each turn through its agent's network; without meaning at padded turns."""
        if self.config.critic == "central":
            return self.networks[0](features, visible_turns(features.mask))
        logits = torch.zeros(features.decisions.shape, device=features.decisions.device)
        for m, network in enumerate(self.networks):
            mine, (rows, columns), keep = features.of_agent(m)
            logits = logits.index_put((rows[keep], columns[keep]), network(mine, visible_turns(keep))[keep])
        return logits

    @torch.no_grad()
    def values(self, features: TurnFeatures) -> Tensor:
        """Return V in [0, 1] before each decision, [B, K, U]."""
        return self.logits(features).sigmoid()

    @torch.no_grad()
    def start(self, features: TurnFeatures, scored: Tensor) -> None:
        """Set every bias at the first call with scored turns, and standardise each network's inputs once.

        The bias is the logit of the mean target of the scored turns: a fresh critic then predicts the success rate, and
        the first advantages are centred. The inputs of a network are standardised by their means and standard
        deviations over all turns of the first batch, from this call on, in which the network reads any.

        Args:
            features: The turns of a batch.
            scored: [B, K] bool, the turns of episodes that have a score.
        """
        if not self.started:
            if not bool(scored.any()):
                return
            rate = features.target[scored].mean().clamp(0.02, 0.98)
            for network in self.networks:
                assert isinstance(network, Network)
                network.bias.fill_(float(rate.logit()))
            self.started = True
        for m, network in enumerate(self.networks):
            if isinstance(network, AdditiveCritic | HeadCritic):
                network.fit(features if self.config.critic == "central" else features.of_agent(m)[0])

    def view_values(self, features: TurnFeatures, episodes: Tensor, views: Sequence[Mapping[str, Tensor]]) -> Tensor:
        """Return V of every agent's view after the last turn of F truncated episodes, [F, M].

        Args:
            features: The turns of the batch: the history that the critic reads before the views.
            episodes: [F] rows of the batch.
            views: For each of the M agents, what ``features.read_views`` returns.
        """
        columns = [self.values(features.followed_by(episodes, view, m))[:, -1, 0] for m, view in enumerate(views)]
        return torch.stack(columns, 1)

    def lam_in(self) -> float:
        """Return the configured lam_in, or 1 while the running explained variance is below ``ev_gate``.

        Source: docs/reference/critic.md, section 2.
        """
        gate_open = self.running_ev is not None and self.running_ev >= self.config.ev_gate
        return self.config.lam_in if gate_open else 1.0

    def observe_explained_variance(self, values: Tensor, features: TurnFeatures, position: Tensor) -> dict[str, float]:
        """Return the explained variance by position, and update the moving average that opens the gate.

        The average covers positions 2..n of each episode's last round: at position 1 nothing of the round is known, and
        in an earlier round a good critic may explain little, because the messages can still be replaced.

        Args:
            features: Turns of a *fresh* batch, which the critic has not been trained on; ``mask`` selects those that
                count.
            values: [B, K, U], their values; the one before a turn's first decision is used.
            position: [B, K] integers, each turn's position in its round, from 0.

        Returns:
            Position, counted from 1, as a string -> explained variance; NaN where all returns are equal.
        """
        first, target, mask = values[..., 0], features.target, features.mask
        by_position = each_position(mask, position, first, target, explained_variance)
        last_round = features.round == features.round.masked_fill(~mask, -1).amax(1, keepdim=True)
        at_the_end = each_position(mask & last_round, position, first, target, explained_variance)
        later = [ev for p, ev in at_the_end.items() if p != "1" and not math.isnan(ev)]
        if later:
            now = sum(later) / len(later)
            past = self.running_ev
            self.running_ev = now if past is None else 0.8 * past + 0.2 * now
        return by_position

    def train(self, features: TurnFeatures, values: Tensor, returns: Tensor, epochs: int) -> float:
        """Add a batch to the replay buffer and train on all batches in it.

        Args:
            features: The turns of the new batch.
            values: [B, K, U], their values before this update; used by the clipped Huber loss.
            returns: [B, K, U], their GAE returns; used by the Huber loss.
            epochs: Passes over the replay buffer.

        Returns:
            The mean loss of the last epoch; NaN if no step of it was finite.
        """
        self.replay.append((features.to(_REPLAY_DEVICE), values.to(_REPLAY_DEVICE), returns.to(_REPLAY_DEVICE)))
        losses: list[float] = []
        for _ in range(epochs):
            losses = [loss for batch in self.replay if math.isfinite(loss := self._step(*batch))]
        return sum(losses) / len(losses) if losses else math.nan

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next update depends on, as tensors and plain values."""
        return {
            "networks": self.networks.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "replay": [({f.name: getattr(x, f.name) for f in fields(x)}, *rest) for x, *rest in self.replay],
            "running_ev": self.running_ev,
            "started": self.started,
            "bad_steps": self.bad_steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        self.networks.load_state_dict(state["networks"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.replay.clear()
        for x, values, returns in state["replay"]:
            features = TurnFeatures(**x).to(_REPLAY_DEVICE)
            self.replay.append((features, values.to(_REPLAY_DEVICE), returns.to(_REPLAY_DEVICE)))
        self.running_ev, self.started = state["running_ev"], state["started"]
        self.bad_steps = state["bad_steps"]

    def _step(self, features: TurnFeatures, old: Tensor, returns: Tensor) -> float:
        features, old, returns = features.to(self.device), old.to(self.device), returns.to(self.device)
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
    mask: Tensor, position: Tensor, a: Tensor, target: Tensor, statistic: Callable[[Tensor, Tensor], float]
) -> dict[str, float]:
    """Return ``statistic(a, target)`` over the turns at each position of a round; tensors are [B, K].

    The keys are positions counted from 1, as strings.
    """
    positions = position[mask].unique().tolist()
    return {str(p + 1): statistic(a[at], target[at]) for p in positions for at in [mask & (position == p)]}


def visible_turns(mask: Tensor) -> Tensor:
    """Return [B, K, K] bool, True where turn k reads turn j: j < k and both count. mask: [B, K]."""
    k = mask.shape[1]
    return torch.ones(k, k, dtype=torch.bool, device=mask.device).tril(-1) & mask.unsqueeze(1) & mask.unsqueeze(2)
