"""Batched sampling in torch with a KV cache; keeps token ids and behaviour log-probabilities.

Every row is sampled by inversion from uniform numbers of its own, so what an episode draws does not depend on which
other episodes share its batch (up to floating-point rounding of the forward pass).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from baselines.field_types import check_field_types
from baselines.policies.policy import SharedBasePolicy, row_blocks
from baselines.trajectory import Generation


@dataclass(frozen=True)
class Decoding:
    """How actions are sampled. There is no top-k or top-p: the behaviour policy is the policy at its temperature.

    max_new_tokens: an action of that many tokens without a stop is truncated, and marked so. temperature: > 0, the same
    in training. stop_at_newline: a token with a newline ends the action, as the end-of-sequence token does.
    max_prompt_tokens: older text is cut off in front (see ``prompts.truncate_prompt``). rows: prompts per forward pass.
    """

    max_new_tokens: int = 64
    temperature: float = 1.0
    stop_at_newline: bool = False
    max_prompt_tokens: int = 1024
    rows: int = 256

    def __post_init__(self) -> None:
        check_field_types(self)
        for name in ("max_new_tokens", "max_prompt_tokens", "rows", "temperature"):
            if getattr(self, name) <= 0:
                raise ValueError(f"Decoding {name}={getattr(self, name)!r}: expected a positive number")


@dataclass
class TorchEngine:
    """Samples for one agent at a time from a ``SharedBasePolicy``."""

    policy: SharedBasePolicy
    tokenizer: Any
    decoding: Decoding
    stop_ids: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self._newline_ids = newline_ids(self.tokenizer) if self.decoding.stop_at_newline else frozenset()
        self.stop_ids = frozenset({self.tokenizer.eos_token_id}) | self._newline_ids
        self._stop = torch.tensor(sorted(self.stop_ids))

    @torch.no_grad()
    def generate(
        self, agent: str | None, prompts: Sequence[Sequence[int]], uniforms: np.ndarray | None
    ) -> list[Generation]:
        """One action for each prompt by the agent's policy (None: the reference).

        uniforms: [len(prompts), max_new_tokens] numbers in [0, 1), one a token; None decodes greedily. Greedy
        log-probabilities are those of the chosen token at the temperature, too.
        """
        if not all(len(p) for p in prompts):
            raise ValueError("prompts: one is empty; expected at least one token each")
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        results: dict[int, Generation] = {}
        with self.policy.use(agent):
            for block in row_blocks(len(order), self.decoding.rows):
                rows = order[block]
                drawn = None if uniforms is None else torch.as_tensor(uniforms[rows])
                for i, g in zip(rows, self._block([prompts[i] for i in rows], drawn), strict=True):
                    results[i] = g
        return [results[i] for i in range(len(prompts))]

    def _block(self, prompts: list[Sequence[int]], uniforms: Tensor | None) -> list[Generation]:
        ids, mask = left_pad(prompts, self._pad_id())
        position = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = DynamicCache(config=self.policy.causal_lm.config)
        alive = torch.arange(len(prompts))
        tokens: list[list[int]] = [[] for _ in prompts]
        logprobs: list[list[float]] = [[] for _ in prompts]
        for step in range(self.decoding.max_new_tokens):
            out = self.policy.backbone(
                input_ids=ids, attention_mask=mask, position_ids=position, cache=cache, use_cache=True
            )
            logp = (self.policy.head(out.last_hidden_state[:, -1]).float() / self.decoding.temperature).log_softmax(-1)
            chosen = logp.argmax(-1) if uniforms is None else invert(logp, uniforms[alive, step])
            chosen_logp = logp.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
            for row, token, lp in zip(alive.tolist(), chosen.tolist(), chosen_logp.tolist(), strict=True):
                tokens[row].append(token)
                logprobs[row].append(lp)
            keep = (~torch.isin(chosen, self._stop)).nonzero().squeeze(-1)
            if len(keep) == 0:
                break
            if len(keep) < len(alive):
                cache.batch_select_indices(keep)
                alive, mask, position, chosen = alive[keep], mask[keep], position[keep], chosen[keep]
            ids = chosen.unsqueeze(-1)
            mask = torch.cat([mask, torch.ones_like(ids)], -1)
            position = position[:, -1:] + 1
        return [self._generation(*row) for row in zip(prompts, tokens, logprobs, strict=True)]

    def _pad_id(self) -> int:
        pad = self.tokenizer.pad_token_id
        return self.tokenizer.eos_token_id if pad is None else pad

    def _generation(self, prompt: Sequence[int], tokens: list[int], logprobs: list[float]) -> Generation:
        text = self.tokenizer.decode(tokens, skip_special_tokens=True)
        if self._newline_ids:
            text = text.split("\n", 1)[0]
        return Generation(tuple(prompt), tuple(tokens), tuple(logprobs), text, tokens[-1] not in self.stop_ids)


def invert(logp: Tensor, uniform: Tensor) -> Tensor:
    """Inversion sampling: the first token whose cumulated probability exceeds u. logp: [n, V]. uniform: [n]. -> [n]"""
    cumulated = logp.double().exp().cumsum(-1)
    threshold = (uniform.double() * cumulated[:, -1]).unsqueeze(-1)
    return torch.searchsorted(cumulated, threshold, right=True).squeeze(-1).clamp(max=logp.shape[-1] - 1)


def left_pad(prompts: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Ids and mask (1 = a token), [n, longest]; padding stands in front so that all rows end together."""
    longest = max(map(len, prompts))
    ids = torch.full((len(prompts), longest), pad_id, dtype=torch.long)
    mask = torch.zeros((len(prompts), longest), dtype=torch.long)
    for i, prompt in enumerate(prompts):
        ids[i, longest - len(prompt) :] = torch.tensor(prompt)
        mask[i, longest - len(prompt) :] = 1
    return ids, mask


def newline_ids(tokenizer: Any) -> frozenset[int]:
    """All tokens whose text holds a newline."""
    texts = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
    return frozenset(i for i, text in enumerate(texts) if "\n" in text)
