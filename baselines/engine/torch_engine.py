"""Batched generation in torch with a KV cache, which returns token ids and behaviour log-probabilities.

Each row is sampled by inversion from uniform numbers of its own. So an episode's actions do not depend on the other
episodes in the batch, up to floating-point rounding of the forward pass.
"""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin, LinearAttentionCacheLayerMixin

from baselines.engine.chat_template import end_of_turn_ids
from baselines.engine.replies import action_text
from baselines.errors import RunError
from baselines.field_types import check_field_types
from baselines.models.out_of_memory import first_line, free_cache, is_out_of_memory
from baselines.policies.policy import SharedBasePolicy
from baselines.trajectory import Generation

log = logging.getLogger("baselines")


@dataclass(frozen=True)
class Decoding:
    """Settings of sampling.

    There is no top-k or top-p: the learner needs the behaviour policy to be the policy at its temperature.

    Attributes:
        max_new_tokens: Largest number of tokens of an action. An action without a stop token by then is truncated, and
            marked as such.
        temperature: Sampling temperature, above 0. The learner computes log-probabilities at the same temperature.
        stop_at_newline: Whether a token with a newline ends the action, as the EOS token does.
        max_prompt_tokens: Largest number of prompt tokens, unless the model's context is shorter
            (``TorchEngine.prompt_limit``). Longer prompts lose their oldest messages (``message_window.fit``).
        rows: Largest number of prompts per forward pass. It is halved where the memory is exhausted.
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
        rows: Prompts per forward pass: ``decoding.rows``, or less after an out-of-memory error.
        out_of_memory: Number of out-of-memory errors so far.
        stop_ids: Ids of the tokens that end an action.
        prompt_limit: Largest number of prompt tokens: ``decoding.max_prompt_tokens``, or less where the model's context
            has to hold the action as well.

    Raises:
        ValueError: ``decoding.max_new_tokens`` leaves no room for a prompt in the model's context.
    """

    policy: SharedBasePolicy
    tokenizer: Any
    decoding: Decoding
    rows: int = field(init=False)
    out_of_memory: int = field(init=False, default=0)
    stop_ids: frozenset[int] = field(init=False)
    prompt_limit: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows = self.decoding.rows
        self.prompt_limit = _prompt_limit(self.decoding, self.policy.context_length)
        self._newline_ids = newline_ids(self.tokenizer) if self.decoding.stop_at_newline else frozenset()
        end_ids = end_token_ids(self.policy.causal_lm, self.tokenizer) | end_of_turn_ids(self.tokenizer)
        self.stop_ids = end_ids | self._newline_ids
        # Models without position embeddings take no positions.
        self._takes_positions = "position_ids" in inspect.signature(self.policy.backbone.forward).parameters

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
            ValueError: A prompt is empty, or too long for the model's context.
            RunError: The memory does not suffice for a single prompt.
        """
        room = (self.policy.context_length or math.inf) - self.decoding.max_new_tokens
        for i, prompt in enumerate(prompts):
            if not 0 < len(prompt) <= room:
                raise ValueError(
                    f"prompts[{i}] has {len(prompt)} tokens: expected at least 1, and at most {room} so that "
                    f"max_new_tokens={self.decoding.max_new_tokens} more fit into the model's context"
                )
        # prompts of similar length share a forward pass, so that little of it is padding
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        results: dict[int, Generation] = {}
        with self.policy.use(agent):
            while len(results) < len(order):
                rows = order[len(results) : len(results) + self.rows]
                own = None if uniforms is None else torch.as_tensor(uniforms[rows], device="cpu")
                try:
                    results.update(zip(rows, self._block([prompts[i] for i in rows], own), strict=True))
                    continue
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error):
                        raise
                    reason = first_line(error)
                # Here the exception, and with it the tensors of the failed batch, has been freed.
                self._halve([prompts[i] for i in rows], reason)
        return [results[i] for i in range(len(prompts))]

    def _halve(self, prompts: list[Sequence[int]], reason: str) -> None:
        """Halve the number of prompts in a batch, of which these did not fit the memory."""
        longest = max(map(len, prompts))
        if len(prompts) == 1:
            raise RunError(
                f"out of memory while a reply to a single prompt of {longest} tokens was generated ({reason}): "
                "expected more memory, a smaller model, or shorter prompts or replies (decoding.max_prompt_tokens, "
                "decoding.max_new_tokens)"
            )
        self.out_of_memory += 1
        self.rows = len(prompts) // 2
        free_cache(self.policy.device.type)
        log.warning(
            "out of memory while replies to %d prompts of up to %d tokens were generated (%s): from now on at most %d "
            "at a time, see decoding.rows", len(prompts), longest, reason, self.rows,
        )  # fmt: skip

    def _block(self, prompts: list[Sequence[int]], uniforms: Tensor | None) -> list[Generation]:
        """Generate for the prompts of one batch. Each step copies tokens and log-probs from the device once."""
        ids, mask = (t.to(self.policy.device) for t in left_pad(prompts, self._pad_id()))
        uniforms = None if uniforms is None else uniforms.to(_float64_device(self.policy.device))
        # positions count tokens, not columns: padding on the left must not shift them
        position = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = None  # the model makes the kind that it needs
        batch = list(range(len(prompts)))  # the prompt of each row of the batch
        tokens: list[list[int]] = [[] for _ in prompts]
        logprobs: list[list[float]] = [[] for _ in prompts]
        for step in range(self.decoding.max_new_tokens):
            out = self._forward(ids, mask, position, cache)
            cache = out.cache
            chosen, logp = self._choose(out.last_hidden_state[:, -1], None if uniforms is None else uniforms[:, step])
            running = []
            for i, (row, token, lp) in enumerate(zip(batch, *_to_host(chosen, logp), strict=True)):
                if not tokens[row] or tokens[row][-1] not in self.stop_ids:
                    tokens[row].append(token)
                    logprobs[row].append(lp)
                    if token not in self.stop_ids:
                        running.append(i)
            if not running or step + 1 == self.decoding.max_new_tokens:
                break
            # Rows that have ended leave the batch and its cache, so that no time is spent on them. In a cache that
            # cannot drop rows they stay, and their further tokens are ignored.
            if len(running) < len(batch) and drops_rows(cache):
                keep = torch.tensor(running, device=ids.device)
                cache.batch_select_indices(keep)
                batch, mask, position, chosen = [batch[i] for i in running], mask[keep], position[keep], chosen[keep]
                uniforms = None if uniforms is None else uniforms[keep.to(uniforms.device)]
            ids = chosen.unsqueeze(-1)
            mask = torch.cat([mask, torch.ones_like(ids)], -1)
            position = position[:, -1:] + 1
        return [self._generation(*row) for row in zip(prompts, tokens, logprobs, strict=True)]

    def _forward(self, ids: Tensor, mask: Tensor, position: Tensor, cache: Any) -> Any:
        """Run the model's trunk on new tokens [n, t]; mask [n, T] covers the tokens in the cache, too."""
        positions = {"position_ids": position} if self._takes_positions else {}
        out = self.policy.backbone(
            input_ids=ids,
            attention_mask=None if has_states_only(cache) else mask,
            cache=cache,
            use_cache=True,
            **positions,
        )
        if getattr(out, "cache", None) is None:
            raise ValueError(
                f"model class {type(self.policy.causal_lm).__name__} returns no cache: expected a decoder with a "
                "transformers Cache"
            )
        return out

    def _choose(self, states: Tensor, uniform: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the next token of each row, [n], and its log-probability."""
        logp = (self.policy.logits(states).float() / self.decoding.temperature).log_softmax(-1)
        chosen = logp.argmax(-1) if uniform is None else invert(logp, uniform)
        return chosen, logp.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)

    def _pad_id(self) -> int:
        pad = self.tokenizer.pad_token_id
        return self.tokenizer.eos_token_id if pad is None else pad

    def _generation(self, prompt: Sequence[int], tokens: list[int], logprobs: list[float]) -> Generation:
        ends = tokens[-1] in self.stop_ids - self._newline_ids  # a stop token is no text, whether it is special or not
        text = action_text(self.tokenizer, prompt, tokens[:-1] if ends else tokens)
        if self._newline_ids:
            text = text.split("\n", 1)[0]
        return Generation(tuple(prompt), tuple(tokens), tuple(logprobs), text, tokens[-1] not in self.stop_ids)


def invert(logp: Tensor, uniform: Tensor) -> Tensor:
    """Sample by inversion: return the first token whose cumulative probability exceeds the uniform number.

    Args:
        logp: Log-probabilities [n, V].
        uniform: Numbers in [0, 1), of shape [n], on a device with float64.

    Returns:
        Token ids [n], on the device of ``logp``.
    """
    # float64, and scaled by the actual sum: in float32 the sum over a large vocabulary misses 1 by more than the
    # probability of a rare token, and a uniform number near 1 would select a token of probability 0
    cumulated = logp.to(uniform.device).double().exp().cumsum(-1)
    threshold = (uniform.double() * cumulated[:, -1]).unsqueeze(-1)
    chosen = torch.searchsorted(cumulated, threshold, right=True).squeeze(-1).clamp(max=logp.shape[-1] - 1)
    return chosen.to(logp.device)


def _float64_device(device: torch.device) -> torch.device:
    """Return where to sample by inversion: on the device, or on the CPU if the device (MPS) has no float64."""
    return torch.device("cpu") if device.type == "mps" else device


def _to_host(chosen: Tensor, logp: Tensor) -> tuple[list[int], list[float]]:
    """Return token ids [n] and fp32 log-probabilities [n] as lists, with one copy from the device."""
    both = torch.stack([chosen.to(torch.int32), logp.view(torch.int32)]).cpu()
    return both[0].tolist(), both[1].view(torch.float32).tolist()


def drops_rows(cache: Any) -> bool:
    """Return whether a cache can drop rows of the batch.

    Layers with a convolution or a recurrent state cannot: they have no ``batch_select_indices``, or, where they also
    have keys and values, one that selects only those.
    """
    layers: Any = getattr(cache, "layers", ())
    return bool(layers) and all(
        hasattr(layer, "batch_select_indices") and not isinstance(layer, LinearAttentionCacheLayerMixin)
        for layer in layers
    )


def has_states_only(cache: Any) -> bool:
    """Return whether a cache holds recurrent states and no keys: earlier tokens then need no mask (Mamba)."""
    layers: Any = getattr(cache, "layers", ())
    return bool(layers) and all(
        isinstance(layer, LinearAttentionCacheLayerMixin) and not isinstance(layer, CacheLayerMixin) for layer in layers
    )


def end_token_ids(causal_lm: Any, tokenizer: Any) -> frozenset[int]:
    """Return the ids of all tokens that end a reply.

    They are the end tokens of the model's generation settings, of its configuration and of the tokenizer. Chat models
    differ in where they name the end of a turn, and many name several tokens: Llama 3, Gemma, Phi-3 and Qwen2.5 list
    them in the generation settings only.

    Args:
        causal_lm: A causal language model of transformers.
        tokenizer: Its tokenizer.
    """
    sources = (getattr(causal_lm, "generation_config", None), causal_lm.config.get_text_config(), tokenizer)
    ids: set[int] = set()
    for source in sources:
        found = getattr(source, "eos_token_id", None)
        if found is not None:
            ids.update(found if isinstance(found, list) else [found])
    return frozenset(ids)


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


def left_pad(prompts: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Pad prompts on the left, so that the last token of every row is in the last column.

    Args:
        prompts: Token ids of n prompts.
        pad_id: Id of the padding.

    Returns:
        Ids and mask (1 = a token, 0 = padding), both of shape [n, T] for the longest prompt's length T.
    """
    longest = max(map(len, prompts))
    # Filled row by row on the CPU, then moved to the model's device as a whole.
    ids = torch.full((len(prompts), longest), pad_id, dtype=torch.long, device="cpu")
    mask = torch.zeros((len(prompts), longest), dtype=torch.long, device="cpu")
    for i, prompt in enumerate(prompts):
        ids[i, longest - len(prompt) :] = torch.tensor(prompt, device="cpu")
        mask[i, longest - len(prompt) :] = 1
    return ids, mask


def newline_ids(tokenizer: Any) -> frozenset[int]:
    """Return the ids of all tokens whose text contains a newline."""
    texts = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
    return frozenset(i for i, text in enumerate(texts) if "\n" in text)
