"""Random models with activated adapters, and turns whose prompts end in the invocation tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from baselines.engine.invocation import base_tokens
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.trajectory import AgentTurns, Generation
from tests.baselines.models.architectures import EOS, make_model, padded_turns

INVOCATION = (150, 151)
AGENTS = ("x_0", "y_0")


def activated_policy(name: str, *, std: float = 0.2) -> SharedBasePolicy:
    """Return the policies of two agents with activated adapters, which differ from the base by noise."""
    lora = LoraSettings(2, 4, activated=True)
    policy = SharedBasePolicy(make_model(name), AGENTS, lora, 0, invocation_ids=INVOCATION)
    policy.causal_lm.generation_config.eos_token_id = EOS
    perturb(policy, std)
    return policy


def perturb(policy: SharedBasePolicy, std: float, seed: int = 1) -> None:
    """Add noise to all adapters."""
    generator = torch.Generator().manual_seed(seed)
    for agent in policy.agents:
        for p in policy.adapter_parameters(agent):
            p.data += std * torch.randn(p.shape, generator=generator)


def tokens(length: int, seed: int) -> tuple[int, ...]:
    """Return random token ids, none of which activates an adapter or ends an action."""
    return tuple(np.random.default_rng([length, seed]).integers(3, 150, size=length).tolist())


def prompts() -> list[tuple[int, ...]]:
    """Return prompts of different lengths, with and without a beginning of the reply; some contain an earlier turn."""
    fresh = [(*tokens(n, 0), *INVOCATION, *tokens(n % 3, 1)) for n in (4, 13, 7, 9)]
    return [*fresh, *((*prompt, *tokens(3, 2), *tokens(4, 3), *INVOCATION) for prompt in fresh[:3])]


def turns_of(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> AgentTurns:
    """Return turns from prompts and actions."""
    return padded_turns(
        [
            Generation(tuple(p), tuple(a), (-1.0,) * len(a), "", False, base_tokens=base_tokens(p, INVOCATION))
            for p, a in pairs
        ]
    )


def some_turns() -> AgentTurns:
    """Return a turn for each of the ``prompts``, with actions of 1 to 5 tokens."""
    return turns_of([(prompt, tokens(1 + i % 5, 4)) for i, prompt in enumerate(prompts())])


def continued_logprobs(policy: SharedBasePolicy, turns: AgentTurns, temperature: float) -> list[Tensor]:
    """Return the log-probabilities of the actions of agent x_0, each turn alone: the base reads, then the adapter."""
    found = []
    for i, base in enumerate(turns.base_tokens.tolist()):
        ids = turns.tokens[i][turns.token_mask[i]].unsqueeze(0)
        cache = DynamicCache()  # without the configuration, all tokens are stored
        with torch.no_grad(), policy.use(None):
            policy.causal_lm(input_ids=ids[:, :base], cache=cache, use_cache=True)
        with policy.use("x_0"):
            logits = policy.causal_lm(input_ids=ids[:, base:], cache=cache, use_cache=True).logits[0]
        chosen = (logits.float() / temperature).log_softmax(-1)[:-1].gather(-1, ids[0, base + 1 :].unsqueeze(-1))
        found.append(chosen[int(turns.prompt_length[i]) - 1 - base :].squeeze(-1))
    return found
