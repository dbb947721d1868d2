"""The batch of a generation engine: rows enter after a pass over their prompts, and leave when their action has ended.

Axes: n rows, C columns of the cache, P tokens of a prefix that prompts share, S tokens after it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin, LinearAttentionCacheLayerMixin

from baselines.engine.kv_cache import InPlaceCache
from baselines.engine.protocol import Completion, FinishReason, GenerationRequest
from baselines.engine.sampling import choose
from baselines.engine.stopping import StopStrings
from baselines.policies.prompt_states import KeyValues, Place, PromptBlock, PromptStates
from baselines.policies.prompt_store import key
from baselines.policies.rollout import ActiveModel
from baselines.policies.shared_prefix import LEAST_SAVED, attention_layers

_SPARE_COLUMNS = 64
"""Most columns that the cache grows by when it is full."""


@dataclass
class Row:
    """A request and its action so far.

    Attributes:
        index: Index of the request.
        request: The request.
        stop_strings: Finds the token that completes a stop string of the request.
        adapter: Name of the weights that generate; None for the base alone.
        adapter_version: Version of the weights that generate.
        start: Column of the cache in which the prompt begins.
        tokens: Token ids of the action.
        logprobs: Their log-probabilities.
        finish_reason: Why the action has ended; None if it has not.
    """

    index: int
    request: GenerationRequest
    stop_strings: StopStrings
    adapter: str | None
    adapter_version: int
    start: int = 0
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    _uniforms: np.ndarray | None = field(init=False)

    def __post_init__(self) -> None:
        self._uniforms = self.request.uniforms()

    @property
    def uniform(self) -> float:
        """The number that chooses the next token; -1 for greedy decoding."""
        return -1.0 if self._uniforms is None else float(self._uniforms[len(self.tokens)])

    def append(self, token: int, logprob: float, end_ids: frozenset[int]) -> None:
        """Add a token to the action."""
        self.tokens.append(token)
        self.logprobs.append(logprob)
        if token in end_ids or self.stop_strings.completed(self.tokens):
            self.finish_reason = "stop"
        elif len(self.tokens) == self.request.sampling.max_new_tokens:
            self.finish_reason = "length"

    def restart(self) -> None:
        """Forget the action. The same numbers choose its tokens again."""
        self.tokens, self.logprobs, self.finish_reason = [], [], None

    def completion(self) -> Completion:
        """Return the action, which has ended."""
        assert self.finish_reason is not None
        return Completion(tuple(self.tokens), tuple(self.logprobs), self.finish_reason, self.adapter_version)


class _First(NamedTuple):
    """The first tokens of prompts, which were read before the rest.

    Attributes:
        layers: Functions that return the keys and values of a layer, with rows that end in the last column; empty if
            nothing was read.
        tokens: Number of first tokens of each prompt.
        source: The row that has the first tokens of each prompt.
    """

    layers: list[Callable[[], KeyValues]]
    tokens: list[int]
    source: list[int]


class RunningBatch:
    """Rows that one model extends by a token at a time.

    A cache with recurrent states (Mamba, LFM2, ...) can neither drop rows nor take in others. There, rows that have
    ended stay until all have, and their further tokens are ignored.

    Args:
        model: The model.
        end_ids: Ids of the tokens that end an action.
        pad_id: Id of the padding.

    Attributes:
        rows: The rows of the cache.
    """

    def __init__(self, model: ActiveModel, end_ids: frozenset[int], pad_id: int) -> None:
        self._model, self._end_ids, self._pad_id = model, end_ids, pad_id
        layers = attention_layers(model.config)
        self._layers = None if layers is None else len(layers)
        self._cache: Any = None
        self._columns = 0
        self._ended: list[Row] = []
        self._store = model.policy.store
        self.rows: list[Row] = []

    @property
    def admits(self) -> bool:
        """Whether rows can enter now."""
        return not self.rows or self._layers is not None

    def admit(self, rows: Sequence[Row]) -> None:
        """Read the prompts of some rows, choose the first token of each, and add the rows to the batch."""
        prompts, adapters = [tuple(row.request.prompt_ids) for row in rows], [row.adapter for row in rows]
        base = [row.request.base_tokens for row in rows]
        first = self._read_base(prompts, base) if any(base) else self._read_repeated(prompts, adapters)
        spare = min(max(row.request.sampling.max_new_tokens for row in rows), _SPARE_COLUMNS)
        states, cache, starts, columns = self._read(prompts, adapters, first, spare)
        for row, start in zip(rows, starts.tolist(), strict=True):
            row.start = start
        self._extend(rows, states)
        if not self.rows:
            self._cache, self._columns = cache, columns
        else:
            before, self._columns = self._columns, max(self._columns, columns)
            self._cache.append(cache, len(self.rows))
            for group, width in ((self.rows, before), (rows, columns)):
                for row in group:
                    row.start += self._columns - width
        self.rows.extend(rows)

    def step(self) -> None:
        """Extend every row by one token."""
        ids = torch.tensor([[row.tokens[-1]] for row in self.rows], device="cpu")
        starts = torch.tensor([row.start for row in self.rows], device="cpu")
        self._columns += 1
        adapters = [row.adapter for row in self.rows]
        states, self._cache = self._forward(ids, starts, self._columns, self._cache, adapters)
        self._extend(self.rows, states)

    def take_ended(self) -> list[Row]:
        """Return the rows whose action has ended since the last call, and remove them where the cache can do so."""
        ended, self._ended = self._ended, []
        if ended and self._layers is not None and self._store.limit:
            self._store_ended()
        kept = [i for i, row in enumerate(self.rows) if row.finish_reason is None]
        if not kept:
            self.rows, self._cache = [], None
        elif ended and self._layers is not None:
            order = self._cache.keep(kept, len(self.rows))
            self.rows = [self.rows[i] for i in order]
            unused = min(row.start for row in self.rows)
            if 2 * unused > self._columns:
                self._cache.drop_columns(unused)
                self._columns -= unused
                for row in self.rows:
                    row.start -= unused
        return ended

    def _store_ended(self) -> None:
        """Store the keys and values of the rows that have ended, from which a later turn of their agents begins.

        Those of the base and an activated adapter together would be of no use to another turn.
        """
        ended = [i for i, row in enumerate(self.rows) if row.finish_reason is not None and not row.request.base_tokens]
        if not ended:
            return
        rows = [self.rows[i] for i in ended]
        at, first = torch.tensor(ended, device=self._model.device), min(row.start for row in rows)
        layers = [KeyValues(*(states[at, :, first:] for states in layer)) for layer in self._cache.layer_states()]
        lengths = torch.tensor([self._columns - row.start for row in rows], device=self._model.device)
        # The last token of an action has not been read.
        sequences = [key([*row.request.prompt_ids, *row.tokens[:-1]]) for row in rows]
        readers = self._readers([row.adapter for row in rows])
        self._store.add(readers, sequences, PromptBlock(layers, lengths), replace=True)

    def _readers(self, adapters: Sequence[str | None]) -> list[Hashable]:
        """Return the key of each adapter in the store."""
        keys = {adapter: self._model.policy.reader(adapter) for adapter in dict.fromkeys(adapters)}
        return [keys[adapter] for adapter in adapters]

    def _read(
        self, prompts: Sequence[tuple[int, ...]], adapters: Sequence[str | None], first: _First, spare: int
    ) -> tuple[Tensor, Any, Tensor, int]:
        """Read prompts after their first tokens.

        Returns:
            The last hidden state of each prompt [n, H], the cache, the column in which each prompt begins [n], and the
            number of columns.
        """
        # Without a cache, the model makes the kind that it needs.
        cache = None if self._layers is None else InPlaceCache(self._layers, spare)
        ids, gaps = left_pad([prompt[n:] for prompt, n in zip(prompts, first.tokens, strict=True)], self._pad_id)
        if first.layers and cache is not None:
            cache.share(first.layers, max(first.tokens), gaps, torch.tensor(first.source, device="cpu"))
            first.layers.clear()  # those of a layer are freed as soon as they are in the cache
        starts = gaps + max(first.tokens) - torch.tensor(first.tokens, device="cpu")
        columns = max(first.tokens) + ids.shape[1]
        states, cache = self._forward(ids, starts, columns, cache, adapters)
        return states, cache, starts, columns

    def _read_repeated(self, prompts: Sequence[tuple[int, ...]], adapters: Sequence[str | None]) -> _First:
        """Read prompts that several rows have once, but for the last token, unless that would save too little."""
        pairs = list(zip(adapters, prompts, strict=True))
        distinct = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
        saved = sum(len(prompt) - 1 for prompt in prompts) - sum(len(prompt) - 1 for _, prompt in distinct)
        if self._layers is None or saved < LEAST_SAVED or min(map(len, prompts)) == 1:
            return self._begin(prompts, adapters)
        of, firsts = [adapter for adapter, _ in distinct], [prompt[:-1] for _, prompt in distinct]
        _, cache, _, _ = self._read(firsts, of, self._begin(firsts, of), 0)
        return _First(
            _functions(cache.layer_states()), [len(p) - 1 for p in prompts], [distinct[pair] for pair in pairs]
        )

    def _begin(self, prompts: Sequence[tuple[int, ...]], adapters: Sequence[str | None]) -> _First:
        """Return first tokens of prompts that are stored, or read those that prompts have in common.

        Nothing is read if either would save too little.
        """
        of_adapter: dict[str | None, list[tuple[int, ...]]] = {}
        for adapter, prompt in zip(adapters, prompts, strict=True):
            of_adapter.setdefault(adapter, []).append(prompt)
        common = {a: min(common_prefix_length(p), min(map(len, p)) - 1) for a, p in of_adapter.items()}
        read = [adapter for adapter, tokens in common.items() if tokens]
        places, saved = list[Place](), 0
        if self._store.bytes:
            places, saved = self._store.beginnings(self._readers(adapters), [key(prompt) for prompt in prompts])
        shared = sum(common[a] * (len(of_adapter[a]) - 1) for a in read)
        if places and saved >= shared:
            return _stored(places)
        if self._layers is None or shared < LEAST_SAVED:
            return _First([], [0] * len(prompts), [0] * len(prompts))
        cache = InPlaceCache(self._layers, spare=0)
        ids, gaps = left_pad([of_adapter[a][0][: common[a]] for a in read], self._pad_id)
        self._forward(ids, gaps, ids.shape[1], cache, read)
        source = [read.index(adapter) if adapter in read else 0 for adapter in adapters]
        return _First(_functions(cache.layer_states()), [common[adapter] for adapter in adapters], source)

    def _read_base(self, prompts: Sequence[tuple[int, ...]], base: Sequence[int]) -> _First:
        """Read the first tokens of each prompt with the base alone, those of several rows once. base: their numbers."""
        device, longest = self._model.device, max(base)
        firsts = [prompt[:n] for prompt, n in zip(prompts, base, strict=True)]
        distinct = {first: i for i, first in enumerate(dict.fromkeys(firsts))}
        ids = torch.tensor([[*first, *[self._pad_id] * (longest - len(first))] for first in distinct], device=device)
        lengths, policy = torch.tensor([len(first) for first in distinct], device=device), self._model.policy
        if self._store.limit:
            layers = _of_states(
                self._store.states(policy.reader(None), ids, lengths, policy.read_prompts, replace=True)
            )
        else:
            layers = _functions(policy.read_prompts(ids, lengths).layers)
        return _First(layers, list(base), [distinct[first] for first in firsts])

    def _forward(
        self, ids: Tensor, starts: Tensor, columns: int, cache: Any, adapters: Sequence[str | None]
    ) -> tuple[Tensor, Any]:
        """Run the model's trunk on the last tokens of every row.

        Args:
            ids: [n, t] token ids.
            starts: [n] column in which each row begins.
            columns: C, the columns of the cache after the pass.
            cache: Keys and values of the C - t columns before; None if there are none.
            adapters: The adapter of each row.

        Returns:
            The last hidden state of each row, [n, H], and the cache.
        """
        device, last = self._model.device, torch.arange(columns - ids.shape[1], columns, device="cpu")
        arguments: dict[str, Any] = {}
        if self._model.takes_positions:
            arguments["position_ids"] = (last - starts.unsqueeze(-1)).clamp(min=0).long().to(device)
        if bool(starts.any()) and not has_states_only(cache):
            mask = torch.arange(columns, device="cpu") >= starts.unsqueeze(-1)
            arguments["attention_mask"] = mask.long().to(device)
        self._model.assign(adapters)
        out = self._model.trunk(input_ids=ids.to(device), cache=cache, use_cache=True, **arguments)
        if getattr(out, "cache", None) is None:
            raise ValueError(
                f"model class {self._model.name} returns no cache: expected a decoder with a transformers Cache"
            )
        return out.last_hidden_state[:, -1], out.cache

    def _extend(self, rows: Sequence[Row], states: Tensor) -> None:
        """Choose the next token of each row from its last hidden state. One copy from the device per step."""
        running = [row.finish_reason is None for row in rows]
        temperature = torch.tensor([row.request.sampling.temperature for row in rows], device=states.device)
        numbers = [row.uniform if runs else -1.0 for row, runs in zip(rows, running, strict=True)]
        uniform = None
        if max(numbers) >= 0:
            uniform = torch.tensor(numbers, dtype=torch.float64, device=_float64_device(states.device))
        chosen, logprobs = choose(self._model.logits(states), temperature, uniform)
        for row, runs, token, logprob in zip(rows, running, *_to_host(chosen, logprobs), strict=True):
            if runs:
                row.append(token, logprob, self._end_ids)
                if row.finish_reason is not None:
                    self._ended.append(row)


def _stored(places: Sequence[Place]) -> _First:
    """Return the first tokens of prompts that are in a store."""
    return _First(_of_states(PromptStates(places)), [place.tokens for place in places], list(range(len(places))))


def _of_states(states: PromptStates) -> list[Callable[[], KeyValues]]:
    """Return functions that put the keys and values of each layer together."""
    return [partial(states.layer, index) for index in range(states.layers)]


def _functions(layers: Sequence[KeyValues]) -> list[Callable[[], KeyValues]]:
    """Return functions that return the keys and values of each layer."""
    return [partial(KeyValues, *layer) for layer in layers]


def common_prefix_length(sequences: Sequence[tuple[int, ...]]) -> int:
    """Return how many first elements all sequences have in common."""
    # In lexicographic order, the first and the last one differ first.
    first, last = min(sequences), max(sequences)
    pairs = enumerate(zip(first, last, strict=False))
    return next((i for i, (a, b) in pairs if a != b), len(first))


def left_pad(prompts: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Pad prompts on the left, so that the last token of every row is in the last column.

    Args:
        prompts: Token ids of n prompts.
        pad_id: Id of the padding.

    Returns:
        Ids [n, S] for the longest prompt's length S, and the number of padding tokens of each row [n], on the CPU.
    """
    longest = max(map(len, prompts))
    rows = [[pad_id] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
    gaps = [longest - len(prompt) for prompt in prompts]
    return torch.tensor(rows, device="cpu"), torch.tensor(gaps, device="cpu")


def has_states_only(cache: Any) -> bool:
    """Return whether a cache holds recurrent states and no keys: earlier tokens then need no mask (Mamba)."""
    layers: Any = getattr(cache, "layers", ())
    return bool(layers) and all(
        isinstance(layer, LinearAttentionCacheLayerMixin) and not isinstance(layer, CacheLayerMixin) for layer in layers
    )


def _float64_device(device: torch.device) -> torch.device:
    """Return where to sample by inversion: on the device, or on the CPU if the device (MPS) has no float64."""
    return torch.device("cpu") if device.type == "mps" else device


def _to_host(chosen: Tensor, logprobs: Tensor) -> tuple[list[int], list[float]]:
    """Return token ids [n] and fp32 log-probabilities [n] as lists, with one copy from the device."""
    both = torch.stack([chosen.to(torch.int32), logprobs.float().view(torch.int32)]).cpu()
    return both[0].tolist(), both[1].view(torch.float32).tolist()
