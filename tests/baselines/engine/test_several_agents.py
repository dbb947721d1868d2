"""Agents of one call are served in one batch or one after another, with the same actions."""

from __future__ import annotations

import numpy as np
import pytest

from baselines.engine.invocation import base_tokens
from baselines.engine.protocol import Completion
from baselines.engine.running_batch import RunningBatch
from baselines.engine.torch_engine import Decoding, TorchEngine
from baselines.models.load import load_model
from baselines.policies import mixed_adapters, rollout
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from tests.baselines.engine.generate import ChosenNumbers
from tests.baselines.models.architectures import VOCABULARY, make_model
from tests.baselines.policies.activated import AGENTS, INVOCATION, activated_policy, perturb, prompts, tokens

STEPS = 6


def policy_of(name: str, *, activated: bool) -> SharedBasePolicy:
    policy = activated_policy(name) if activated else SharedBasePolicy(make_model(name), AGENTS, LoraSettings(2, 4), 0)
    if not activated:
        perturb(policy, 0.2)
    policy.causal_lm.generation_config.eos_token_id = list(range(5, VOCABULARY, 9))
    return policy


def requests(policy: SharedBasePolicy) -> list[ChosenNumbers]:
    """Return requests of both agents and of the base alone, in turn. All prompts of an agent begin in the same way."""
    found, random = [], np.random.default_rng(3)
    sampling = Decoding(max_new_tokens=STEPS, temperature=0.7).sampling
    for i, prompt in enumerate([*prompts(), *prompts()]):
        agent = (*AGENTS, None)[i % 3]
        asked = (*tokens(4 + i % 3, i % 3), *prompt)
        base = base_tokens(asked, INVOCATION) if policy.invocation_ids else 0
        found.append(ChosenNumbers(agent, asked, sampling, base_tokens=base, numbers=random.random(STEPS)))
    return found


def completions(
    policy: SharedBasePolicy, monkeypatch: pytest.MonkeyPatch, *, mixed: bool, merge: bool = True, rows: int = 256
) -> tuple[list[Completion], list[set[str | None]]]:
    """Return the completions of all requests, and the adapters of each pass of the running batches."""
    adapters, original = [], RunningBatch._forward

    def forward(batch, ids, starts, columns, cache, of_rows):
        adapters.append(set(of_rows))
        return original(batch, ids, starts, columns, cache, of_rows)

    with monkeypatch.context() as patch:
        patch.setattr(RunningBatch, "_forward", forward)
        patch.setattr(rollout, "can_mix", lambda weights: mixed and mixed_adapters.can_mix(weights))
        decoding = Decoding(max_new_tokens=STEPS, rows=rows)
        engine = TorchEngine(policy, load_model("tiny").tokenizer, decoding, merge)
        return engine.generate(requests(policy)), adapters


@pytest.mark.parametrize("activated", [False, True])
@pytest.mark.parametrize(
    ("name", "rows", "merge"), [("llama", 256, True), ("llama", 4, False), ("gemma3_text", 5, True)]
)
def test_a_mixed_batch_is_one_adapter_after_another(name, rows, merge, activated, monkeypatch) -> None:
    """Also with prefixes that prompts of an agent share, and with rows that enter and leave."""
    monkeypatch.setattr("baselines.engine.running_batch.LEAST_SAVED", 2)
    policy = policy_of(name, activated=activated)
    apart, one_each = completions(policy, monkeypatch, mixed=False, merge=merge, rows=rows)
    together, several = completions(policy, monkeypatch, mixed=True, merge=merge, rows=rows)
    assert all(len(adapters) == 1 for adapters in one_each) and {*AGENTS, None} in several
    for found, expected in zip(together, apart, strict=True):
        assert found.token_ids == expected.token_ids and found.finish_reason == expected.finish_reason
        np.testing.assert_allclose(found.logprobs, expected.logprobs, atol=1e-4)
    assert len({len(c.token_ids) for c in apart}) > 1


def test_the_prefix_of_each_agent_is_read_once(monkeypatch) -> None:
    """Two agents whose prompts begin with their own instructions, and one with a prompt of its own."""
    monkeypatch.setattr("baselines.engine.running_batch.LEAST_SAVED", 2)
    policy = policy_of("llama", activated=False)
    widths, original = [], RunningBatch._forward

    def forward(batch, ids, *others):
        widths.append(tuple(ids.shape))
        return original(batch, ids, *others)

    monkeypatch.setattr(RunningBatch, "_forward", forward)
    engine = TorchEngine(policy, load_model("tiny").tokenizer, Decoding(max_new_tokens=1))
    asked = [("x_0", (*tokens(9, 0), 50 + i)) for i in range(3)] + [("y_0", (*tokens(7, 1), 60 + i)) for i in range(2)]
    asked.append((None, (99,)))
    sampling = engine.decoding.sampling
    engine.generate([ChosenNumbers(agent, prompt, sampling) for agent, prompt in asked])
    assert widths == [(2, 9), (6, 1)]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("activated", [False, True])
def test_a_prompt_that_several_rows_have_is_read_once(activated, mixed, monkeypatch) -> None:
    """As in groups of episodes on one problem. Each row samples the tokens that it samples alone."""
    policy, widths, original = policy_of("gemma3_text", activated=activated), [], RunningBatch._forward
    sampling, random = Decoding(max_new_tokens=STEPS, temperature=0.7).sampling, np.random.default_rng(5)
    engine = TorchEngine(policy, load_model("tiny").tokenizer, Decoding(max_new_tokens=STEPS))
    asked = []
    for agent in AGENTS[: 1 + mixed]:
        for prompt in [p for p in prompts()[:3] for _ in range(3)]:
            base = base_tokens(prompt, INVOCATION) if activated else 0
            asked.append(ChosenNumbers(agent, prompt, sampling, base_tokens=base, numbers=random.random(STEPS)))
    alone = [engine.generate([request])[0] for request in asked]

    def forward(batch, ids, *others):
        widths.append(tuple(ids.shape))
        return original(batch, ids, *others)

    monkeypatch.setattr("baselines.engine.running_batch.LEAST_SAVED", 30)
    monkeypatch.setattr(RunningBatch, "_forward", forward)
    for found, expected in zip(engine.generate(asked), alone, strict=True):
        assert found.token_ids == expected.token_ids
        np.testing.assert_allclose(found.logprobs, expected.logprobs, atol=1e-4)
    if not activated:  # else the base reads them, and each row its header
        longest = max(map(len, prompts()[:3]))
        assert widths[:2] == [(len(asked) // 3, longest - 1), (len(asked), 1)]


def test_the_base_reads_a_prompt_of_several_rows_once(monkeypatch) -> None:
    policy, reads = policy_of("llama", activated=True), []
    original = SharedBasePolicy.read_prompts
    monkeypatch.setattr(SharedBasePolicy, "read_prompts", lambda *a: (reads.append(len(a[2])), original(*a))[1])
    engine = TorchEngine(policy, load_model("tiny").tokenizer, Decoding(max_new_tokens=1))
    sampling = engine.decoding.sampling
    engine.generate(
        [ChosenNumbers(a, p, sampling, base_tokens=base_tokens(p, INVOCATION)) for p in prompts()[:4] for a in AGENTS]
    )
    assert reads == [4]
