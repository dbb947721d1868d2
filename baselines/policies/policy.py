"""The policies on one frozen base model. The base model alone is the reference policy pi_0.

Axes: N turns of one agent, n turns of a forward pass, L tokens of prompt and action, T tokens of an action, H the
width of the hidden states.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from baselines.policies.head import chosen_scores, chunk_positions, head_is_plain, own_logits
from baselines.policies.prompt_states import PromptBlock, PromptStates, read_after, read_prompts
from baselines.policies.prompt_store import PromptStore
from baselines.policies.shared_prefix import attention_layers, longest_shareable, read_with_prefix, shared_tokens
from baselines.policies.weights import FullWeights, LoraSettings, LoraWeights, Weights, weights_state
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
    def device(self) -> torch.device:
        """The device of the base models, on which batches are trained."""

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
        invocation_ids: Token ids that activate the adapters; not empty if ``lora.activated``.

    Attributes:
        versions: Optimiser steps so far, by name of trained weights.
        invocation_ids: The token ids that activate the adapters; empty if they are always active.
        store: What the models of a team have read in this rollout or update; empty outside ``prompts_kept``.

    Raises:
        ValueError: If an agent or the name of an adapter is invalid, only some agents of an adapter are frozen, or the
            model's class is not supported, or not with activated adapters.
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
        invocation_ids: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.agents = tuple(agents)
        self.adapter_of = adapters([a for a in agents if a not in scripted], sharing or {})
        self.blocks = update_blocks(self.adapter_of, frozen)
        self.versions = dict.fromkeys(self.adapter_of.values(), 0)
        self._plain_head = head_is_plain(base)
        self._longest_shareable = longest_shareable(base.config)
        self.invocation_ids = tuple(invocation_ids)
        if (lora is not None and lora.activated) != bool(self.invocation_ids):
            raise ValueError(
                f"invocation_ids={self.invocation_ids}: expected token ids with LoraSettings(activated=True), else none"
            )
        self._layers = len(attention_layers(base.config) or ())
        if self.invocation_ids and not self._layers:
            raise ValueError(
                f"lora.activated: the cache of model class {type(base).__name__} holds more than keys and values, so "
                "that an adapter cannot continue what the base has read; expected lora.activated = false"
            )
        self.store = PromptStore(0)
        weight = base.get_output_embeddings().weight
        self._dtype = weight.dtype
        if self._dtype != torch.float32 and weight.device.type == "cpu":
            base.set_attn_implementation("eager")  # on a CPU its backward pass is twice as fast as the fused kernel's
        names = list(dict.fromkeys(self.adapter_of.values()))
        self.weights: Weights = (
            FullWeights(base, names, self.blocks)
            if lora is None
            else LoraWeights(base, names, self.blocks, lora, seed, self.invocation_ids)
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

    def version(self, agent: str | None) -> int:
        """Return how many optimiser steps an agent's weights have been trained for; 0 for the reference policy."""
        return 0 if agent is None else self.versions.get(self.adapter_of.get(agent, ""), 0)

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
        with self._autocast(), self.weights.active(None if agent is None else self.adapter_of.get(agent)):
            yield

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self._dtype == torch.float32:
            return contextlib.nullcontext()
        # No cast is cached: an optimiser step inside the block would make the cached weights stale.
        return torch.autocast(self.device.type, self._dtype, cache_enabled=False)

    @property
    def device(self) -> torch.device:
        """The device of the base model, on which all tensors of ``hidden`` and ``token_scores`` are."""
        return self.head.weight.device

    @property
    def causal_lm(self) -> Any:
        """The active causal language model."""
        return self.weights.causal_lm

    @property
    def backbone(self) -> nn.Module:
        """The active transformer below the output head, including the adapter."""
        return self.causal_lm.get_decoder()

    @property
    def head(self) -> Any:
        """The linear layer of the output head. ``logits`` also applies what the model's class does around it."""
        return self.causal_lm.get_output_embeddings()

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits [n, V] of last hidden states [n, H] under the active policy."""
        return self.head_of(self.causal_lm)(states)

    def head_of(self, causal_lm: Any) -> Callable[[Tensor], Tensor]:
        """Return the function from last hidden states [n, H] to logits [n, V] of a model of the base's class.

        It stays that model's when another policy is activated.
        """
        return causal_lm.get_output_embeddings() if self._plain_head else functools.partial(own_logits, causal_lm)

    @property
    def hidden_size(self) -> int:
        """The width H of the backbone's last hidden states."""
        return int(self.causal_lm.config.get_text_config().hidden_size)

    def shared_tokens(self, turns: AgentTurns) -> int:
        """Return how many first tokens of some turns a pass reads once for all of them (``shared_prefix``)."""
        return 0 if self._continues(turns) else shared_tokens(turns, self._longest_shareable)

    def hidden(self, turns: AgentTurns, *, share_prefix: bool = True) -> Tensor:
        """Return the last hidden states of prompt and action under the active policy, [n, L, H].

        L is the length of the longest of these turns; padding beyond it is not read. The states are 0 at positions
        before ``turns.base_tokens``, where the base alone reads: only its keys and values are needed.

        Args:
            turns: n turns of an agent, on the policy's device.
            share_prefix: Whether a prefix that all turns begin with is read once. Gradient checkpointing needs False.
        """
        if self._continues(turns):
            ids = turns.tokens[:, : int(turns.base_tokens.max())]
            prompts = self.store.states(self, ids, turns.base_tokens, self.read_prompts)
            return read_after(self.backbone, prompts, turns)
        length = longest(turns.token_mask)
        ids, mask = turns.tokens[:, :length], turns.token_mask[:, :length].long()
        if share_prefix and (shared := self.shared_tokens(turns)):
            return read_with_prefix(self.backbone, self.causal_lm.config, ids, mask, shared)
        return self.backbone(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state

    def _continues(self, turns: AgentTurns) -> bool:
        """Return whether a pass continues what the base alone has read of some turns."""
        return bool(self.invocation_ids) and bool(turns.base_tokens.any())

    def read_prompts(self, ids: Tensor, lengths: Tensor, before: PromptStates | None = None) -> PromptBlock:
        """Return the keys and values of prompts under the base alone, whichever policy is active.

        Args:
            ids: [n, P] token ids, padded on the right, on the policy's device.
            lengths: [n] tokens of each prompt.
            before: Keys and values of the first tokens of each prompt under the base, at least one token less than the
                prompt has; None reads all tokens.
        """
        with self.use(None):
            return read_prompts(self.backbone, ids, lengths, self._layers, before)

    def reader(self, adapter: str | None) -> Hashable:
        """Return the key of an adapter in ``store``, which differs as soon as its weights have changed.

        Args:
            adapter: Name of the weights; None for the base alone, whose key is the policy itself.
        """
        return self if adapter is None else (self, adapter, weights_state(self.weights, adapter))

    def token_scores(self, hidden: Tensor, turns: AgentTurns, temperature: float) -> TokenScores:
        """Return the scores of the action's tokens.

        Args:
            hidden: [n, L, H], what ``hidden()`` returned.
            turns: The n turns of ``hidden``.
            temperature: The sampling temperature, which the logits are divided by.
        """
        mask = turns.action_mask
        row, step = true_positions(mask)
        at = turns.prompt_length[row] + step
        # Only the positions that predict action tokens go through the head.
        states, chosen = hidden[row, at - 1], turns.tokens[row, at]
        positions = chunk_positions(self.head.weight.shape[0])
        scores = chosen_scores(self.head_of(self.causal_lm), states, chosen, temperature, positions)
        blank = torch.zeros(mask.shape, device=mask.device)
        return TokenScores(*(blank.index_put((row, step), of_tokens) for of_tokens in scores))

    def scores(self, turns: AgentTurns, temperature: float, *, share_prefix: bool = True) -> TokenScores:
        """Return ``token_scores`` after a forward pass. ``share_prefix``: see ``hidden``."""
        return self.token_scores(self.hidden(turns, share_prefix=share_prefix), turns, temperature)

    @property
    def context_length(self) -> int | None:
        """Maximum number of tokens that the base model reads; None if its configuration does not limit it."""
        return getattr(self.causal_lm.config.get_text_config(), "max_position_embeddings", None)


@contextlib.contextmanager
def prompts_kept(policies: Policies, limit: int) -> Iterator[None]:
    """Store keys and values of what the models read within the block, so that later turns and passes begin from them.

    A rollout stores the turns of agents that act again. For activated adapters it stores the prompts that the base has
    read, and so does an update. Within such a block, the block of another call has no effect: an update in it finds the
    prompts of its rollout.

    Args:
        policies: The policies.
        limit: Largest number of bytes of the keys and values of all bases.
    """
    store, bases = PromptStore(limit), set(map(policies.of, policies.agents))
    if any(base.store.limit for base in bases):
        yield
        return
    for base in bases:
        base.store = store
    try:
        yield
    finally:
        for base in bases:
            base.store = PromptStore(0)


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


def longest(mask: Tensor) -> int:
    """Return the largest number of True in a row of a mask [n, T].

    On the meta device, whose tensors have no values, it is T.
    """
    return mask.shape[1] if mask.is_meta else int(mask.sum(-1).max())


def true_positions(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return row and column, [A] each, of every True of a mask [n, T].

    On the meta device, whose tensors have no values, they are those of all positions.
    """
    if not mask.is_meta:
        row, column = mask.nonzero(as_tuple=True)
        return row, column
    everywhere = torch.arange(mask.numel(), device=mask.device)
    return everywhere // mask.shape[1], everywhere % mask.shape[1]


def predicting_positions(turns: AgentTurns) -> Tensor:
    """Return [n, T], the position that predicts each action token: prompt_length - 1 + j for token j.

    Positions of padded tokens are clamped into the sequence; their scores must be masked.
    """
    mask = turns.action_mask
    steps = torch.arange(mask.shape[1], device=mask.device)
    at = turns.prompt_length.unsqueeze(-1) - 1 + steps
    return at.clamp(max=longest(turns.token_mask) - 1)
