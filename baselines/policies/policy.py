"""The policies on one frozen base model. The base model alone is the reference policy pi_0.

Axes: N turns of one agent, n turns of a forward pass, L tokens of prompt and action, T tokens of an action, H the
width of the hidden states.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from baselines.policies.weights import FullWeights, LoraSettings, LoraWeights, Weights
from baselines.trajectory import AgentTurns

_ADAPTER = re.compile(r"[\w-]+")


class TokenScores(NamedTuple):
    """Scores of action tokens at the sampling temperature; 0 where the action mask is False.

    Attributes:
        logprobs: [n, T] log-probability of each token.
        entropy: [n, T] entropy of the distribution that the token was drawn from, in nats.
        gap: [n, T] log-probability of the most likely token minus that of the chosen one; 0 if the mode was chosen.
    """

    logprobs: Tensor
    entropy: Tensor
    gap: Tensor


class Policies(Protocol):
    """The policies that a learner trains: a ``SharedBasePolicy``, or a ``TeamPolicy`` on several base models.

    Attributes:
        agents: The names of all agents.
        adapter_of: Agent -> name of its weights. Scripted agents have no weights and are missing.
        blocks: Name of trained weights -> the agents that use them, in the update order.
        hidden_sizes: Width of the hidden states of each base model.
        vocabulary_sizes: Vocabulary size of each base model.
    """

    agents: tuple[str, ...]
    adapter_of: dict[str, str]
    blocks: dict[str, tuple[str, ...]]

    @property
    def hidden_sizes(self) -> tuple[int, ...]: ...

    @property
    def vocabulary_sizes(self) -> tuple[int, ...]: ...

    def of(self, agent: str) -> SharedBasePolicy:
        """Return the policies on the base model that reads the agent's turns."""

    def base_of(self, agent: str) -> int:
        """Return the index of that base model."""


class SharedBasePolicy(nn.Module):
    """The policies on one frozen base model.

    ``use(agent)`` activates an agent's weights, ``use(None)`` the base model alone, which is pi_0. Every policy starts
    exactly as pi_0.

    Args:
        base: A causal language model of transformers. Its weights are frozen.
        agents: Names of the agents.
        lora: Rank and alpha of the agents' LoRA adapters; None trains a full copy of the base model per agent.
        seed: Seed of the initial weights of the adapters.
        sharing: Agent -> name of its adapter. Agents with the same name share one adapter; an agent that is not listed
            has its own, under its own name.
        frozen: Agents that act and are not trained.
        scripted: Agents whose actions come from a script. They have no weights; the base model reads their turns.

    Raises:
        ValueError: If an agent or the name of an adapter is invalid, or only some agents of an adapter are frozen.
    """

    def __init__(
        self,
        base: Any,
        agents: Sequence[str],
        lora: LoraSettings | None,
        seed: int,
        *,
        sharing: Mapping[str, str] | None = None,
        frozen: Collection[str] = (),
        scripted: Collection[str] = (),
    ) -> None:
        super().__init__()
        self.agents = tuple(agents)
        self.adapter_of = adapters([a for a in agents if a not in scripted], sharing or {})
        self.blocks = update_blocks(self.adapter_of, frozen)
        weight = next(base.get_output_embeddings().parameters())
        self._device, self._dtype = weight.device.type, weight.dtype
        if self._dtype != torch.float32 and self._device == "cpu":
            base.set_attn_implementation("eager")  # on a CPU its backward pass is twice as fast as the fused kernel's
        names = list(dict.fromkeys(self.adapter_of.values()))
        self.weights: Weights = (
            FullWeights(base, names, self.blocks) if lora is None else LoraWeights(base, names, self.blocks, lora, seed)
        )

    def of(self, agent: str) -> SharedBasePolicy:
        """Return self: all agents use one base model."""
        return self

    def base_of(self, agent: str) -> int:
        """Return 0, the index of the only base model."""
        return 0

    @property
    def hidden_sizes(self) -> tuple[int, ...]:
        """Width of the hidden states of the base model, as a tuple of one."""
        return (self.hidden_size,)

    @property
    def vocabulary_sizes(self) -> tuple[int, ...]:
        """Vocabulary size of the base model, as a tuple of one."""
        return (int(self.causal_lm.get_input_embeddings().num_embeddings),)

    def adapter_parameters(self, agent: str) -> list[nn.Parameter]:
        """Return the parameters of an agent's weights (shared or its own) and no others."""
        return self.weights.parameters_of(self.adapter_of[agent])

    @contextlib.contextmanager
    def use(self, agent: str | None) -> Iterator[None]:
        """Activate the policy of an agent within the block.

        On a 16-bit base model the trained fp32 weights are cast to 16 bits in each forward pass; their gradients and
        updates stay fp32.

        Args:
            agent: The agent. None or a scripted agent activates the reference policy pi_0.
        """
        # No cast is cached: an optimiser step inside the block would make the cached weights stale.
        autocast = torch.autocast(self._device, self._dtype, enabled=self._dtype != torch.float32, cache_enabled=False)
        with autocast, self.weights.active(None if agent is None else self.adapter_of.get(agent)):
            yield

    @property
    def causal_lm(self) -> Any:
        """The active causal language model."""
        return self.weights.causal_lm

    @property
    def backbone(self) -> nn.Module:
        """The active transformer below the output head, including the adapter."""
        return self.causal_lm.get_decoder()

    @property
    def head(self) -> nn.Module:
        """The output head, from hidden states to logits."""
        return self.causal_lm.get_output_embeddings()

    @property
    def hidden_size(self) -> int:
        """The width H of the backbone's last hidden states."""
        return int(self.causal_lm.config.get_text_config().hidden_size)

    def hidden(self, turns: AgentTurns, rows: slice) -> Tensor:
        """Return the last hidden states of prompt and action under the active policy, [n, L, H].

        Args:
            turns: The turns of an agent.
            rows: The n turns to read. They are padded to the longest of them, not to the longest of the batch.
        """
        mask = turns.token_mask[rows]
        length = int(mask.sum(-1).max())
        ids = turns.tokens[rows, :length]
        return self.backbone(input_ids=ids, attention_mask=mask[:, :length].long(), use_cache=False).last_hidden_state

    def token_scores(self, hidden: Tensor, turns: AgentTurns, rows: slice, temperature: float) -> TokenScores:
        """Return the scores of the action's tokens.

        Args:
            hidden: [n, L, H], what ``hidden()`` returned.
            turns: The turns of an agent.
            rows: The n turns of ``hidden``.
            temperature: The sampling temperature, which the logits are divided by.
        """
        mask = turns.action_mask[rows]
        at = predicting_positions(turns, rows)
        states = hidden.gather(1, at.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))
        # Only the positions that predict action tokens go through the head, and the softmax is in fp32.
        logits = self.head(states).float() / temperature
        logp = logits.log_softmax(-1)
        chosen_ids = turns.tokens[rows].gather(1, (at + 1).clamp(max=turns.tokens.shape[1] - 1))
        chosen = logp.gather(-1, chosen_ids.unsqueeze(-1)).squeeze(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        gap = logp.max(-1).values - chosen
        return TokenScores(*(x.masked_fill(~mask, 0.0) for x in (chosen, entropy, gap)))

    def scores(self, turns: AgentTurns, rows: slice, temperature: float) -> TokenScores:
        """Return ``token_scores`` after a forward pass."""
        return self.token_scores(self.hidden(turns, rows), turns, rows, temperature)

    @property
    def context_length(self) -> int | None:
        """Maximum number of tokens that the base model reads; None if its configuration does not limit it."""
        return getattr(self.causal_lm.config.get_text_config(), "max_position_embeddings", None)


def adapters(agents: Sequence[str], sharing: Mapping[str, str]) -> dict[str, str]:
    """Return agent -> name of its adapter.

    Raises:
        ValueError: If there are no agents, ``sharing`` names an unknown agent, or a name cannot be an adapter's: peft
            uses it in parameter names, and checkpoints use it as a folder name.
    """
    if not agents:
        raise ValueError("agents=[]: expected at least one agent")
    for agent in sharing:
        if agent not in agents:
            raise ValueError(f"sharing has the unknown agent {agent!r}: expected one of {', '.join(agents)}")
    adapter_of = {agent: sharing.get(agent, agent) for agent in agents}
    for agent, adapter in adapter_of.items():
        if not isinstance(adapter, str) or not _ADAPTER.fullmatch(adapter):
            raise ValueError(
                f"adapter {adapter!r} of agent {agent!r}: expected letters, digits, _ and - only, because the name "
                "becomes a folder and part of parameter names; rename the adapter with sharing={agent: name}"
            )
    return adapter_of


def update_blocks(adapter_of: Mapping[str, str], frozen: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the trained adapters, each with the agents that are updated together because they share it.

    Raises:
        ValueError: If ``frozen`` names an unknown agent, or only some of the agents that share an adapter.
    """
    for agent in frozen:
        if agent not in adapter_of:
            raise ValueError(f"frozen has the unknown agent {agent!r}: expected one of {', '.join(adapter_of)}")
    blocks: dict[str, tuple[str, ...]] = {}
    for agent, adapter in adapter_of.items():
        blocks[adapter] = (*blocks.get(adapter, ()), agent)
    for adapter, sharers in blocks.items():
        if 0 < sum(agent in frozen for agent in sharers) < len(sharers):
            raise ValueError(
                f"frozen={sorted(frozen)}: expected all or none of {', '.join(sharers)}, which share {adapter!r}"
            )
    return {adapter: sharers for adapter, sharers in blocks.items() if sharers[0] not in frozen}


def predicting_positions(turns: AgentTurns, rows: slice) -> Tensor:
    """Return [n, T], the position that predicts each action token: prompt_length - 1 + j for token j.

    Positions of padded tokens are clamped into the sequence; their scores must be masked.
    """
    steps = torch.arange(turns.action_mask.shape[1])
    at = turns.prompt_length[rows].unsqueeze(-1) - 1 + steps
    length = int(turns.token_mask[rows].sum(-1).max())
    return at.clamp(max=length - 1)


def row_blocks(count: int, size: int) -> list[slice]:
    """Return consecutive slices of at most ``size`` rows that cover ``count`` rows."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
