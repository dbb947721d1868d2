"""The output head as the model's own class applies it, and the scores of chosen tokens under it.

Between the last hidden states and the logits, classes differ: Granite divides the logits, Cohere multiplies them,
Gemma-2 caps them, MiniCPM-3 divides the hidden states. So the class's own ``forward`` computes the logits, with its
trunk replaced by the hidden states of the positions that are needed.

Axes: A positions, H the width of the hidden states, V the size of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers.modeling_outputs import MoeModelOutputWithPast

from baselines.policies.replaced_forward import replaced_forward

CHUNK_BYTES = 64 * 2**20
"""Largest size of the fp32 logits of a chunk of positions."""


class _TrunkOutput(MoeModelOutputWithPast):
    """The output of a trunk with hidden states only. Further fields, which heads copy into their output, are None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(name)


def own_logits(causal_lm: Any, states: Tensor) -> Tensor:
    """Return the logits of last hidden states as the model's own ``forward`` computes them.

    Args:
        causal_lm: A causal language model of transformers.
        states: Last hidden states [A, H] of its trunk.

    Returns:
        Logits [A, V].
    """
    trunk = causal_lm.get_decoder()
    ids = torch.zeros((1, 1), dtype=torch.long, device=states.device)  # not read: the trunk is replaced
    output = _TrunkOutput(last_hidden_state=states.unsqueeze(0))
    with replaced_forward(trunk, lambda *args, **kwargs: output):
        return causal_lm(input_ids=ids, use_cache=False).logits.squeeze(0)


@torch.no_grad()
def head_is_plain(causal_lm: Any) -> bool:
    """Check that ``own_logits`` gives the model's logits, and return whether its linear layer alone gives the same.

    If it does, calling the linear layer saves a fifth of a millisecond per call.

    Raises:
        ValueError: The model has no trunk and head that ``own_logits`` can separate.
    """
    name = type(causal_lm).__name__
    expected = "expected a decoder-only model whose logits are a function of its decoder's last hidden states"
    if causal_lm.get_output_embeddings() is None or causal_lm.get_decoder() in (None, causal_lm):
        raise ValueError(f"model class {name} has no decoder below an output head: {expected}")
    device = next(causal_lm.parameters()).device
    if device.type == "meta":  # a model without values, of which only shapes are wanted
        return False
    ids = torch.arange(min(3, causal_lm.get_input_embeddings().num_embeddings), device=device).unsqueeze(0)
    try:
        whole = causal_lm(input_ids=ids, use_cache=False).logits[0]
        states = causal_lm.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state[0]
        found = own_logits(causal_lm, states)
    except (TypeError, AttributeError, ValueError, RuntimeError) as error:
        raise ValueError(f"model class {name} cannot be used: {type(error).__name__}: {error}; {expected}") from error
    if found.shape != whole.shape or not torch.allclose(
        found.float(), whole.float(), rtol=1e-2, atol=1e-3, equal_nan=True
    ):
        raise ValueError(f"model class {name} computes other logits from its decoder's last hidden states: {expected}")
    # Large states, because a cap on the logits hardly changes small ones.
    head = causal_lm.get_output_embeddings()
    largest = max(float(states.abs().max()), float(head(states).abs().max()), 1e-3)
    large = min(1e3, torch.finfo(states.dtype).max / 2 / largest) * states  # float16 ends at 65,504
    return torch.equal(own_logits(causal_lm, large), head(large))


def chunk_positions(vocabulary_size: int) -> int:
    """Return how many positions have fp32 logits of at most CHUNK_BYTES together, at least 1."""
    return max(1, CHUNK_BYTES // (4 * vocabulary_size))


def chosen_scores(
    logits: Callable[[Tensor], Tensor], states: Tensor, chosen: Tensor, temperature: float, positions: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-probability, entropy and gap of chosen tokens, see ``policy.TokenScores``.

    The head runs on chunks of positions. With more than one chunk, the backward pass computes the logits of a chunk
    again, so that memory holds the hidden states of all positions, but the logits of one chunk only.

    Args:
        logits: The head, from states [A, H] to logits [A, V].
        states: [A, H] hidden states of the positions that predict the tokens.
        chosen: [A] token ids.
        temperature: The sampling temperature, which the logits are divided by.
        positions: Largest number of positions of a chunk, see ``chunk_positions``.

    Returns:
        Three tensors [A], fp32.
    """

    def scores(states: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logp = (logits(states).float() / temperature).log_softmax(-1)  # the softmax is in fp32
        of_chosen = logp.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
        return of_chosen, -(logp.exp() * logp).sum(-1), logp.max(-1).values - of_chosen

    if len(chosen) <= positions:
        return scores(states, chosen)
    of_chunk: Callable[..., tuple[Tensor, Tensor, Tensor]] = scores
    if torch.is_grad_enabled():
        of_chunk = partial(checkpoint, scores, use_reentrant=False, preserve_rng_state=False)
    parts = [of_chunk(*chunk) for chunk in zip(states.split(positions), chosen.split(positions), strict=True)]
    logprobs, entropy, gap = (torch.cat(column) for column in zip(*parts, strict=True))
    return logprobs, entropy, gap
