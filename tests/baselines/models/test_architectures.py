"""What must hold for each architecture of transformers that a team can be trained on, on small random models.

``architectures.ARCHITECTURES`` lists them, docs/models.md names them and the ones that are not supported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from baselines.engine import running_batch
from baselines.engine.running_batch import left_pad
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.models.load import load_model
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.policies.shared_prefix import attention_layers
from baselines.trajectory import AgentTurns, Generation
from tests.baselines.engine.generate import activated_generate, generate
from tests.baselines.models.architectures import (
    ARCHITECTURES,
    EOS,
    NO_CACHE,
    NO_TRUNK,
    PAD,
    VOCABULARY,
    make_model,
    padded_turns,
)
from tests.baselines.policies.activated import activated_policy, continued_logprobs, turns_of
from tests.baselines.policies.activated import prompts as activated_prompts

DOCS = Path(__file__).parents[3] / "docs" / "models.md"
TEMPERATURE = 0.7
STEPS = 8
# Many, so that the replies of a random model end at different steps. As in Llama 3, the settings of generation list
# them, and neither the configuration nor the tokenizer has any but the first.
ENDS = [EOS, *range(5, VOCABULARY, 8)]
PROMPTS = [np.random.default_rng(length).integers(3, VOCABULARY, size=length).tolist() for length in (3, 9, 5, 7, 4)]


def generated(model: Any) -> list[tuple[int, ...]]:
    """Return the greedy replies of transformers' ``generate``, each up to its first end token."""
    ids, gaps = left_pad(PROMPTS, PAD)
    mask = (torch.arange(ids.shape[1]) >= gaps.unsqueeze(-1)).long()
    output = model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=STEPS, pad_token_id=PAD)
    replies = output[:, ids.shape[1] :].tolist()
    ends = [next((i + 1 for i, token in enumerate(reply) if token in ENDS), STEPS) for reply in replies]
    return [tuple(reply[:end]) for reply, end in zip(replies, ends, strict=True)]


@dataclass
class Case:
    """A model, what ``generate`` replies, and a policy with sampled replies."""

    model: Any
    expected: list[tuple[int, ...]]
    policy: SharedBasePolicy
    engine: TorchEngine

    @staticmethod
    def of(name: str) -> Case:
        model = make_model(name)
        model.generation_config.eos_token_id = ENDS
        expected = generated(model)
        policy = SharedBasePolicy(model, ("x_0",), LoraSettings(rank=2, alpha=4), 0)
        decoding = Decoding(max_new_tokens=STEPS, temperature=TEMPERATURE)
        return Case(model, expected, policy, TorchEngine(policy, load_model("tiny").tokenizer, decoding))

    @cached_property
    def sampled(self) -> list[Generation]:
        uniforms = np.random.default_rng(0).random((len(PROMPTS), STEPS))
        found = generate(self.engine, None, PROMPTS, uniforms)
        return [Generation(tuple(p), c.token_ids, c.logprobs, "", False) for p, c in zip(PROMPTS, found, strict=True)]

    @cached_property
    def turns(self) -> AgentTurns:
        return padded_turns(self.sampled)

    def logprobs(self, agent: str | None) -> Tensor:
        """Return the log-probabilities [n, T] of the sampled tokens by the training path."""
        with self.policy.use(agent):
            return self.policy.scores(self.turns, TEMPERATURE).logprobs


FAST = ("llama", "qwen3", "gemma2", "gemma3_text", "granite", "gpt2", "lfm2", "mixtral")
"""One architecture of each kind: plain, norms of heads, capped logits, windows, scaled logits, fused weights, a hybrid
cache, experts."""


@pytest.fixture(
    scope="module",
    params=[name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES],
)
def case(request: pytest.FixtureRequest) -> Case:
    return Case.of(request.param)


def test_greedy_replies_are_those_of_generate(case: Case) -> None:
    replies = [c.token_ids for c in generate(case.engine, None, PROMPTS)]
    assert replies == case.expected
    assert case.engine.end_ids == set(ENDS)


def test_log_probabilities_are_the_models_own(case: Case) -> None:
    """By the training path, and by the sampler; the model reads each row alone, without padding."""
    trained = case.logprobs(None).detach()
    for i, g in enumerate(case.sampled):
        ids = torch.tensor([g.prompt_ids + g.action_ids])
        with torch.no_grad(), case.policy.use(None):
            logits = case.policy.causal_lm(input_ids=ids, use_cache=False).logits[0]
        own = (logits.float() / TEMPERATURE).log_softmax(-1)[len(g.prompt_ids) - 1 : -1]
        own = own.gather(-1, torch.tensor(g.action_ids).unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(trained[i, : len(own)], own, rtol=0, atol=1e-4)
        torch.testing.assert_close(torch.tensor(g.logprobs), own, rtol=0, atol=1e-4)


def test_a_policy_starts_as_pi_0_and_training_leaves_pi_0_as_it_was(case: Case) -> None:
    reference = case.logprobs(None).detach()
    start = case.logprobs("x_0")
    torch.testing.assert_close(start, reference, rtol=0, atol=1e-6)
    parameters = case.policy.adapter_parameters("x_0")
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    (-start.sum()).backward()
    gradients = [p.grad for p in parameters if p.grad is not None]
    assert gradients and all(bool(g.isfinite().all()) for g in gradients) and any(bool(g.any()) for g in gradients)
    optimizer.step()
    assert not torch.equal(case.logprobs("x_0"), reference)
    assert torch.equal(case.logprobs(None), reference)


# Eleven prompts, of which nine begin with the same 40 tokens, for three rows at a time: rows enter a running batch.
START = np.random.default_rng(40).integers(3, VOCABULARY, size=40).tolist()
LONG = [[*START, *prompt] for prompt in (*PROMPTS, *PROMPTS[:4])] + [PROMPTS[1], PROMPTS[3]]


@pytest.mark.parametrize("merge", [True, False])
def test_a_trained_adapter_samples_what_the_training_path_scores(case: Case, merge: bool, monkeypatch) -> None:
    """Merged into a copy or not, with a prefix that prompts share, and with rows that enter and leave the batch."""
    monkeypatch.setattr(running_batch, "LEAST_SAVED", 40)
    generator = torch.Generator().manual_seed(1)
    for parameter in case.policy.adapter_parameters("x_0"):
        parameter.data += 0.2 * torch.randn(parameter.shape, generator=generator)
    decoding = Decoding(max_new_tokens=STEPS, temperature=TEMPERATURE, rows=4)
    engine = TorchEngine(case.policy, load_model("tiny").tokenizer, decoding, merge)
    uniforms = np.random.default_rng(2).random((len(LONG), STEPS))
    found = generate(engine, "x_0", LONG, uniforms)
    records = [Generation(tuple(p), c.token_ids, c.logprobs, "", False) for p, c in zip(LONG, found, strict=True)]
    with torch.no_grad(), case.policy.use("x_0"):
        scores = case.policy.scores(padded_turns(records), TEMPERATURE).logprobs
    for row, c in zip(scores, found, strict=True):
        torch.testing.assert_close(torch.tensor(c.logprobs), row[: len(c.logprobs)], rtol=0, atol=1e-3)
    for i in (0, 8, 10):  # alone, a prompt is read as a whole
        (alone,) = generate(engine, "x_0", [LONG[i]], uniforms[i : i + 1])
        assert alone.token_ids == found[i].token_ids


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES]
)
def test_an_activated_adapter_continues_what_the_base_has_read(name: str) -> None:
    """The sampler and the training path give the log-probabilities of a direct computation, each turn alone."""
    model = make_model(name)
    if attention_layers(model.config) is None:
        with pytest.raises(
            ValueError, match=r"lora\.activated: the cache of model class .* holds more than keys and val"
        ):
            activated_policy(name)
        return
    policy = activated_policy(name)
    decoding = Decoding(max_new_tokens=STEPS, temperature=TEMPERATURE, rows=4)
    engine = TorchEngine(policy, load_model("tiny").tokenizer, decoding)
    asked = activated_prompts()
    found = activated_generate(engine, "x_0", asked, np.random.default_rng(2).random((len(asked), STEPS)))
    turns = turns_of([(p, c.token_ids) for p, c in zip(asked, found, strict=True)])
    with torch.no_grad(), policy.use("x_0"):
        scores = policy.scores(turns, TEMPERATURE).logprobs
    for row, own, c in zip(scores, continued_logprobs(policy, turns, TEMPERATURE), found, strict=True):
        torch.testing.assert_close(row[: len(own)], own.detach(), rtol=0, atol=1e-4)
        torch.testing.assert_close(torch.tensor(c.logprobs), own.detach(), rtol=0, atol=1e-3)


def test_a_full_copy_has_the_models_own_head() -> None:
    """Granite divides its logits. The copy has its own weights, which an update changes."""
    model = make_model("granite")
    ids = torch.tensor([[5, 9, 30, 12]])
    expected = model(input_ids=ids).logits[0]
    policy = SharedBasePolicy(model, ("x_0",), None, 0)
    with torch.no_grad(), policy.use("x_0"):
        states = policy.backbone(input_ids=ids).last_hidden_state[0]
        torch.testing.assert_close(policy.logits(states), expected)
        policy.head.weight.mul_(2.0)
        torch.testing.assert_close(policy.logits(states), 2 * expected)
    with torch.no_grad(), policy.use(None):
        torch.testing.assert_close(policy.logits(states), expected)


@pytest.mark.parametrize("name", list(NO_CACHE))
def test_a_model_without_a_cache_is_reported(name: str) -> None:
    policy = SharedBasePolicy(make_model(name), ("x_0",), LoraSettings(), 0)
    engine = TorchEngine(policy, load_model("tiny").tokenizer, Decoding(max_new_tokens=2))
    with pytest.raises(
        ValueError, match=r"model class .* returns no cache: expected a decoder with a transformers Cache"
    ):
        generate(engine, None, PROMPTS)


@pytest.mark.parametrize("name", list(NO_TRUNK))
def test_a_model_without_a_trunk_is_reported(name: str) -> None:
    with pytest.raises(ValueError, match="has no decoder below an output head: expected a decoder-only model"):
        SharedBasePolicy(make_model(name), ("x_0",), LoraSettings(), 0)


def test_the_documentation_names_the_architectures() -> None:
    documented = set(re.findall(r"`([a-z0-9_-]+)`", DOCS.read_text(encoding="utf-8").partition("## Architectures")[2]))
    assert {*ARCHITECTURES, *NO_CACHE, *NO_TRUNK} <= documented
