"""One frozen base, one LoRA adapter per agent, and the base alone (adapters off) as the reference policy pi_0."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from peft import LoraConfig, get_peft_model
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import Tensor, nn

from baselines.trajectory import AgentTurns


@dataclass(frozen=True)
class LoraSettings:
    """rank r and alpha of every adapter (W + alpha / r B A, Hu et al. 2021, arXiv 2106.09685); all linear layers."""

    rank: int = 8
    alpha: int = 16

    def __post_init__(self) -> None:
        for name in ("rank", "alpha"):
            if getattr(self, name) < 1:
                raise ValueError(f"LoraSettings {name}={getattr(self, name)!r}: expected at least 1")


class TokenScores(NamedTuple):
    """logprobs, entropy: [N, T] of each action token at the sampling temperature; 0 where the mask is False.
    gap: [N, T] log-probability of the likeliest token minus the chosen one's (0: the mode was chosen)."""

    logprobs: Tensor
    entropy: Tensor
    gap: Tensor


class TeamPolicy(nn.Module):
    """The policies of a team: ``use(agent)`` makes its adapter the active one, ``use(None)`` the bare reference.

    base: a causal language model; its weights are frozen. agents: one adapter each, B = 0 at first, so every policy
    starts as pi_0 exactly. Adapter weights are fp32 whatever the base's type. seed: for the adapters' A matrices.
    sharing: agent to the name of an adapter; agents that name the same one share it, the others have one of their own
    under their own name. frozen: agents that play and are not trained.
    """

    def __init__(
        self,
        base: nn.Module,
        agents: Sequence[str],
        lora: LoraSettings,
        seed: int,
        *,
        sharing: Mapping[str, str] | None = None,
        frozen: Collection[str] = (),
    ) -> None:
        super().__init__()
        self.agents = tuple(agents)
        self.adapter_of = adapters(self.agents, sharing or {})
        self.blocks = update_blocks(self.adapter_of, frozen)
        config = LoraConfig(r=lora.rank, lora_alpha=lora.alpha, target_modules="all-linear", task_type="CAUSAL_LM")
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)  # peft 0.21 still reads it
            torch.manual_seed(seed)  # noqa: TID251 - peft initialises from the global generator, forked here
            first, *others = dict.fromkeys(self.adapter_of.values())
            self.model = get_peft_model(base, config, adapter_name=first)
            for adapter in others:
                self.model.add_adapter(adapter, config)
        self.model.eval()
        weight = next(self.head.parameters())
        self._device, self._dtype = weight.device.type, weight.dtype
        if self._dtype != torch.float32:
            self._speed_up()
        marker = [(name.split("."), p) for name, p in self.model.named_parameters()]
        self._adapter = {adapter: [p for parts, p in marker if adapter in parts] for adapter in (first, *others)}
        self._restore_gradients()

    def _speed_up(self) -> None:
        """For a base of 16 bits: ``use`` casts the adapters' weights, so peft need not cast inputs to fp32; and on
        a CPU plain attention, whose backward pass is twice as fast there as the fused one's on short texts."""
        for module in self.model.modules():
            if isinstance(module, BaseTunerLayer):
                module.cast_input_dtype_enabled = False
        if self._device == "cpu":
            self.model.get_base_model().set_attn_implementation("eager")

    def _restore_gradients(self) -> None:
        """peft's ``set_adapter`` and ``disable_adapter`` freeze the other adapters and thaw the active one: undo that,
        always. The adapters of ``blocks`` are trainable, frozen agents' are not."""
        for adapter, parameters in self._adapter.items():
            for p in parameters:
                p.requires_grad_(adapter in self.blocks)

    def adapter_parameters(self, agent: str) -> list[nn.Parameter]:
        """The parameters of one agent's adapter (shared or its own) and of nothing else."""
        return self._adapter[self.adapter_of[agent]]

    @contextlib.contextmanager
    def use(self, agent: str | None) -> Iterator[None]:
        """Within the block forward passes are those of ``agent``; of the reference pi_0 when it is None.

        On a base of 16 bits the adapters' fp32 weights are cast to its type in each forward pass (their gradients and
        updates stay fp32). No cast is cached: an optimiser step inside the block would make it stale.
        """
        autocast = torch.autocast(self._device, self._dtype, enabled=self._dtype != torch.float32, cache_enabled=False)
        with autocast:
            if agent is None:
                with self.model.disable_adapter():
                    yield
            else:
                self.model.set_adapter(self.adapter_of[agent])
                self._restore_gradients()
                yield
        self._restore_gradients()

    @property
    def backbone(self) -> nn.Module:
        """The transformer below the output head, adapters included."""
        return self.model.get_base_model().get_decoder()

    @property
    def head(self) -> nn.Module:
        """Hidden states to logits."""
        return self.model.get_base_model().get_output_embeddings()

    @property
    def hidden_size(self) -> int:
        """H, the width of the backbone's last hidden states."""
        return int(self.model.get_base_model().config.get_text_config().hidden_size)

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
        return getattr(self.model.get_base_model().config.get_text_config(), "max_position_embeddings", None)


def adapters(agents: Sequence[str], sharing: Mapping[str, str]) -> dict[str, str]:
    """Agent to adapter. ValueError for no agents, and for a name in ``sharing`` that is no agent's."""
    if not agents:
        raise ValueError("agents=[]: expected at least one agent")
    for agent in sharing:
        if agent not in agents:
            raise ValueError(f"sharing has the agent {agent!r}: expected one of {', '.join(agents)}")
    return {agent: sharing.get(agent, agent) for agent in agents}


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
