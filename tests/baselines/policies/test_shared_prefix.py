"""Turns that begin with the same tokens: the prefix is read once, and states and gradients are those of whole turns."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from baselines.policies import shared_prefix
from baselines.policies.checkpointing import checkpointed
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.trajectory import Generation, select
from tests.baselines.models.architectures import VOCABULARY, make_model, padded_turns

GENERATOR = torch.Generator().manual_seed(0)
START = torch.randint(3, VOCABULARY, (30,), generator=GENERATOR).tolist()
RESTS = [torch.randint(3, VOCABULARY, (3 + i % 4,), generator=GENERATOR).tolist() for i in range(12)]
TURNS = padded_turns(
    [Generation((*START, *rest), (7 + i, 9, 11 + i)[: 1 + i % 3], (-1.0,) * (1 + i % 3), "", False)
     for i, rest in enumerate(RESTS)]
)  # fmt: skip


def policy_of(name: str) -> SharedBasePolicy:
    policy = SharedBasePolicy(make_model(name), ("x_0",), LoraSettings(2, 4), 0)
    for parameter in policy.adapter_parameters("x_0"):
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=GENERATOR)
    return policy


def gradients(policy: SharedBasePolicy, *, share_prefix: bool) -> tuple[torch.Tensor, list[torch.Tensor]]:
    with policy.use("x_0"):
        scores = policy.scores(TURNS, 0.7, share_prefix=share_prefix)
        (scores.logprobs.sum() + scores.entropy.square().sum()).backward()
    found = []
    for p in policy.adapter_parameters("x_0"):
        found.append(torch.zeros_like(p) if p.grad is None else p.grad)
        p.grad = None
    return scores.logprobs.detach(), found


@pytest.mark.parametrize("name", ["llama", "qwen3", "granite", "gpt2", "bloom", "mixtral"])
def test_log_probabilities_and_gradients_are_those_of_whole_turns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(name)
    expected, whole = gradients(policy, share_prefix=False)
    reads = []
    original = shared_prefix.read_with_prefix
    monkeypatch.setattr("baselines.policies.policy.read_with_prefix", lambda *a: (reads.append(a[-1]), original(*a))[1])
    found, shared = gradients(policy, share_prefix=True)
    assert reads == [30]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    for a, b in zip(shared, whole, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3 * float(b.abs().max()))


@pytest.mark.parametrize(("name", "tokens"), [("gemma2", 0), ("mistral", 0), ("lfm2", 0), ("mamba", 0), ("llama", 30)])
def test_windows_and_recurrent_states_are_not_shared(name: str, tokens: int) -> None:
    """The sliding windows of these models are shorter than the turns."""
    assert policy_of(name).shared_tokens(TURNS) == tokens


def test_what_is_shared() -> None:
    policy = policy_of("llama")
    assert policy.shared_tokens(select(TURNS, torch.arange(1))) == 0  # a single turn
    assert policy.shared_tokens(select(TURNS, torch.arange(9))) == 0  # 8 * 30 tokens saved are too few
    assert policy.shared_tokens(select(TURNS, torch.arange(10))) == 30
    equal = select(TURNS, torch.zeros(12, dtype=torch.long))
    # the last token of the prompt predicts the action, so it is read with its turn
    assert policy.shared_tokens(equal) == int(TURNS.prompt_length[0]) - 1
    other = replace(TURNS, tokens=TURNS.tokens.clone())
    other.tokens[5, 25] += 1
    assert policy.shared_tokens(other) == 25


def test_checkpointing_reads_whole_turns() -> None:
    policy = policy_of("llama")
    expected, whole = gradients(policy, share_prefix=False)
    with policy.use("x_0"), checkpointed(policy.causal_lm):
        scores = policy.scores(TURNS, 0.7, share_prefix=False)
        (scores.logprobs.sum() + scores.entropy.square().sum()).backward()
    torch.testing.assert_close(scores.logprobs.detach(), expected, rtol=0, atol=1e-5)
    for p, b in zip(policy.adapter_parameters("x_0"), whole, strict=True):
        torch.testing.assert_close(p.grad, b, rtol=1e-4, atol=1e-5)
