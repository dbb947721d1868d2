"""Micro-batches: the division of an agent's turns into forward and backward passes that fit a memory budget.

The passes are chosen by a calculation (``pass_memory``), never by the memory that is free at the moment, so the same
settings give the same passes and the same numbers bit for bit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from baselines.errors import RunError
from baselines.models.out_of_memory import first_line, free_cache, is_out_of_memory
from baselines.models.shape import shape_of
from baselines.policies.checkpointing import checkpointed_layers
from baselines.policies.pass_memory import PassMemory
from baselines.policies.policy import SharedBasePolicy
from baselines.policies.weights import LoraWeights
from baselines.trajectory import AgentTurns

Checkpointing = Literal["auto", "on", "off"]
CPU_PASS_GIB = 2.0
"""Default memory of a pass on a CPU, in GiB."""
BUSY_TOKENS = 2048
"""Tokens in a pass that keep an accelerator busy; with fewer, "auto" turns gradient checkpointing on."""
GIB = 2**30
_T = TypeVar("_T")
log = logging.getLogger("baselines")


class MemoryExhausted(RunError):
    """The memory does not hold the smallest pass: one turn, or what is needed before the first pass."""


class PassLimits(NamedTuple):
    """The limits of one forward and backward pass.

    Attributes:
        gib: Memory of a pass by the formula of ``PassMemory.peak``, in GiB.
        turns: Largest number of turns.
        checkpointing: Gradient checkpointing: "on", "off", or "auto" for passes of long turns only (``MicroBatches``).
    """

    gib: float = CPU_PASS_GIB
    turns: int = 128
    checkpointing: Checkpointing = "auto"


class MicroBatch(NamedTuple):
    """The turns of one pass.

    Attributes:
        rows: [n] their rows among the agent's turns, ascending.
        checkpointing: Whether the backward pass computes the layers again.
    """

    rows: Tensor
    checkpointing: bool


class _Pass(NamedTuple):
    """The pass in progress. After an out-of-memory error the next passes are smaller than it.

    Attributes:
        turns: Number of turns.
        length: Tokens of the longest of them.
        bytes: Memory by the formula.
        checkpointing: Whether it is checkpointed.
        may_checkpoint: Whether the settings and the model allow checkpointing.
    """

    turns: int
    length: int
    bytes: int
    checkpointing: bool
    may_checkpoint: bool


@dataclass
class MicroBatches:
    """Divides turns into passes, and makes the passes smaller after an out-of-memory error.

    Turns are sorted by length, so that little of a pass is padding. Reading (no gradient) and training use the same
    passes. With ``limits.checkpointing = "auto"`` a pass is checkpointed if one turn of its length would not fit
    otherwise; on an accelerator also if what fits would be fewer than ``BUSY_TOKENS`` tokens.

    Attributes:
        limits: The limits of a pass.
        budget: Bytes of a pass. They shrink after an out-of-memory error.
        out_of_memory: Number of out-of-memory errors so far.
    """

    limits: PassLimits = field(default_factory=PassLimits)
    budget: int = field(init=False)
    out_of_memory: int = field(init=False, default=0)
    _current: _Pass | None = field(init=False, default=None, repr=False)
    _device: str = field(init=False, default="", repr=False)
    _models: dict[SharedBasePolicy, tuple[PassMemory, bool]] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.budget = int(self.limits.gib * GIB)

    def split(self, policy: SharedBasePolicy, turns: AgentTurns) -> Iterator[MicroBatch]:
        """Yield the passes that cover all turns. Turns on the meta device, which have no lengths, are one pass.

        Args:
            policy: The policies on the base that reads the turns.
            turns: N turns of one agent.
        """
        device = turns.tokens.device
        self._device = device.type
        if turns.tokens.is_meta:
            yield MicroBatch(torch.arange(len(turns), device=device), self.limits.checkpointing == "on")
            return
        if policy not in self._models:
            self._models[policy] = pass_memory(policy), self._can_checkpoint(policy)
        memory, possible = self._models[policy]
        lengths, actions = turns.token_mask.sum(-1).tolist(), turns.action_mask.sum(-1).tolist()
        waiting = sorted(range(len(turns)), key=lambda i: -lengths[i])  # stable: equal lengths stay in order
        shared = policy.shared_tokens(turns)
        under_adapter = int((turns.token_mask.sum(-1) - turns.base_tokens).max()) if waiting else 0
        while waiting:
            longest = lengths[waiting[0]]
            base = max(0, longest - under_adapter)  # the fewest first tokens of a turn that the base alone reads
            stored = policy.store.bytes
            on = possible and self.checkpoints(
                memory, longest, actions[waiting[0]], self._device, base=base, stored=stored
            )
            peak = partial(memory.peak, length=longest, checkpointing=on, shared=0 if on else shared, base=base)
            rows, size = self._fill(peak, waiting, actions, self.budget - stored)
            may_checkpoint = possible and self.limits.checkpointing != "off"
            self._current = _Pass(len(rows), lengths[rows[0]], size, on, may_checkpoint)
            yield MicroBatch(torch.tensor(sorted(rows), device=device), on)
            waiting = waiting[len(rows) :]

    def _fill(
        self, peak: Callable[..., int], waiting: Sequence[int], actions: Sequence[int], budget: int
    ) -> tuple[Sequence[int], int]:
        """Return the first of the waiting turns that fit one pass, at least one, and the bytes of that pass.

        Args:
            peak: Function from the number of turns and their action tokens to the bytes of a pass.
            waiting: Rows of the turns, the longest first.
            actions: Action tokens of every turn.
            budget: Bytes of the pass.
        """
        if len(waiting) <= self.limits.turns:  # the common case of a small model: everything fits
            whole = peak(len(waiting), actions=sum(actions[row] for row in waiting))
            if whole <= budget:
                return waiting, whole
        total = actions[waiting[0]]
        size, count = peak(1, actions=total), 1
        for row in waiting[1 : self.limits.turns]:
            total += actions[row]
            larger = peak(count + 1, actions=total)
            if larger > budget:
                break
            size, count = larger, count + 1
        return waiting[:count], size

    def checkpoints(
        self, memory: PassMemory, length: int, actions: int, device: str, *, base: int = 0, stored: int = 0
    ) -> bool:
        """Return whether passes of turns of a length are checkpointed.

        Args:
            memory: The memory formula of the model.
            length: Tokens of a turn.
            actions: Action tokens of a turn.
            device: Type of the device.
            base: First tokens of a turn that the base alone reads.
            stored: Bytes of the budget that are taken by stored prompts.
        """
        if self.limits.checkpointing != "auto":
            return self.limits.checkpointing == "on"
        wanted = 1 if device == "cpu" else max(1, min(self.limits.turns, BUSY_TOKENS // (length - base)))
        return memory.peak(wanted, length, wanted * actions, checkpointing=False, base=base) > self.budget - stored

    def _can_checkpoint(self, policy: SharedBasePolicy) -> bool:
        try:
            return bool(checkpointed_layers(policy.causal_lm))
        except ValueError:
            if self.limits.checkpointing == "on":
                raise
            return False

    def repeat(self, work: Callable[[], _T]) -> _T:
        """Return what ``work`` returns. After an out-of-memory error, halve the budget of a pass and call it again.

        Args:
            work: A function that iterates over the passes of ``split``. It may be called several times, so it has to
                discard first what a failed call left behind, such as accumulated gradients.

        Raises:
            MemoryExhausted: The pass that failed consisted of one turn, with gradient checkpointing if the settings and
                the model allow it; or the memory was exhausted before the first pass, so smaller ones do not help.
        """
        while True:
            self._current = None
            try:
                return work()
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                reason = first_line(error)
            # Here the exception, and with it the tensors of the failed pass, has been freed.
            self._halve(reason)

    def _halve(self, reason: str) -> None:
        current = self._current
        if current is None:
            raise MemoryExhausted(
                f"out of memory before the first pass ({reason}): expected more memory, a smaller model, or fewer "
                "episodes in a batch"
            )
        if current.turns == 1 and (current.checkpointing or not current.may_checkpoint):
            raise MemoryExhausted(
                f"out of memory with a single turn of {current.length} tokens in a pass ({reason}): expected more "
                "memory, a smaller model, or shorter prompts or replies (decoding.max_prompt_tokens, "
                "decoding.max_new_tokens)"
                + (', or gradient_checkpointing = "auto"' if self.limits.checkpointing == "off" else "")
            )
        self.out_of_memory += 1
        for policy in self._models:
            policy.store.close()
        self.budget = min(self.budget, current.bytes) // 2
        free_cache(self._device)
        log.warning(
            "out of memory in a pass of %d turns of up to %d tokens (%s): from now on a pass is limited to %.3g GiB",
            current.turns, current.length, reason, self.budget / GIB,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Return the budget, the limit that it is derived from, and the number of out-of-memory errors."""
        return {"budget": self.budget, "limit": self.limits.gib, "out_of_memory": self.out_of_memory}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned. A budget for another limit, such as that of another GPU, is ignored."""
        self.out_of_memory = state["out_of_memory"]
        if state["limit"] == self.limits.gib:
            self.budget = state["budget"]


def pass_memory(policy: SharedBasePolicy) -> PassMemory:
    """Return the memory formula of a policy's passes."""
    model: Any
    if isinstance(policy.weights, LoraWeights):
        model, rank = policy.causal_lm, next(iter(policy.weights.model.peft_config.values())).r
    else:
        model, rank = policy.weights.base, None
    sixteen_bit = model.get_output_embeddings().weight.dtype in (torch.bfloat16, torch.float16)
    eager = model.config._attn_implementation == "eager"
    return PassMemory(shape_of(model.config), 2 if sixteen_bit else 4, rank, eager)


def in_order(rows: Sequence[Tensor], parts: Sequence[Tensor]) -> Tensor:
    """Return the results of all passes, [N, ...], in the order of the turns.

    Args:
        rows: [n] for each pass, the rows of its turns.
        parts: [n, ...] for each pass, its results.
    """
    return torch.cat(list(parts))[torch.argsort(torch.cat(list(rows)))]
