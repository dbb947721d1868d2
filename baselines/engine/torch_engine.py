"""Batched generation in torch with a KV cache, which returns token ids and behaviour log-probabilities.

Each row is sampled by inversion from uniform numbers of its own. So an episode's actions do not depend on the other
episodes in the batch, up to floating-point rounding of the forward pass.
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
    """Settings of sampling.

    There is no top-k or top-p: the learner needs the behaviour policy to be the policy at its temperature.

    Attributes:
        max_new_tokens: Largest number of tokens of an action. An action without a stop token by then is truncated, and
            marked as such.
        temperature: Sampling temperature, above 0. The learner computes log-probabilities at the same temperature.
        stop_at_newline: Whether a token with a newline ends the action, as the EOS token does.
        max_prompt_tokens: Largest number of prompt tokens. Longer prompts lose their oldest text
            (``prompts.truncate_prompt``).
        rows: Prompts per forward pass.
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
    """Generate the actions of one agent at a time with a ``SharedBasePolicy``.

    Attributes:
        policy: The policies on one base.
        tokenizer: The tokenizer of the base.
        decoding: How actions are sampled.
        stop_ids: Ids of the tokens that end an action.
    """

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
        """Generate one action per prompt.

        Args:
            agent: The agent whose weights generate; None for the reference policy.
            prompts: Token ids of N prompts, of different lengths.
            uniforms: Numbers in [0, 1) of shape [N, max_new_tokens], one per token; None decodes greedily.

        Returns:
            N generations, in the order of the prompts. Their log-probabilities are those of the chosen tokens at the
            temperature, also for greedy decoding.

        Raises:
            ValueError: A prompt is empty.
        """
        if not all(len(p) for p in prompts):
            empty = next(i for i, p in enumerate(prompts) if not len(p))
            raise ValueError(f"prompts[{empty}] is empty: expected at least one token")
        # prompts of similar length share a forward pass, so that little of it is padding
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        results: dict[int, Generation] = {}
        with self.policy.use(agent):
            for block in row_blocks(len(order), self.decoding.rows):
                rows = order[block]
                own = None if uniforms is None else torch.as_tensor(uniforms[rows])
                for i, g in zip(rows, self._block([prompts[i] for i in rows], own), strict=True):
                    results[i] = g
        return [results[i] for i in range(len(prompts))]

    def _block(self, prompts: list[Sequence[int]], uniforms: Tensor | None) -> list[Generation]:
        """Generate for the prompts of one forward pass. alive: rows [n] that have not ended yet."""
        ids, mask = left_pad(prompts, self._pad_id())
        # positions count tokens, not columns: padding on the left must not shift them
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
            # rows that have ended leave the batch and its cache; the others do not pay for them
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
    """Sample by inversion: return the first token whose cumulative probability exceeds the uniform number.

    Args:
        logp: Log-probabilities [n, V].
        uniform: Numbers in [0, 1), of shape [n].

    Returns:
        Token ids [n].
    """
    # float64, and scaled by the actual sum: in float32 the sum over a large vocabulary misses 1 by more than the
    # probability of a rare token, and a uniform number near 1 would select a token of probability 0
    cumulated = logp.double().exp().cumsum(-1)
    threshold = (uniform.double() * cumulated[:, -1]).unsqueeze(-1)
    return torch.searchsorted(cumulated, threshold, right=True).squeeze(-1).clamp(max=logp.shape[-1] - 1)


def left_pad(prompts: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Pad prompts on the left, so that the last token of every row is in the last column.

    Args:
        prompts: Token ids of n prompts.
        pad_id: Id of the padding.

    Returns:
        Ids and mask (1 = a token, 0 = padding), both of shape [n, T] for the longest prompt's length T.
    """
    longest = max(map(len, prompts))
    ids = torch.full((len(prompts), longest), pad_id, dtype=torch.long)
    mask = torch.zeros((len(prompts), longest), dtype=torch.long)
    for i, prompt in enumerate(prompts):
        ids[i, longest - len(prompt) :] = torch.tensor(prompt)
        mask[i, longest - len(prompt) :] = 1
    return ids, mask


def newline_ids(tokenizer: Any) -> frozenset[int]:
    """Return the ids of all tokens whose text contains a newline."""
    texts = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
    return frozenset(i for i, text in enumerate(texts) if "\n" in text)
