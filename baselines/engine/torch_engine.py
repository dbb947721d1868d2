"""Generation in torch: batches whose rows enter and leave, on a cache that is written in place.

Each action is sampled by inversion from random numbers of its own. So it does not depend on the other requests in the
batch, up to floating-point rounding of the forward pass.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import torch

from baselines.engine.chat_template import end_of_turn_ids
from baselines.engine.protocol import Completion, GenerationRequest, Sampling
from baselines.engine.running_batch import Row, RunningBatch
from baselines.engine.stopping import StopStrings, end_token_ids
from baselines.errors import RunError
from baselines.models.out_of_memory import first_line, free_cache, is_out_of_memory
from baselines.policies.policy import SharedBasePolicy
from baselines.policies.rollout import ActiveModel, RolloutModels

log = logging.getLogger("baselines")


@dataclass(frozen=True)
class Decoding(Sampling):
    """Settings of generation: how the tokens of an action are chosen, and the size of prompts and batches.

    Attributes:
        max_prompt_tokens: Largest number of prompt tokens, unless the model's context is shorter
            (``TorchEngine.prompt_limit``). Longer prompts lose their oldest messages (``message_window.fit``).
        rows: Largest number of actions that are generated at a time. It is halved where the memory is exhausted.
        prefill_tokens: Largest number of tokens, padding included, in a forward pass that reads prompts. Prompts that
            do not fit are read by further passes; a longer prompt is read alone.
        merge_adapters: Whether the adapter of the agent that acts is merged into a copy of the base, which is faster
            and needs the memory of the base's linear layers once more. "auto": if the copy takes at most an eighth of
            the memory that the run may use, and always on a CPU without a limit. Adapters on a 4-bit base cannot be
            merged.
    """

    max_prompt_tokens: int = 1024
    rows: int = 256
    prefill_tokens: int = 8192
    merge_adapters: Literal["auto", "on", "off"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("max_prompt_tokens", "rows", "prefill_tokens"):
            if getattr(self, name) <= 0:
                raise ValueError(f"Decoding {name}={getattr(self, name)!r}: expected a positive number")

    @property
    def sampling(self) -> Sampling:
        """How tokens are chosen."""
        return Sampling(self.max_new_tokens, self.temperature, self.stop_strings)


@dataclass
class TorchEngine:
    """Generates actions with a ``SharedBasePolicy``; an ``Engine``.

    The requests of several adapters are generated in one batch or one adapter after another, whichever is faster
    (``RolloutModels.mixes``).

    Attributes:
        policy: The policies on one base.
        tokenizer: The tokenizer of the base.
        decoding: Settings of generation.
        merge: Whether adapters are merged into a copy of the base.
        rows: Actions that are generated at a time: ``decoding.rows``, or less after an out-of-memory error.
        out_of_memory: Number of out-of-memory errors so far.
        end_ids: Ids of the tokens that end an action.
        prompt_limit: Largest number of prompt tokens: ``decoding.max_prompt_tokens``, or less where the model's context
            has to hold the action as well.
        invocation_ids: Token ids that activate the adapters; empty if they are always active.

    Raises:
        ValueError: ``decoding.max_new_tokens`` leaves no room for a prompt in the model's context.
    """

    policy: SharedBasePolicy
    tokenizer: Any
    decoding: Decoding
    merge: bool = True
    rows: int = field(init=False)
    out_of_memory: int = field(init=False, default=0)
    end_ids: frozenset[int] = field(init=False)
    prompt_limit: int = field(init=False)
    invocation_ids: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = self.decoding.rows
        self.invocation_ids = self.policy.invocation_ids
        self.prompt_limit = _prompt_limit(self.decoding, self.policy.context_length)
        self.end_ids = end_token_ids(self.policy.causal_lm, self.tokenizer) | end_of_turn_ids(self.tokenizer)
        self._models = RolloutModels(self.policy, merge=self.merge)
        pad = self.tokenizer.pad_token_id
        self._pad_id = self.tokenizer.eos_token_id if pad is None else pad

    @property
    def sampling(self) -> Sampling:
        """How the tokens of the run's actions are chosen."""
        return self.decoding.sampling

    @torch.no_grad()
    def generate(self, requests: Sequence[GenerationRequest]) -> list[Completion]:
        """Return one completion per request, in the order of the requests.

        Raises:
            ValueError: A prompt is empty, or too long for the model's context; or the base alone would read all of it,
                or part of it although no adapter is activated.
            RunError: The memory does not suffice for a single prompt.
        """
        self._check(requests)
        of_adapter: dict[str | None, list[int]] = {}
        for index, request in enumerate(requests):
            of_adapter.setdefault(self._adapter(request), []).append(index)
        if self._models.mixes({adapter: len(indices) for adapter, indices in of_adapter.items()}):
            with self._models.mixed(list(of_adapter)) as model:
                found = self._run(model, self._rows(dict(enumerate(requests))))
            return [found[index] for index in range(len(requests))]
        found = {}
        for indices in of_adapter.values():
            rows = self._rows({index: requests[index] for index in indices})
            with self._models.active(requests[indices[0]].agent) as model:
                found.update(self._run(model, rows))
        return [found[index] for index in range(len(requests))]

    def _adapter(self, request: GenerationRequest) -> str | None:
        """Return the name of the weights that generate; None for the base alone."""
        return None if request.agent is None else self.policy.adapter_of.get(request.agent)

    def _check(self, requests: Sequence[GenerationRequest]) -> None:
        for i, request in enumerate(requests):
            new = request.sampling.max_new_tokens
            room = (self.policy.context_length or math.inf) - new
            if not 0 < len(request.prompt_ids) <= room:
                raise ValueError(
                    f"requests[{i}].prompt_ids has {len(request.prompt_ids)} tokens: expected at least 1, and at most "
                    f"{room} so that max_new_tokens={new} more fit into the model's context"
                )
            most = len(request.prompt_ids) - 1 if self.invocation_ids else 0
            if not 0 <= request.base_tokens <= most:
                raise ValueError(f"requests[{i}].base_tokens={request.base_tokens}: expected 0 to {most}")

    def _rows(self, requests: Mapping[int, GenerationRequest]) -> list[Row]:
        """Return the rows of some requests, those with short prompts first, so that little of a pass is padding."""
        strings = {r.sampling.stop_strings for r in requests.values()}
        stop = {s: StopStrings(self.tokenizer, s) for s in strings}
        order = sorted(requests, key=lambda i: len(requests[i].prompt_ids))
        return [
            Row(i, r, stop[r.sampling.stop_strings], self._adapter(r), self.policy.version(r.agent))
            for i, r in ((i, requests[i]) for i in order)
        ]

    def _run(self, model: ActiveModel, rows: Sequence[Row]) -> dict[int, Completion]:
        """Generate all rows with one model. Return the completions by index of the request."""
        waiting, found = deque(rows), dict[int, Completion]()
        batch = RunningBatch(model, self.end_ids, self._pad_id)
        while waiting or batch.rows:
            entering: list[Row] = []
            try:
                if entering := self._entering(batch, waiting):
                    batch.admit(entering)
                else:
                    batch.step()
                found.update((row.index, row.completion()) for row in batch.take_ended())
                continue
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                reason = first_line(error)
            # Here the exception, and with it the tensors of the failed pass, has been freed.
            begun = list({r.index: r for r in (*batch.rows, *entering) if r.index not in found}.values())
            batch = RunningBatch(model, self.end_ids, self._pad_id)
            self._halve(begun, reason)
            for row in reversed(begun):
                row.restart()
                waiting.appendleft(row)
        return found

    def _entering(self, batch: RunningBatch, waiting: deque[Row]) -> list[Row]:
        """Remove and return the waiting rows that enter now: as many as make a pass over their prompts pay, or none."""
        free = self.rows - len(batch.rows)
        if not (waiting and free > 0 and batch.admits):
            return []
        fitting = self._fitting(waiting, free)
        if batch.rows and fitting == free < min(len(waiting), self.rows // 4):
            return []
        return [waiting.popleft() for _ in range(fitting)]

    def _fitting(self, waiting: Sequence[Row], most: int) -> int:
        """Return how many of the first waiting rows fit a pass over their prompts: at least 1."""
        longest = 0
        for count, row in enumerate(islice(waiting, most)):
            longest = max(longest, len(row.request.prompt_ids))
            if count and (count + 1) * longest > self.decoding.prefill_tokens:
                return count
        return min(most, len(waiting))

    def _halve(self, rows: Sequence[Row], reason: str) -> None:
        """Halve the number of rows at a time, after these did not fit the memory."""
        longest = max(len(row.request.prompt_ids) for row in rows)
        if len(rows) == 1:
            raise RunError(
                f"out of memory while a reply to a single prompt of {longest} tokens was generated ({reason}): "
                "expected more memory, a smaller model, or shorter prompts or replies (decoding.max_prompt_tokens, "
                "decoding.max_new_tokens)"
            )
        self.out_of_memory += 1
        self.policy.store.close()
        self.rows = len(rows) // 2
        free_cache(self.policy.device.type)
        log.warning(
            "out of memory while replies to %d prompts of up to %d tokens were generated (%s): from now on at most %d "
            "at a time, see decoding.rows", len(rows), longest, reason, self.rows,
        )  # fmt: skip


def _prompt_limit(decoding: Decoding, context_length: int | None) -> int:
    """Return the largest number of prompt tokens; raise ValueError if the actions fill the model's context."""
    if context_length is None:
        return decoding.max_prompt_tokens
    if decoding.max_new_tokens >= context_length:
        raise ValueError(
            f"Decoding max_new_tokens={decoding.max_new_tokens}: the model's context has {context_length} tokens for "
            f"prompt and action together, which leaves none for the prompt; expected at most {context_length - 1}"
        )
    return min(decoding.max_prompt_tokens, context_length - decoding.max_new_tokens)
