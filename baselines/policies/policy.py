"""One frozen base and the policies that play on it; the base alone is the reference policy pi_0."""

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
    """logprobs, entropy: [N, T] of each action token at the sampling temperature; 0 where the mask is False.
    gap: [N, T] log-probability of the likeliest token minus the chosen one's (0: the mode was chosen)."""

    logprobs: Tensor
    entropy: Tensor
    gap: Tensor


class Policies(Protocol):
    """What a learner trains: a ``SharedBasePolicy``, or a ``TeamPolicy`` with several bases.

    agents: all of them. adapter_of: agent to the name of its weights; scripted agents have none, and are not there.
    blocks: the trained names in the update order, each with the agents that share it. hidden_sizes, vocabulary_sizes:
    of the bases.
    """

    agents: tuple[str, ...]
    adapter_of: dict[str, str]
    blocks: dict[str, tuple[str, ...]]

    @property
    def hidden_sizes(self) -> tuple[int, ...]: ...

    @property
    def vocabulary_sizes(self) -> tuple[int, ...]: ...

    def of(self, agent: str) -> SharedBasePolicy:
        """The policies on the agent's base, which reads its turns."""

    def base_of(self, agent: str) -> int:
        """Which of the bases that is."""


class SharedBasePolicy(nn.Module):
    """The policies on one base: ``use(agent)`` makes its weights the active ones, ``use(None)`` the bare reference.

    base: a causal language model; its weights are frozen. agents: a LoRA adapter each (lora None: a full copy of the
    base each), so that every policy starts as pi_0 exactly. seed: for what is drawn at first. sharing: agent to the
    name of an adapter; agents that name the same one share it, the others have one of their own under their own name.
    frozen: agents that play and are not trained. scripted: agents that others play for; the reference reads their
    turns, and they have no weights.
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
            base.set_attn_implementation("eager")  # its backward pass is twice as fast there as the fused one's
        names = list(dict.fromkeys(self.adapter_of.values()))
        self.weights: Weights = (
            FullWeights(base, names, self.blocks) if lora is None else LoraWeights(base, names, self.blocks, lora, seed)
        )

    def of(self, agent: str) -> SharedBasePolicy:
        """Itself: all agents are on one base."""
        return self

    def base_of(self, agent: str) -> int:
        """The only one."""
        return 0

    @property
    def hidden_sizes(self) -> tuple[int, ...]:
        """The only one's."""
        return (self.hidden_size,)

    @property
    def vocabulary_sizes(self) -> tuple[int, ...]:
        """The only one's."""
        return (int(self.causal_lm.get_input_embeddings().num_embeddings),)

    def adapter_parameters(self, agent: str) -> list[nn.Parameter]:
        """The parameters of one agent's weights (shared or its own) and of nothing else."""
        return self.weights.parameters_of(self.adapter_of[agent])

    @contextlib.contextmanager
    def use(self, agent: str | None) -> Iterator[None]:
        """Within the block forward passes are those of ``agent``; of the reference pi_0 when it is None or scripted.

        On a base of 16 bits the trained fp32 weights are cast to its type in each forward pass (their gradients and
        updates stay fp32). No cast is cached: an optimiser step inside the block would make it stale.
        """
        autocast = torch.autocast(self._device, self._dtype, enabled=self._dtype != torch.float32, cache_enabled=False)
        with autocast, self.weights.active(None if agent is None else self.adapter_of.get(agent)):
            yield

    @property
    def causal_lm(self) -> Any:
        """The model that acts now."""
        return self.weights.causal_lm

    @property
    def backbone(self) -> nn.Module:
        """The transformer below the output head, adapters included."""
        return self.causal_lm.get_decoder()

    @property
    def head(self) -> nn.Module:
        """Hidden states to logits."""
        return self.causal_lm.get_output_embeddings()

    @property
    def hidden_size(self) -> int:
        """H, the width of the backbone's last hidden states."""
        return int(self.causal_lm.config.get_text_config().hidden_size)

    def hidden(self, turns: AgentTurns, rows: slice) -> Tensor:
        """Last hidden states of prompt + action under whatever ``use`` selected: [n, L, H]."""
        mask = turns.token_mask[rows]
        length = int(mask.sum(-1).max())
        ids = turns.tokens[rows, :length]
        return self.backbone(input_ids=ids, attention_mask=mask[:, :length].long(), use_cache=False).last_hidden_state

    def token_scores(self, hidden: Tensor, turns: AgentTurns, rows: slice, temperature: float) -> TokenScores:
        """What the head says of the action's tokens, given ``hidden`` [n, L, H]: see TokenScores, [n, T]."""
        mask = turns.action_mask[rows]
        at = predicting_positions(turns, rows)
        states = hidden.gather(1, at.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))
        logits = self.head(states).float() / temperature
        logp = logits.log_softmax(-1)
        chosen_ids = turns.tokens[rows].gather(1, (at + 1).clamp(max=turns.tokens.shape[1] - 1))
        chosen = logp.gather(-1, chosen_ids.unsqueeze(-1)).squeeze(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        gap = logp.max(-1).values - chosen
        return TokenScores(*(x.masked_fill(~mask, 0.0) for x in (chosen, entropy, gap)))

    def scores(self, turns: AgentTurns, rows: slice, temperature: float) -> TokenScores:
        """``token_scores`` of a fresh forward pass."""
        return self.token_scores(self.hidden(turns, rows), turns, rows, temperature)

    @property
    def context_length(self) -> int | None:
        """How many tokens the base reads at most; None if its configuration does not say."""
        return getattr(self.causal_lm.config.get_text_config(), "max_position_embeddings", None)


def adapters(agents: Sequence[str], sharing: Mapping[str, str]) -> dict[str, str]:
    """Agent to adapter. ValueError for no agents, for a name in ``sharing`` that is no agent's, and for an adapter's
    name that peft or a file system would misread."""
    if not agents:
        raise ValueError("agents=[]: expected at least one agent")
    for agent in sharing:
        if agent not in agents:
            raise ValueError(f"sharing has the agent {agent!r}: expected one of {', '.join(agents)}")
    adapter_of = {agent: sharing.get(agent, agent) for agent in agents}
    for agent, adapter in adapter_of.items():
        if not isinstance(adapter, str) or not _ADAPTER.fullmatch(adapter):
            raise ValueError(
                f"adapter {adapter!r} of agent {agent!r}: expected letters, digits, _ and - alone, as it is a folder's "
                "name and a part of its parameters'; sharing={agent: name} gives an agent's adapter another name"
            )
    return adapter_of


def update_blocks(adapter_of: Mapping[str, str], frozen: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The trained adapters, each with the agents that are updated together because they share it.

    ValueError for a frozen name that is no agent's, and for an adapter that only some of its agents freeze.
    """
    for agent in frozen:
        if agent not in adapter_of:
            raise ValueError(f"frozen has the agent {agent!r}: expected one of {', '.join(adapter_of)}")
    blocks: dict[str, tuple[str, ...]] = {}
    for agent, adapter in adapter_of.items():
        blocks[adapter] = (*blocks.get(adapter, ()), agent)
    for adapter, sharers in blocks.items():
        if 0 < sum(agent in frozen for agent in sharers) < len(sharers):
            raise ValueError(f"frozen={sorted(frozen)}: expected all or none of {', '.join(sharers)} ({adapter!r})")
    return {adapter: sharers for adapter, sharers in blocks.items() if sharers[0] not in frozen}


def predicting_positions(turns: AgentTurns, rows: slice) -> Tensor:
    """[n, T]: position prompt_length - 1 + j predicts action token j; clamped into the sequence where masked."""
    steps = torch.arange(turns.action_mask.shape[1])
    at = turns.prompt_length[rows].unsqueeze(-1) - 1 + steps
    length = int(turns.token_mask[rows].sum(-1).max())
    return at.clamp(max=length - 1)


def row_blocks(count: int, size: int) -> list[slice]:
    """Consecutive slices of at most ``size`` rows that cover ``count``."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
